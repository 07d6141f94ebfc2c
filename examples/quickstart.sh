#!/usr/bin/env bash
# From nothing to a scored translation: set up, make a demo corpus, train a small model, translate, score, report.
#
#   bash examples/quickstart.sh [--arch PRESET] [--fresh] [--out FOLDER]
#
#   --arch PRESET  which model (default: lwc_transformer_small): one of those in examples/quickstart/models.yaml
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

models=examples/quickstart/models.yaml
if ! grep -q "arch: $arch\b" "$models"; then
  echo "quickstart: --arch $arch: no preset that it knows; $models has them" >&2
  exit 2
fi
text=$out/text bpe=$out/bpe data=$out/data model=$out/$arch/seed1
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

# the models that were trained before are in the table and in the report, too
rows=("$arch")
for file in "$out"/*/seed1/generated.txt; do
  name=$(basename "$(dirname "$(dirname "$file")")")
  [ ! -e "$file" ] || [ "$name" = "$arch" ] || rows+=("$name")
done
table=(lwc-fairseq table "$models" --data "$data" --out "$out" --rows "${rows[@]}")
if announce "training $arch and translating the test set, two to four minutes on two cores" "$model/tabled"; then
  "${table[@]}" > "$out/table.log"
  touch "$model/tabled"
fi
note "$(cat "$model/train.command")"
note "$(cat "$model/generate.command") > $q_model/generated.txt"

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

report=(lwc-fairseq report "$out" --gold "$text/test.align")
note "$(quoted "${table[@]}" --collect)"
note "$(quoted "${report[@]}")"
if announce "making one page of it: scores, word alignments, pictures of attention, translations" "$model/reported"; then
  log=$model/report.log
  "${report[@]}" > "$log" 2>&1
  touch "$model/reported"
fi

python examples/quickstart/summary.py "$text" "$model" "$out/commands"
echo "This took $((SECONDS - began)) s after the set-up."
