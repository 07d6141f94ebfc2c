#!/usr/bin/env bash
# Train DeepAtt, or one of the models that it is compared with, as in the paper; started again, it resumes.
#
#   bash examples/deepatt/train.sh PRESET DATA [--out FOLDER] [-- more flags of fairseq-train ...]
#
#   PRESET  deepatt, udeepatt, vdeepatt, wideatt, deepnmt, rnnsearch or mheadnmt
#   DATA    a folder that fairseq-preprocess wrote; dictionaries joined or not
#   --out   a folder for checkpoints (default: runs/PRESET)
#   flags   say when to stop: --max-update, --max-epoch or --patience; without one it trains until it is interrupted
#
# OPTIMIZER=adadelta (the default, as for most of the paper's rows) or OPTIMIZER=adam (its best ones).
source "$(dirname "$0")/../recipe.sh"
[ ${#words[@]} = 2 ] || fail "usage: train.sh PRESET DATA [--out FOLDER] [-- flags ...]"
preset=${words[0]}
out=${out:-$PWD/runs/$preset}

# With Adadelta the learning rate is a factor of the step that it works out by itself. The paper does not say Adam's.
case ${OPTIMIZER:-adadelta} in
  adadelta) optimizer=(--optimizer adadelta --adadelta-rho 0.95 --adadelta-eps 1e-6 --lr 1.0) ;;
  adam) optimizer=(--optimizer adam --adam-betas '(0.9, 0.999)' --adam-eps 1e-8 --lr 5e-4) ;;
  *) fail "OPTIMIZER=$OPTIMIZER: choose adadelta or adam" ;;
esac

fairseq-train "${words[1]}" --user-dir "$root/lwc_fairseq" --task translation --arch "$preset" "${optimizer[@]}" \
  --criterion cross_entropy --clip-norm 5.0 --batch-size 80 --dropout 0.2 --seed 1 \
  --no-epoch-checkpoints --log-format simple --log-interval 100 --save-dir "$out" "${flags[@]}"
