#!/usr/bin/env bash
# Train the models of a paper's table on the data of prepare.sh, translate the test sets, joined into one, and score
# them against the four references. The same command resumes an interrupted run.
#
#   bash examples/nist_zh_en/train.sh deepatt|abd [--out FOLDER] [-- more flags of `lwc-fairseq table` ...]
#
#   deepatt  Zhang, Xiong, Su (2018), Table 5
#   abd      Zhang et al. (AAAI 2018), Table 2; evaluate.sh computes the paper's Average, the mean over the test sets
#   --out    the folder that prepare.sh wrote (default: runs/nist_zh_en-deepatt and so on); models and the table go to its
#            folder `table`
#
# Useful flags: --rows abd (only this row), --train="--fp16" (half precision), --dry-run (print the commands).
source "$(dirname "$0")/../recipe.sh"
parse '--out= --' "$@"
[ ${#words[@]} = 1 ] || usage
paper=${words[0]}
case $paper in
  deepatt) table=deepatt_table5 ;;
  abd) table=abd_table2 ;;
  *) usage ;;
esac
out=${out:-$PWD/runs/nist_zh_en-$paper}

flags=(--references "$out/clean"/reference{0,1,2,3}.en "${flags[@]}")
train_table "$root/examples/tables/$table.yaml"
