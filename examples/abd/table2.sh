#!/usr/bin/env bash
# Every row of the ABD paper's Table 2 that its authors ran: train, translate, score. Finished rows are kept.
#
#   bash examples/abd/table2.sh DATA OUT [more flags of fairseq-train ...]
#
# A folder a row in OUT, and OUT/table2.md. Flags hold for every row, as --max-epoch 5 (the paper).
set -euo pipefail
usage="usage: table2.sh DATA OUT [flags ...]"
data=${1:?$usage} out=${2:?$usage}
shift 2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"

# row NAME LABEL CHECKPOINT [flags of fairseq-generate ...]: translates, scores, and adds a line to the table
row() {
  local name=$1 label=$2 checkpoint=$3
  shift 3
  if [ ! -f "$out/$name/score.json" ]; then
    bash "$here/../deepatt/evaluate.sh" "$checkpoint" "$data" "$out/$name" "$@" > /dev/null
  fi
  printf '| %s | %s |\n' "$label" "$(grep -m 1 '"score"' "$out/$name/score.json" | grep -o '[0-9.]*')" | tee -a "$table"
}

# model NAME [flags of fairseq-train ...]: trains
model() {
  local name=$1
  shift
  [ -f "$out/$name/trained" ] && return
  mkdir -p "$out/$name"
  echo "training $name; the log is $out/$name/train.log" >&2
  bash "$here/train.sh" "$name" "$data" "$out/$name" "$@" > "$out/$name/train.log" 2>&1 ||
    { tail -n 15 "$out/$name/train.log" >&2; echo "table2.sh: stopped while training $name" >&2; exit 1; }
  touch "$out/$name/trained"
}

best() { echo "$out/$1/checkpoint_best.pt"; }
table=$out/table2.making
printf '| model | BLEU |\n|---|---|\n' > "$table"
model rnnsearch "$@"
row rnnsearch RNNSearch "$(best rnnsearch)"
model r2l "$@"
row r2l "RNNSearch(R2L)" "$(best r2l)" --reverse-target
row atnmt ATNMT "$(best rnnsearch)" --agreement-path "$(best r2l)"
for name in nsc_rt nsc_hs; do
  R2L=$(best r2l) model $name "$@"
  row $name "$name" "$(best $name)"
done
for name in abd rr; do
  model $name "$@"
  row $name "$name" "$(best $name)"
done
mv "$table" "$out/table2.md"
echo "wrote $out/table2.md"
