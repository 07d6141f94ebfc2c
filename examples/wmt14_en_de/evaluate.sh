#!/usr/bin/env bash
# Translate newstest2014 with a checkpoint, or an ensemble, as the paper does, and score it: case-sensitive BLEU of tokenised
# text. LWC: beam 4, length penalty 0.6; DeepAtt: beam 10, sums of log-probabilities.
#
#   bash examples/wmt14_en_de/evaluate.sh lwc|deepatt CHECKPOINT[:CHECKPOINT...] [--out FOLDER] [-- more flags ...]
#
#   --out  that of prepare.sh (default: runs/wmt14_en_de-lwc and so on)
source "$(dirname "$0")/../recipe.sh"
paper=${words[0]:-} checkpoint=${words[1]:-}
case $paper in
  lwc) search=(--beam 4 --lenpen 0.6 --gnmt-length-penalty) ;;
  deepatt) search=(--beam 10 --unnormalized) ;;
  *) checkpoint='' ;;
esac
[ -n "$checkpoint" ] || fail "usage: evaluate.sh lwc|deepatt CHECKPOINT[:CHECKPOINT...] [--out FOLDER] [-- flags ...]"
out=${out:-$PWD/runs/wmt14_en_de-$paper}

translate "$checkpoint" "${search[@]}" --post-process subword_nmt
sacrebleu "$out/clean/test.de" -i "$translations" --tokenize none --force
