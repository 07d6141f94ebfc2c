#!/usr/bin/env bash
# Translate the test set with one model, or with an ensemble, beam 10, and score it.
#
#   bash examples/deepatt/evaluate.sh CHECKPOINT[:CHECKPOINT...] DATA OUT [more flags of fairseq-generate ...]
#
# Translations and scores go to the folder OUT. Scores of hypotheses are normalised by length, as in the paper's rows
# "LN"; with --unnormalized they are sums, as in the others. BLEU is that of sacrebleu on the text as fairseq holds it,
# tokenised, its sub-words joined.
set -euo pipefail
usage="usage: evaluate.sh CHECKPOINT[:CHECKPOINT...] DATA OUT [flags ...]"
checkpoints=${1:?$usage} data=${2:?$usage} out=${3:?$usage}
shift 3
mkdir -p "$out"
root=$(cd "$(dirname "$0")/../.." && pwd)
[ -d "$root/.venv" ] && export PATH="$root/.venv/bin:$PATH"

fairseq-generate "$data" --user-dir "$root/lwc_fairseq" --task concat_translation --path "$checkpoints" \
  --beam 10 --batch-size 50 --post-process subword_nmt "$@" > "$out/generated.making" 2> "$out/generate.log" ||
  { tail -n 5 "$out/generate.log" >&2; echo "evaluate.sh: stopped while translating; the log is $out/generate.log" >&2; exit 1; }
mv "$out/generated.making" "$out/generated.txt"
# hypotheses and references come in the order of their batches: sort them back
for kind in H T; do
  grep "^$kind-" "$out/generated.txt" | sed "s/^$kind-//" | sort -n | cut -f "$([ $kind = H ] && echo 3 || echo 2)" > "$out/$kind.txt"
done
sacrebleu "$out/T.txt" -i "$out/H.txt" --tokenize none --metrics bleu chrf --force > "$out/score.making"
mv "$out/score.making" "$out/score.json"
cat "$out/score.json"
