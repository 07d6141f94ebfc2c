#!/usr/bin/env bash
# Translate test_2016_flickr with a model or an ensemble, and compute BLEU and chrF2 on the tokenised, lower-cased text.
#
#   bash examples/multi30k/evaluate.sh CHECKPOINT[:CHECKPOINT...] [--out FOLDER] [-- more flags ...]
#
#   --out  the folder that prepare.sh wrote (default: runs/multi30k)
#   flags  go to fairseq-generate
source "$(dirname "$0")/../recipe.sh"
parse '--out= --' "$@"
[ ${#words[@]} = 1 ] || usage
out=${out:-$PWD/runs/multi30k}
needs_data

subwords=$(subwords_of "$out/data")
translate "${words[0]}" --beam 6 --lenpen 1.1 --gnmt-length-penalty ${subwords:+--post-process "$subwords"}
sacrebleu "$out/text/test.en" -i "$translations" --tokenize none --force --metrics bleu chrf
