#!/usr/bin/env bash
# Train the models of He et al. (2018), Table 2, on the data of prepare.sh and translate the test set. The same command
# resumes an interrupted run. The table has BLEU of detokenised text, as the paper and evaluate.sh.
#
#   bash examples/wmt16_en_ro/train.sh [--out FOLDER] [-- more flags of `lwc-fairseq table` ...]
#
#   --out  the folder that prepare.sh wrote (default: runs/wmt16_en_ro); models and the table go to its folder `table`
#
# Useful flags: --rows lwc_big (only LWC), --train="--fp16" (half precision), --dry-run (print the commands).
source "$(dirname "$0")/../recipe.sh"
parse '--out= --' "$@"
[ ${#words[@]} = 0 ] || usage
out=${out:-$PWD/runs/wmt16_en_ro}

flags=(--references "$out/text/test.ro" "${flags[@]}")
train_table "$root/examples/tables/lwc_table2_en_ro.yaml"
