#!/usr/bin/env bash
# Train the models of a paper's table on the data of prepare.sh, translate the test sets, and score them against the four
# references. The same command resumes an interrupted run.
#
#   bash examples/nist_zh_en/train.sh deepatt|abd [--out FOLDER] [-- more flags of `lwc-fairseq table` ...]
#
#   deepatt  Zhang, Xiong, Su (2018), Table 5: each test set, and all together
#   abd      Zhang et al. (AAAI 2018), Table 2: all test sets together; evaluate.sh computes the paper's Average, the mean
#            over the test sets
#   --out    the folder that prepare.sh wrote (default: runs/nist_zh_en-deepatt and so on); models and the table go to its
#            folder `table`
#
# Useful flags: --rows abd (only this row), --train="--fp16" (half precision), --dry-run (print the commands).
source "$(dirname "$0")/../recipe.sh"
parse '--out= --' "$@"
[ ${#words[@]} = 1 ] || usage
paper=${words[0]}
case $paper in
  deepatt | abd) ;;
  *) usage ;;
esac
out=${out:-$PWD/runs/nist_zh_en-$paper}
needs_data

if [ "$paper" = deepatt ]; then
  table=deepatt_table5 references=()
  while read -r set _; do
    references+=("${set^^}=$out/clean/$set.reference"{0,1,2,3}.en)
  done < "$out/text/sets"
else
  table=abd_table2 references=("$out/clean"/reference{0,1,2,3}.en)
fi
flags=(--references "${references[@]}" "${flags[@]}")
train_table "$root/examples/tables/$table.yaml"
