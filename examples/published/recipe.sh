# What the scripts in examples/published share. A script sets `source`, `target`, `test_set`, `lenpen` and `room`, the
# GiB of disk space that it needs (an estimate), sources this file, and calls `model_and_data` and `translate_published`.
source "$(dirname "$0")/../recipe.sh"
parse '--from= --out= --' "$@"
[ ${#words[@]} = 0 ] || usage
out=${out:-$PWD/runs/published-${program%.sh}}
steps=3

# unpack COMMAND...: writes the output of a command to $making.
unpack() { "$@" > "$making"; }

# unpack_test_set: unpacks the archive with the binary test set.
unpack_test_set() {
  mkdir -p "$making"
  tar -xzf "$out/archives/$test_set" -C "$making"
}

# import_model: converts the authors' checkpoint. It is refused if it is of another model, or if the
# dictionaries differ from it in size.
import_model() { lwc-fairseq import "$out/joint.pt" "$making" --data "$data"; }

# model_and_data ARCHIVES COMMAND...: fetches the model in ARCHIVES, a list of names, and the test set. The command prints
# the checkpoint in the archives. Sets $data to the folder of the test set, wherever it lies in its archive.
model_and_data() {
  local names
  read -ra names <<< "$1"
  archives "$room" "${names[@]}" "$test_set"
  step "unpacking the model" "$out/joint.pt" unpack "${@:2}"
  step "unpacking the test set" "$out/test_set" unpack_test_set
  data=$(find "$out/test_set" -name "test.$source-$target.$source.idx" -printf '%h\n' | head -n 1)
  [ -f "$data/dict.$source.txt" ] ||
    fail "$out/archives/$test_set has no test.$source-$target.$source.idx beside a dict.$source.txt: is it the test set?"
  step "importing the model" "$out/model.pt" import_model
}

# translate_published AS_REPORTED: translates the test set as the authors do, and prints its BLEU beside theirs.
# If `split_compounds` is set, BLEU is computed after the parts of words with hyphens were made words of their own.
split_compounds=''
translate_published() {
  local side
  generate "$data" "$out/model.pt" "$out/test" --beam 5 --lenpen "$lenpen" --post-process
  in_order "$out/test.generated" T 2 > "$out/test.reference"
  for side in txt reference; do
    if [ -n "$split_compounds" ]; then
      sed -E 's/(\S)-(\S)/\1 ##AT##-##AT## \2/g' "$out/test.$side" > "$out/test.$side.scored"
    else
      cp "$out/test.$side" "$out/test.$side.scored"
    fi
  done
  echo "BLEU of $out/test.txt; the authors report $1"
  sacrebleu "$out/test.reference.scored" -i "$out/test.txt.scored" --tokenize none --force --score-only --width 2
}
