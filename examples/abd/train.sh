#!/usr/bin/env bash
# Train one row of the ABD paper's Table 2 with the paper's settings; started again, it resumes.
#
#   bash examples/abd/train.sh ROW DATA [--out FOLDER] [-- more flags of fairseq-train ...]
#
#   ROW    abd        asynchronous bidirectional decoding, λ = 0.7
#          rr         the same, but trained on the reversed reference
#          rnnsearch  the baseline, left to right
#          r2l        the same, right to left
#          nsc_rt     system combination over the reverse translation of r2l
#          nsc_hs     the same over its states
#   DATA   a folder that fairseq-preprocess wrote
#   --out  a folder for checkpoints (default: runs/ROW)
#   flags  say when to stop, as --max-epoch 5 (the paper); without one it trains until it is interrupted. The paper leaves
#          out pairs of more than 50 words: do so before fairseq-preprocess
#
# R2L=CHECKPOINT names the model of the row r2l: nsc_rt and nsc_hs need it, abd and rr start from it if it is given.
# OPTIMIZER=rmsprop (the default, the paper's) or OPTIMIZER=adam.
source "$(dirname "$0")/../recipe.sh"
[ ${#words[@]} = 2 ] || fail "usage: train.sh ROW DATA [--out FOLDER] [-- flags ...]"
row=${words[0]}
out=${out:-$PWD/runs/$row}
r2l=${R2L:+$(absolute "$R2L")} # a checkpoint keeps the path

bidirectional=(--arch abd --criterion bidirectional_cross_entropy ${r2l:+--init-backward-from "$r2l"})
case $row in
  abd) model=("${bidirectional[@]}" --forward-weight 0.7) ;;
  rr) model=("${bidirectional[@]}" --forward-weight 0.7 --reverse-context reference) ;;
  rnnsearch) model=(--arch rnnsearch --criterion cross_entropy) ;;
  r2l) model=(--arch rnnsearch --criterion cross_entropy --reverse-target) ;;
  nsc_rt | nsc_hs) model=(--arch "$row" --criterion cross_entropy ${r2l:+--reverse-model "$r2l"}) ;;
  *) fail "unknown row $row; see the head of $0" ;;
esac

case ${OPTIMIZER:-rmsprop} in
  rmsprop) optimizer=(--optimizer rmsprop --rmsprop-rho 0.95 --rmsprop-eps 1e-4 --lr 5e-4) ;;
  adam) optimizer=(--optimizer adam --adam-betas '(0.9, 0.98)' --lr 5e-4) ;;
  *) fail "OPTIMIZER=$OPTIMIZER: choose rmsprop or adam" ;;
esac

fairseq-train "${words[1]}" --user-dir "$root/lwc_fairseq" --task concat_translation "${model[@]}" \
  "${optimizer[@]}" --sentence-avg --clip-norm 1.0 --batch-size 80 --dropout 0.3 --seed 1 \
  --no-epoch-checkpoints --log-format simple --log-interval 100 --save-dir "$out" "${flags[@]}"
