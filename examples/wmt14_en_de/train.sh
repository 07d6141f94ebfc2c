#!/usr/bin/env bash
# Train the models of a paper's table on the data of prepare.sh, translate newstest2014 and score it. The same command
# resumes an interrupted run.
#
#   bash examples/wmt14_en_de/train.sh lwc|deepatt [--stanford] [--out FOLDER] [-- more flags of `lwc-fairseq table` ...]
#
#   lwc      He et al. (2018), Table 2
#   deepatt  Zhang, Xiong, Su (2018), Table 6, with its ensemble of four models
#   --stanford, --out  as of prepare.sh, which wrote the folder; models and the table go to its folder `table`
#
# Useful flags: --rows lwc_base (only this row), --train="--fp16" (half precision), --dry-run (print the commands).
source "$(dirname "$0")/../recipe.sh"
stanford=''
parse '--stanford --out= --' "$@"
[ ${#words[@]} = 1 ] || usage
paper=${words[0]}
case $paper in
  lwc) table=lwc_table2_en_de ;;
  deepatt) table=deepatt_table6 ;;
  *) usage ;;
esac
out=${out:-$PWD/runs/wmt14_en_de-$paper${stanford:+-stanford}}

train_table "$root/examples/tables/$table.yaml"
