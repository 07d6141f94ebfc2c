#!/usr/bin/env bash
# Translate newstest2014 with a model or an ensemble, as the paper does, and compute case-sensitive BLEU on the
# tokenised text. LWC uses beam 4 and length penalty 0.6; DeepAtt uses beam 10 and ranks hypotheses by log-probability.
#
#   bash examples/wmt14_en_de/evaluate.sh lwc|deepatt CHECKPOINT[:CHECKPOINT...] [--out FOLDER] [-- more flags ...]
#
#   --out  the folder that prepare.sh wrote (default: runs/wmt14_en_de-lwc and so on)
#   flags  go to fairseq-generate
source "$(dirname "$0")/../recipe.sh"
parse '--out= --' "$@"
[ ${#words[@]} = 2 ] || usage
paper=${words[0]} checkpoint=${words[1]}
case $paper in
  lwc) search=(--beam 4 --lenpen 0.6 --gnmt-length-penalty) ;;
  deepatt) search=(--beam 10 --unnormalized) ;;
  *) usage ;;
esac
out=${out:-$PWD/runs/wmt14_en_de-$paper}

translate "$checkpoint" "${search[@]}" --post-process subword_nmt
sacrebleu "$out/clean/test.de" -i "$translations" --tokenize none --force
