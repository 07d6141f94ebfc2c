#!/usr/bin/env bash
# Train one model on the data that prepare.sh wrote; started again, it resumes.
#
#   bash examples/multi30k/train.sh MODEL [DATA] [OUT] [more flags of fairseq-train ...]
#
#   MODEL  lwc, transformer, lstm, or DeepAtt and its relatives: deepatt, udeepatt, vdeepatt, wideatt, deepnmt,
#          rnnsearch, mheadnmt
#
# All models see the same batches: the task counts source plus target tokens, and so bounds them for any.
set -euo pipefail
absolute() { case $1 in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; } # before the folder changes
model=${1:?usage: train.sh MODEL [DATA] [OUT] [flags ...]}
data=${2:+$(absolute "$2")}
out=${3:+$(absolute "$3")}
cd "$(dirname "$0")/../.."
[ -d .venv ] && export PATH="$PWD/.venv/bin:$PATH"
data=${data:-runs/multi30k/data}
out=${out:-runs/multi30k/$model}
shift $(($# < 3 ? $# : 3))

case $model in
  lwc) architecture=(--arch lwc_transformer_small) ;;
  transformer)
    # fairseq's own, 6 + 6 layers of the same sizes: as many layer weights as 14 shared ones
    architecture=(--arch transformer_small)
    ;;
  deepatt | udeepatt | vdeepatt | wideatt | deepnmt | rnnsearch | mheadnmt)
    architecture=(--arch "$model" --embed-dim 128 --hidden-dim 128 --init-std 0.1 --clip-norm 5)
    ;;
  lstm)
    # fairseq's own, as an RNNSearch of the same widths
    architecture=(--arch lstm --encoder-bidirectional --encoder-embed-dim 128 --encoder-hidden-size 128
      --decoder-embed-dim 128 --decoder-hidden-size 128 --decoder-out-embed-dim 128 --clip-norm 5)
    ;;
  *) echo "train.sh: unknown model $model; see the head of $0" >&2; exit 1 ;;
esac

fairseq-train "$data" --user-dir lwc_fairseq --task concat_translation "${architecture[@]}" \
  --optimizer adam --adam-betas '(0.9, 0.98)' --lr 2e-3 --lr-scheduler inverse_sqrt --warmup-updates 400 \
  --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --dropout 0.2 \
  --max-tokens 4096 --max-epoch 20 --patience 5 --seed 1 --no-epoch-checkpoints \
  --log-format simple --log-interval 50 --save-dir "$out" "$@"
