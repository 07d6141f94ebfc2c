#!/usr/bin/env bash
# Go from nothing to a scored translation: set up .venv, make a demo corpus, train a small model, translate, score,
# report.
#
#   bash examples/quickstart.sh [--arch PRESET] [--fresh] [--out FOLDER]
#
#   --arch PRESET  the model, one of those in examples/quickstart/models.yaml (default: lwc_transformer_small)
#   --fresh        start over; without it, finished steps are kept and training resumes
#   --out FOLDER   where everything goes (default: runs/quickstart)
source "$(dirname "$0")/recipe.sh"
program=quickstart sets_up=1 arch=lwc_transformer_small fresh=''
parse '--arch= --fresh --out=' "$@"
[ ${#words[@]} = 0 ] || usage
cd "$root" # the commands that it prints at the end run there

models=examples/quickstart/models.yaml
known=$(sed -n 's/.*arch: \([a-z_]*\).*/\1/p' "$models" | sort -u | xargs)
[[ -n $arch && " $known " == *" $arch "* ]] || fail "--arch '$arch': choose one of $known" 2

out=${out:-runs/quickstart}
text=$out/text bpe=$out/bpe data=$out/data commands=$out/commands

if [ ! -f "$commands" ] && [ -n "$(ls -A "$out" 2> /dev/null)" ]; then
  fail "--out $out: the folder has files that this script did not make; name another folder"
fi
bash examples/setup_env.sh || fail "stopped while setting up"
began=$SECONDS
[ -z "$fresh" ] || rm -rf "$out"
mkdir -p "$out"
: > "$commands"

# note COMMAND: adds a command to those that the summary prints.
note() { echo "$1" >> "$commands"; }
# quoted WORD...: prints the words as a shell would read them.
quoted() {
  local words
  words=$(printf '%q ' "$@")
  echo "${words% }"
}

# `lwc-fairseq table` puts the run of a model into a folder of its own; this sets $model and the paths inside.
assignments=$(python examples/quickstart/layout.py "$out" "$arch")
eval "$assignments"
translations=$model/test.en score=$model/score.json
tabled=$model/tabled reported=$model/reported # empty files: their steps are done

# The table and the report show every model that has been trained, this one first.
rows=("$arch")
for name in "${translated[@]}"; do
  [ "$name" = "$arch" ] || rows+=("$name")
done
table=(lwc-fairseq table "$models" --data "$data" --out "$out" --rows "${rows[@]}")
# Where a CPU multiplies in bfloat16 much faster, training does. Decided once, because a run that continues must do as before.
precision=$out/precision
[ -f "$precision" ] || {
  python examples/quickstart/precision.py > "$precision.making" # not before &&, after which bash would go on
  mv "$precision.making" "$precision"
}
read -r -a half < "$precision" || true
table+=("${half[@]/#/--train=}")
# sacrebleu wants --force because the text is tokenised.
sacrebleu=(sacrebleu "$text/test.en" -i "$translations" --metrics bleu chrf --force)
report=(lwc-fairseq report "$out" --gold "$text/test.align")

make_corpus() { python examples/quickstart/corpus.py --out "$making"; }
learn_bpe() {
  log=$out/bpe.log
  (joint_bpe "$text" 2000 de en) 2> "$log"
}
train() {
  "${table[@]}" > "$out/table.log"
  touch "$making"
}
put_in_order() { in_order "$generated" H 3 > "$making"; }
compute_scores() {
  log=$model/score.log
  "${sacrebleu[@]}" > "$making" 2> "$log"
}
write_report() {
  log=$model/report.log
  "${report[@]}" > "$log" 2>&1
  touch "$making"
}

preparation=(tokenize=true)
steps=7
step "making the demo corpus: German-English, 20,000 pairs" "$text" make_corpus
step "learning a joint BPE of 2,000 merges" "$bpe" learn_bpe
step "binarising with one joined dictionary" "$data" binarise "$bpe" de en --joined-dictionary
step "training $arch and translating the test set, two to four minutes on two cores" "$tabled" train
step "putting the translations in order" "$translations" put_in_order
step "scoring" "$score" compute_scores
step "making one page of it: scores, word alignments, pictures of attention, translations" "$reported" write_report

q_text=$(quoted "$text") q_bpe=$(quoted "$bpe") q_generated=$(quoted "$generated")
preprocess "$bpe" "$data" de en --joined-dictionary
note "$(quoted python examples/quickstart/corpus.py --out "$text")"
note "mkdir -p $q_bpe; cat $q_text/train.de $q_text/train.en | subword-nmt learn-bpe -s 2000 > $q_bpe/codes"
note "for f in {train,valid,test}.{de,en}; do subword-nmt apply-bpe -c $q_bpe/codes < $q_text/\$f > $q_bpe/\$f; done"
note "$(quoted "${command[@]}")"
note "$(head -n 1 "$train_command")"
note "$(head -n 1 "$generate_command") > $q_generated"
note "grep ^H- $q_generated | sed s/^H-// | sort -n | cut -f 3 > $(quoted "$translations")"
note "$(quoted "${sacrebleu[@]}")"
note "$(quoted "${table[@]}" --collect)"
note "$(quoted "${report[@]}")"
python examples/quickstart/summary.py "$text" "$model" "$commands"
echo "This took $((SECONDS - began)) s after the set-up."
