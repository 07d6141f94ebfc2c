#!/usr/bin/env bash
# Train the models of Zhang et al. (AAAI 2018), Table 4, on the data of prepare.sh, translate newstest2015 and score it.
# The same command resumes an interrupted run.
#
#   bash examples/wmt15_en_de/train.sh [--out FOLDER] [-- more flags of `lwc-fairseq table` ...]
#
#   --out  the folder that prepare.sh wrote (default: runs/wmt15_en_de); models and the table go to its folder `table`
#
# Useful flags: --rows abd (only ABD), --train="--fp16" (half precision), --dry-run (print the commands).
source "$(dirname "$0")/../recipe.sh"
parse '--out= --' "$@"
[ ${#words[@]} = 0 ] || usage
out=${out:-$PWD/runs/wmt15_en_de}

train_table "$root/examples/tables/abd_table4.yaml"
