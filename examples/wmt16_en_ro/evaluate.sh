#!/usr/bin/env bash
# Translate newstest2016 with a checkpoint, or an ensemble, as the paper does, beam 6 and length penalty 1.1, and score it:
# BLEU of detokenised text.
#
#   bash examples/wmt16_en_ro/evaluate.sh CHECKPOINT[:CHECKPOINT...] [--out FOLDER] [-- more flags of fairseq-generate ...]
#
#   --out  that of prepare.sh (default: runs/wmt16_en_ro)
source "$(dirname "$0")/../recipe.sh"
[ ${#words[@]} = 1 ] || fail "usage: evaluate.sh CHECKPOINT[:CHECKPOINT...] [--out FOLDER] [-- flags ...]"
out=${out:-$PWD/runs/wmt16_en_ro}

translate "${words[0]}" --beam 6 --lenpen 1.1 --gnmt-length-penalty --post-process subword_nmt
sacremoses -q detruecase < "$translations" | sacremoses -q -l ro detokenize > "$translations.detokenised"
sacrebleu "$out/text/test.ro" -i "$translations.detokenised"
