#!/usr/bin/env bash
# Translate test_2016_flickr with a checkpoint and score it: BLEU on tokenised, lower-cased text.
#
#   bash examples/multi30k/evaluate.sh CHECKPOINT [DATA]
set -euo pipefail
absolute() { case $1 in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; } # before the folder changes
checkpoint=$(absolute "${1:?usage: evaluate.sh CHECKPOINT [DATA]}")
data=${2:+$(absolute "$2")}
cd "$(dirname "$0")/../.."
[ -d .venv ] && export PATH="$PWD/.venv/bin:$PATH"
data=${data:-runs/multi30k/data}
out=$(dirname "$checkpoint")

fairseq-generate "$data" --user-dir lwc_fairseq --task concat_translation --path "$checkpoint" \
  --beam 6 --lenpen 1.1 --gnmt-length-penalty --post-process subword_nmt --max-tokens 8000 > "$out/generated.making"
mv "$out/generated.making" "$out/generated.txt"
# hypotheses come in the order of their batches: sort them back
grep '^H-' "$out/generated.txt" | sed 's/^H-//' | sort -n | cut -f 3 > "$out/hypotheses.en"
sacrebleu "$data/reference.en" -i "$out/hypotheses.en" --tokenize none --metrics bleu chrf
