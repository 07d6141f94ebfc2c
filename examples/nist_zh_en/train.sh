#!/usr/bin/env bash
# Train the models of a paper's table on the data of prepare.sh, translate the test sets, one after the other as one, and
# score them against the four references; started again, it resumes.
#
#   bash examples/nist_zh_en/train.sh deepatt|abd [--out FOLDER] [-- more flags of `lwc-fairseq table` ...]
#
#   deepatt  Zhang, Xiong, Su (2018), Table 5
#   abd      Zhang et al. (AAAI 2018), Table 2; the paper's Average is that of the sets, by evaluate.sh
#   --out    that of prepare.sh (default: runs/nist_zh_en-deepatt and so on); models and the table go to its folder `table`
#
# As --rows abd for that alone, --train="--fp16" for half precision, --dry-run to see the commands.
source "$(dirname "$0")/../recipe.sh"
paper=${words[0]:-}
case $paper in
  deepatt) table=deepatt_table5 ;;
  abd) table=abd_table2 ;;
  *) fail "usage: train.sh deepatt|abd [--out FOLDER] [-- flags ...]" ;;
esac
out=${out:-$PWD/runs/nist_zh_en-$paper}
flags=(--references "$out/clean"/reference{0,1,2,3}.en "${flags[@]}")
train_table "$root/examples/tables/$table.yaml"
