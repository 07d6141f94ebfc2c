#!/usr/bin/env bash
# Translate newstest2015 with a checkpoint, or an ensemble, as the paper does, beam 10, and score it: case-sensitive BLEU of
# tokenised text.
#
#   bash examples/wmt15_en_de/evaluate.sh CHECKPOINT[:CHECKPOINT...] [--out FOLDER] [-- more flags of fairseq-generate ...]
#
#   --out  that of prepare.sh (default: runs/wmt15_en_de)
source "$(dirname "$0")/../recipe.sh"
[ ${#words[@]} = 1 ] || fail "usage: evaluate.sh CHECKPOINT[:CHECKPOINT...] [--out FOLDER] [-- flags ...]"
out=${out:-$PWD/runs/wmt15_en_de}

translate "${words[0]}" --beam 10 --unnormalized --post-process subword_nmt
sacrebleu "$out/clean/test.de" -i "$translations" --tokenize none --force
