#!/usr/bin/env bash
# Translate newstest2014 with a model or an ensemble, as the paper does (beam 10), and compute case-sensitive BLEU on
# the tokenised text.
#
#   bash examples/wmt14_en_fr/evaluate.sh CHECKPOINT[:CHECKPOINT...] [--out FOLDER] [-- more flags ...]
#
#   --out  the folder that prepare.sh wrote (default: runs/wmt14_en_fr)
#   flags  go to fairseq-generate
source "$(dirname "$0")/../recipe.sh"
parse '--out= --' "$@"
[ ${#words[@]} = 1 ] || usage
out=${out:-$PWD/runs/wmt14_en_fr}

translate "${words[0]}" --beam 10 --unnormalized --post-process subword_nmt
sacrebleu "$out/text/test.fr" -i "$translations" --tokenize none --force
