#!/usr/bin/env bash
# Train DeepAtt, or a model that the paper compares it with, with the paper's settings. The same command resumes an
# interrupted training.
#
#   bash examples/deepatt/train.sh PRESET DATA [--out FOLDER] [-- more flags of fairseq-train ...]
#
#   PRESET  deepatt, udeepatt, vdeepatt, wideatt, deepnmt, rnnsearch or mheadnmt
#   DATA    a folder that fairseq-preprocess wrote, with separate dictionaries or a joined one
#   --out   a folder for checkpoints (default: runs/PRESET)
#   flags   say when to stop: --max-update, --max-epoch or --patience; without one, training runs until interrupted
#
# The environment variable OPTIMIZER is adadelta (the default, as in most rows of the paper) or adam (as in its best
# rows).
source "$(dirname "$0")/../recipe.sh"
parse '--out= --' "$@"
[ ${#words[@]} = 2 ] || usage
preset=${words[0]} data=${words[1]}
out=${out:-$PWD/runs/$preset}

# Adadelta computes a step size and multiplies it by the learning rate. The paper does not give Adam's learning rate.
case ${OPTIMIZER:-adadelta} in
  adadelta) optimizer=(--optimizer adadelta --adadelta-rho 0.95 --adadelta-eps 1e-6 --lr 1.0) ;;
  adam) optimizer=(--optimizer adam --adam-betas '(0.9, 0.999)' --adam-eps 1e-8 --lr 5e-4) ;;
  *) fail "OPTIMIZER=$OPTIMIZER: choose adadelta or adam" 2 ;;
esac

fairseq-train "$data" --user-dir "$root/lwc_fairseq" --task translation --arch "$preset" "${optimizer[@]}" \
  --criterion cross_entropy --sentence-avg --clip-norm 5.0 --batch-size 80 --dropout 0.2 --seed 1 \
  --no-epoch-checkpoints --log-format simple --log-interval 100 --save-dir "$out" "${flags[@]}"
