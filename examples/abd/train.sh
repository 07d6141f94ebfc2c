#!/usr/bin/env bash
# Train one row of Table 2 of the ABD paper with the paper's settings. The same command resumes an interrupted training.
# The best checkpoint is that with the best BLEU of the validation set, translated greedily after each epoch.
#
#   bash examples/abd/train.sh ROW DATA [--out FOLDER] [-- more flags of fairseq-train ...]
#
#   ROW    abd        asynchronous bidirectional decoding, λ = 0.7
#          rr         abd, trained on the reversed reference instead of the reverse translation
#          rnnsearch  the baseline, left to right
#          r2l        the baseline, right to left
#          nsc_rt     system combination over the reverse translation of r2l
#          nsc_hs     system combination over the hidden states of r2l
#   DATA   a folder that fairseq-preprocess wrote
#   --out  a folder for checkpoints (default: runs/ROW)
#   flags  say when to stop: --max-epoch 5 is the paper's; without one, training runs until interrupted
#
# The paper leaves out pairs of more than 50 words; leave them out before fairseq-preprocess. The environment variable
# R2L names a checkpoint of the row r2l. nsc_rt and nsc_hs need it; abd and rr start from it if it is set. OPTIMIZER is
# rmsprop (the default, as in the paper) or adam.
source "$(dirname "$0")/../recipe.sh"
parse '--out= --' "$@"
[ ${#words[@]} = 2 ] || usage
row=${words[0]} data=${words[1]}
out=${out:-$PWD/runs/$row}
r2l=${R2L:+$(absolute "$R2L")} # the checkpoint of nsc_rt and nsc_hs keeps this path

bidirectional=(--arch abd --criterion bidirectional_cross_entropy ${r2l:+--init-backward-from "$r2l"})
case $row in
  abd) model=("${bidirectional[@]}" --forward-weight 0.7) ;;
  rr) model=("${bidirectional[@]}" --forward-weight 0.7 --reverse-context reference) ;;
  rnnsearch) model=(--arch rnnsearch --criterion cross_entropy) ;;
  r2l) model=(--arch rnnsearch --criterion cross_entropy --reverse-target) ;;
  nsc_rt | nsc_hs) model=(--arch "$row" --criterion cross_entropy ${r2l:+--reverse-model "$r2l"}) ;;
  *) fail "unknown row $row; --help lists the rows" 2 ;;
esac

case ${OPTIMIZER:-rmsprop} in
  rmsprop) optimizer=(--optimizer rmsprop --rmsprop-rho 0.95 --rmsprop-eps 1e-4 --lr 5e-4) ;;
  adam) optimizer=(--optimizer adam --adam-betas '(0.9, 0.98)' --lr 5e-4) ;;
  *) fail "OPTIMIZER=$OPTIMIZER: choose rmsprop or adam" 2 ;;
esac

subwords=$(subwords_of "$data" subword_nmt)
joined=(${subwords:+--eval-bleu-remove-bpe "$subwords"})
fairseq-train "$data" --user-dir "$root/lwc_fairseq" --task concat_translation "${model[@]}" \
  "${optimizer[@]}" --sentence-avg --clip-norm 1.0 --batch-size 80 --dropout 0.3 --input-dropout 0.3 --seed 1 \
  --eval-bleu --eval-tokenized-bleu "${joined[@]}" --eval-bleu-args '{"beam": 1}' \
  --best-checkpoint-metric bleu --maximize-best-checkpoint-metric \
  --no-epoch-checkpoints --log-format simple --log-interval 100 --save-dir "$out" "${flags[@]}"
