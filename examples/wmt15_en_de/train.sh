#!/usr/bin/env bash
# Train the models of Zhang et al. (AAAI 2018), Table 4, on the data of prepare.sh, translate newstest2015 and score it;
# started again, it resumes.
#
#   bash examples/wmt15_en_de/train.sh [--out FOLDER] [-- more flags of `lwc-fairseq table` ...]
#
#   --out  that of prepare.sh (default: runs/wmt15_en_de); models and the table go to its folder `table`
#
# As --rows abd for ABD alone, --train="--fp16" for half precision, --dry-run to see the commands.
source "$(dirname "$0")/../recipe.sh"
[ ${#words[@]} = 0 ] || fail "usage: train.sh [--out FOLDER] [-- flags ...]"
out=${out:-$PWD/runs/wmt15_en_de}
train_table "$root/examples/tables/abd_table4.yaml"
