#!/usr/bin/env bash
# Translate test_2016_flickr with a checkpoint, or an ensemble, and score it: BLEU of tokenised, lower-cased text, chrF2.
#
#   bash examples/multi30k/evaluate.sh CHECKPOINT[:CHECKPOINT...] [--out FOLDER] [-- more flags of fairseq-generate ...]
#
#   --out  that of prepare.sh (default: runs/multi30k)
source "$(dirname "$0")/../recipe.sh"
[ ${#words[@]} = 1 ] || fail "usage: evaluate.sh CHECKPOINT[:CHECKPOINT...] [--out FOLDER] [-- flags ...]"
out=${out:-$PWD/runs/multi30k}

translate "${words[0]}" --beam 6 --lenpen 1.1 --gnmt-length-penalty --post-process subword_nmt
sacrebleu "$out/text/test.en" -i "$translations" --tokenize none --force --metrics bleu chrf
