#!/usr/bin/env bash
# Train DeepAtt as in Zhang, Xiong, Su (2018), Table 7, on the data of prepare.sh, with its ensemble of four models,
# translate newstest2014 and score it. The same command resumes an interrupted run.
#
#   bash examples/wmt14_en_fr/train.sh [--out FOLDER] [-- more flags of `lwc-fairseq table` ...]
#
#   --out  the folder that prepare.sh wrote (default: runs/wmt14_en_fr); models and the table go to its folder `table`
#
# Useful flags: --rows deepatt_adam (only one model), --train="--fp16" (half precision), --dry-run (print the commands).
source "$(dirname "$0")/../recipe.sh"
parse '--out= --' "$@"
[ ${#words[@]} = 0 ] || usage
out=${out:-$PWD/runs/wmt14_en_fr}

train_table "$root/examples/tables/deepatt_table7.yaml"
