#!/usr/bin/env bash
# Train DeepAtt as in Zhang, Xiong, Su (2018), Table 7, on the data of prepare.sh, with its ensemble of four, translate
# newstest2014 and score it; started again, it resumes.
#
#   bash examples/wmt14_en_fr/train.sh [--out FOLDER] [-- more flags of `lwc-fairseq table` ...]
#
#   --out  that of prepare.sh (default: runs/wmt14_en_fr); models and the table go to its folder `table`
#
# As --rows deepatt_adam for one model alone, --train="--fp16" for half precision, --dry-run to see the commands.
source "$(dirname "$0")/../recipe.sh"
[ ${#words[@]} = 0 ] || fail "usage: train.sh [--out FOLDER] [-- flags ...]"
out=${out:-$PWD/runs/wmt14_en_fr}
train_table "$root/examples/tables/deepatt_table7.yaml"
