#!/usr/bin/env bash
# The paper's Figure 2: train abd with λ = 0.5, 0.6, ... 1.0, translate and score the validation set. Finished ones are
# kept.
#
#   bash examples/abd/sweep.sh DATA OUT [more flags of fairseq-train ...]
#
# A folder for each λ in OUT, and OUT/sweep.md. R2L=CHECKPOINT as for train.sh; WEIGHTS="0.7 0.8" for other values of λ.
set -euo pipefail
usage="usage: sweep.sh DATA OUT [flags ...]"
data=${1:?$usage} out=${2:?$usage}
shift 2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
printf '| λ | BLEU |\n|---|---|\n' > "$out/sweep.making"
for weight in ${WEIGHTS:-0.5 0.6 0.7 0.8 0.9 1.0}; do
  folder=$out/$weight
  if [ ! -f "$folder/score.json" ]; then
    mkdir -p "$folder"
    echo "λ = $weight; the log is $folder/train.log" >&2
    bash "$here/train.sh" abd "$data" "$folder" --forward-weight $weight "$@" > "$folder/train.log" 2>&1 ||
      { tail -n 15 "$folder/train.log" >&2; echo "sweep.sh: stopped while training with λ = $weight" >&2; exit 1; }
    bash "$here/../deepatt/evaluate.sh" "$folder/checkpoint_best.pt" "$data" "$folder" --gen-subset valid > /dev/null
  fi
  printf '| %s | %s |\n' $weight "$(grep -m 1 '"score"' "$folder/score.json" | grep -o '[0-9.]*')" |
    tee -a "$out/sweep.making"
done
mv "$out/sweep.making" "$out/sweep.md"
echo "wrote $out/sweep.md"
