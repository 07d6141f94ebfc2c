#!/usr/bin/env bash
# Translate newstest2015 with a model or an ensemble, as the paper does (beam 10), and compute case-sensitive BLEU on
# the tokenised text.
#
#   bash examples/wmt15_en_de/evaluate.sh CHECKPOINT[:CHECKPOINT...] [--out FOLDER] [-- more flags ...]
#
#   --out  the folder that prepare.sh wrote (default: runs/wmt15_en_de)
#   flags  go to fairseq-generate
source "$(dirname "$0")/../recipe.sh"
parse '--out= --' "$@"
[ ${#words[@]} = 1 ] || usage
out=${out:-$PWD/runs/wmt15_en_de}

translate "${words[0]}" --beam 10 --unnormalized --post-process subword_nmt
sacrebleu "$out/clean/test.de" -i "$translations" --tokenize none --force
