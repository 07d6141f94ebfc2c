#!/usr/bin/env bash
# Translate newstest2014 with a model or an ensemble, as the paper does, and compute case-sensitive BLEU on the
# tokenised text. LWC uses beam 4 and length penalty 0.6; DeepAtt uses beam 10 and ranks hypotheses by log-probability.
#
#   bash examples/wmt14_en_de/evaluate.sh lwc|deepatt CHECKPOINT[:CHECKPOINT...] [--stanford] [--out FOLDER] [-- more flags ...]
#
#   --stanford, --out  as of prepare.sh, which wrote the folder
#   flags              go to fairseq-generate
source "$(dirname "$0")/../recipe.sh"
stanford=''
parse '--stanford --out= --' "$@"
[ ${#words[@]} = 2 ] || usage
paper=${words[0]} checkpoint=${words[1]}
case $paper in
  lwc) search=(--beam 4 --lenpen 0.6 --gnmt-length-penalty) ;;
  deepatt) search=(--beam 10 --unnormalized) ;;
  *) usage ;;
esac
out=${out:-$PWD/runs/wmt14_en_de-$paper${stanford:+-stanford}}

translate "$checkpoint" "${search[@]}" --post-process subword_nmt
sacrebleu "$out/clean/test.de" -i "$translations" --tokenize none --force
