#!/usr/bin/env bash
# Translate the test set of any binary data with one model, or with an ensemble, beam 10, and score it.
#
#   bash examples/evaluate.sh CHECKPOINT[:CHECKPOINT...] DATA [--out FOLDER] [-- more flags of fairseq-generate ...]
#
#   --out  a folder for translations and scores (default: that of the first checkpoint)
#
# Scores of hypotheses are normalised by length, as in DeepAtt's rows "LN"; with -- --unnormalized they are sums, as in its
# others. BLEU is that of sacrebleu on the text as fairseq holds it, tokenised, its sub-words joined.
source "$(dirname "$0")/recipe.sh"
[ ${#words[@]} = 2 ] || fail "usage: evaluate.sh CHECKPOINT[:CHECKPOINT...] DATA [--out FOLDER] [-- flags ...]"
checkpoints=${words[0]}
out=${out:-$(dirname "${checkpoints%%:*}")}
mkdir -p "$out"

generate "${words[1]}" "$checkpoints" "$out/test" --beam 10 --post-process subword_nmt
in_order "$out/test.generated" T 2 > "$out/test.reference"
sacrebleu "$out/test.reference" -i "$out/test.txt" --tokenize none --metrics bleu chrf --force > "$out/score.making"
mv "$out/score.making" "$out/score.json"
cat "$out/score.json"
