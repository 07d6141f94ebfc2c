#!/usr/bin/env bash
# Train the models of He et al. (2018), Table 2, on the data of prepare.sh and translate the test set; started again, it
# resumes. Its table compares tokenised text: the paper's detokenised BLEU is evaluate.sh's.
#
#   bash examples/wmt16_en_ro/train.sh [--out FOLDER] [-- more flags of `lwc-fairseq table` ...]
#
#   --out  that of prepare.sh (default: runs/wmt16_en_ro); models and the table go to its folder `table`
#
# As --rows lwc_big for LWC alone, --train="--fp16" for half precision, --dry-run to see the commands.
source "$(dirname "$0")/../recipe.sh"
[ ${#words[@]} = 0 ] || fail "usage: train.sh [--out FOLDER] [-- flags ...]"
out=${out:-$PWD/runs/wmt16_en_ro}
train_table "$root/examples/tables/lwc_table2_en_ro.yaml"
