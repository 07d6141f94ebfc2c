#!/usr/bin/env bash
# From nothing to a scored translation: set up, make a demo corpus, train a small model, translate, score.
#
#   bash examples/quickstart.sh [--arch PRESET] [--fresh] [--out FOLDER]
#
#   --arch PRESET  which model, at a small size (default: lwc_transformer_small): any preset of the README's table
#   --fresh        start over; otherwise finished steps are kept and training resumes
#   --out FOLDER   where everything goes (default: runs/quickstart)
set -euo pipefail
from=$PWD
cd "$(dirname "$0")/.."

arch=lwc_transformer_small out=runs/quickstart fresh=
while [ $# -gt 0 ]; do
  case $1 in
    --arch)
      [ $# -ge 2 ] || { echo "quickstart: --arch wants a preset" >&2; exit 2; }
      arch=$2
      shift
      ;;
    --fresh) fresh=1 ;;
    --out)
      [ $# -ge 2 ] || { echo "quickstart: --out wants a folder" >&2; exit 2; }
      case $2 in /*) out=$2 ;; *) out=$from/$2 ;; esac
      shift
      ;;
    *) echo "quickstart: unknown argument $1; see the head of $0" >&2; exit 2 ;;
  esac
  shift
done

# the sizes and the learning rate that suit the demo corpus
loss=label_smoothed_cross_entropy
case $arch in
  lwc_transformer | lwc_transformer_small | lwc_transformer_base | lwc_transformer_big)
    sizes=(--layers 4 --embed-dim 128 --ffn-embed-dim 512 --attention-heads 4)
    schedule=(--lr 4e-3 --warmup-updates 200) updates=850
    ;;
  deepatt | udeepatt | vdeepatt | wideatt | deepnmt | rnnsearch | mheadnmt)
    sizes=(--embed-dim 128 --hidden-dim 128 --init-std 0.1)
    schedule=(--lr 4e-3 --warmup-updates 100 --clip-norm 5) updates=500
    ;;
  abd)
    sizes=(--embed-dim 128 --hidden-dim 128 --init-std 0.1)
    schedule=(--lr 4e-3 --warmup-updates 100 --clip-norm 5) updates=500
    loss=bidirectional_cross_entropy
    ;;
  *) echo "quickstart: --arch $arch: no preset that it knows; the README's table has them" >&2; exit 2 ;;
esac
text=$out/text bpe=$out/bpe data=$out/data model=$out/$arch
step=0 doing="setting up" log=
stopped() {
  local status=$?
  [ $status -eq 0 ] && return
  [ -f "$log" ] && tail -n 15 "$log" >&2
  echo "quickstart: stopped while $doing${log:+; the log is $log}" >&2
}
trap stopped EXIT

# announce WHAT RESULT: says what comes next; true if its result is not there yet
announce() {
  step=$((step + 1)) doing=$1 log=
  printf '[%d/7] %s' "$step" "$1"
  if [ -e "$2" ]; then
    echo ": done before"
    return 1
  fi
  echo
}

# note COMMAND: keeps a command for the summary;  quoted WORD...: the words, as a shell would read them
note() { echo "$1" >> "$out/commands"; }
quoted() { printf '%q ' "$@"; }

training_progress() {
  sed -un "s/.*train_inner.* ppl=\([0-9.]*\).* num_updates=\([0-9]*\).*/      update \2 of $updates, perplexity \1/p
           s/.*| valid on.* ppl \([0-9.]*\).* num_updates \([0-9]*\).*/      validation after \2 updates: perplexity \1/p"
}

bash examples/setup_env.sh
export PATH="$PWD/.venv/bin:$PATH"
began=$SECONDS
if [ -n "$fresh" ] && [ -e "$out" ]; then
  [ -f "$out/commands" ] || { echo "quickstart: $out was not made by this script; remove it yourself" >&2; exit 1; }
  rm -rf "$out"
fi
mkdir -p "$out"
: > "$out/commands"

note "$(quoted python examples/quickstart/corpus.py --out "$text")"
if announce "making the demo corpus: German-English, 20,000 pairs" "$text"; then
  rm -rf "$text.making"
  python examples/quickstart/corpus.py --out "$text.making"
  mv "$text.making" "$text"
fi

q_text=$(quoted "$text") q_bpe=$(quoted "$bpe") q_model=$(quoted "$model")
q_text=${q_text% } q_bpe=${q_bpe% } q_model=${q_model% }
note "mkdir -p $q_bpe; cat $q_text/train.de $q_text/train.en | subword-nmt learn-bpe -s 2000 > $q_bpe/codes"
note "for f in {train,valid,test}.{de,en}; do subword-nmt apply-bpe -c $q_bpe/codes < $q_text/\$f > $q_bpe/\$f; done"
if announce "learning a joint BPE of 2,000 merges" "$bpe"; then
  rm -rf "$bpe.making"
  mkdir "$bpe.making"
  log=$out/bpe.log
  cat "$text/train.de" "$text/train.en" | subword-nmt learn-bpe -s 2000 > "$bpe.making/codes" 2> "$log"
  for file in {train,valid,test}.{de,en}; do
    subword-nmt apply-bpe -c "$bpe.making/codes" < "$text/$file" > "$bpe.making/$file"
  done
  mv "$bpe.making" "$bpe"
fi

binarise=(fairseq-preprocess -s de -t en --joined-dictionary
  --trainpref "$bpe/train" --validpref "$bpe/valid" --testpref "$bpe/test" --workers 2 --destdir)
note "$(quoted "${binarise[@]}" "$data")"
if announce "binarising with one joined dictionary" "$data"; then
  rm -rf "$data.making"
  log=$out/preprocess.log
  "${binarise[@]}" "$data.making" > "$log" 2>&1
  mv "$data.making" "$data"
fi

train=(fairseq-train "$data" --user-dir lwc_fairseq --task concat_translation --arch "$arch"
  "${sizes[@]}" --dropout 0.1
  --optimizer adam --adam-betas '(0.9, 0.98)' --lr-scheduler inverse_sqrt "${schedule[@]}"
  --criterion "$loss" --label-smoothing 0.1
  --max-tokens 3000 --max-update "$updates" --seed 1
  --save-dir "$model" --no-epoch-checkpoints --log-format simple --log-interval 25)
note "$(quoted "${train[@]}")"
if announce "training $arch, two to four minutes on two cores" "$model/trained"; then
  mkdir -p "$model"
  log=$model/train.log
  "${train[@]}" 2>&1 | tee "$log" | training_progress
  touch "$model/trained"
fi

generate=(fairseq-generate "$data" --user-dir lwc_fairseq --task concat_translation
  --path "$model/checkpoint_best.pt" --beam 5 --batch-size 100 --post-process subword_nmt)
note "$(quoted "${generate[@]}")> $q_model/generated.txt"
if announce "translating the test set" "$model/generated.txt"; then
  log=$model/generate.log
  "${generate[@]}" > "$model/generated.making" 2> "$log"
  mv "$model/generated.making" "$model/generated.txt"
fi

note "grep ^H- $q_model/generated.txt | sed s/^H-// | sort -n | cut -f 3 > $q_model/test.en"
if announce "putting the translations in order" "$model/test.en"; then
  grep '^H-' "$model/generated.txt" | sed 's/^H-//' | sort -n | cut -f 3 > "$model/test.en.making"
  mv "$model/test.en.making" "$model/test.en"
fi

# --force: the corpus is tokenised, which sacrebleu would remark on
score=(sacrebleu "$text/test.en" -i "$model/test.en" --metrics bleu chrf --force)
note "$(quoted "${score[@]}")"
if announce "scoring" "$model/score.json"; then
  log=$model/score.log
  "${score[@]}" > "$model/score.making" 2> "$log"
  mv "$model/score.making" "$model/score.json"
fi

python examples/quickstart/summary.py "$text" "$model" "$out/commands"
echo "This took $((SECONDS - began)) s after the set-up."
