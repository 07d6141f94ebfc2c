#!/usr/bin/env bash
# Translate newstest2016 with a model or an ensemble, as the paper does (beam 6, length penalty 1.1), and compute BLEU
# on the detokenised text.
#
#   bash examples/wmt16_en_ro/evaluate.sh CHECKPOINT[:CHECKPOINT...] [--out FOLDER] [-- more flags ...]
#
#   --out  the folder that prepare.sh wrote (default: runs/wmt16_en_ro)
#   flags  go to fairseq-generate
source "$(dirname "$0")/../recipe.sh"
parse '--out= --' "$@"
[ ${#words[@]} = 1 ] || usage
out=${out:-$PWD/runs/wmt16_en_ro}

translate "${words[0]}" --beam 6 --lenpen 1.1 --gnmt-length-penalty --post-process subword_nmt
sacremoses -q detruecase < "$translations" | sacremoses -q -l ro detokenize > "$translations.detokenised"
sacrebleu "$out/text/test.ro" -i "$translations.detokenised"
