#!/usr/bin/env bash
# Translate newstest2014 with a checkpoint, or an ensemble, as the paper does, beam 10, and score it: case-sensitive BLEU of
# tokenised text.
#
#   bash examples/wmt14_en_fr/evaluate.sh CHECKPOINT[:CHECKPOINT...] [--out FOLDER] [-- more flags of fairseq-generate ...]
#
#   --out  that of prepare.sh (default: runs/wmt14_en_fr)
source "$(dirname "$0")/../recipe.sh"
[ ${#words[@]} = 1 ] || fail "usage: evaluate.sh CHECKPOINT[:CHECKPOINT...] [--out FOLDER] [-- flags ...]"
out=${out:-$PWD/runs/wmt14_en_fr}

translate "${words[0]}" --beam 10 --unnormalized --post-process subword_nmt
sacrebleu "$out/text/test.fr" -i "$translations" --tokenize none --force
