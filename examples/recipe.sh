# What the scripts of the examples share; they source it. After it: $root, $from (of --from), $out (of --out), ${words[@]}, what
# else was on the command line, ${flags[@]}, what followed `--`; and .venv is on the path.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ -d "$root/.venv" ] && export PATH="$root/.venv/bin:$PATH"

fail() {
  echo "${0##*/}: $1" >&2
  exit 1
}
absolute() { case $1 in /* | *://*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; }

from='' out='' words=() flags=()
while [ $# -gt 0 ]; do
  case $1 in
    --from | --out)
      [ $# -ge 2 ] || fail "$1 wants a value"
      if [ "$1" = --from ]; then from=$(absolute "$2"); else out=$(absolute "$2"); fi
      shift
      ;;
    --)
      shift
      flags=("$@")
      break
      ;;
    -*) fail "unknown option $1; see the head of $0" ;;
    *) words+=("$1") ;;
  esac
  shift
done

# archives GIB NAME...: files of examples/sources.yaml, into $out/archives; the recipe as a whole takes GIB on the disk
archives() {
  python "$root/examples/fetch.py" "${@:2}" --to "$out/archives" --room "$1" ${from:+--from "$from"} > /dev/null
}

# step WHAT RESULT COMMAND...: the command writes to $making, which becomes RESULT when it has ended well; what is
# there is not made again, so that a step that was killed leaves nothing that looks finished. The command is not the
# condition of anything, in which bash would go on after errors inside a function
step() {
  doing=$1
  local result=$2
  shift 2
  if [ -e "$result" ]; then
    echo "$doing: done before"
    return
  fi
  echo "$doing"
  making=$result.making
  rm -rf "$making"
  trap 'echo "${0##*/}: stopped while $doing" >&2' EXIT
  "$@"
  trap - EXIT
  mv "$making" "$result"
}

# extract SET SOURCE TARGET ARCHIVE SOURCE_FILE TARGET_FILE...: $making/SET.SOURCE and .TARGET, all corpora one after the
# other
extract() {
  local set=$1 source=$2 target=$3 corpora=()
  shift 3
  while [ $# -gt 0 ]; do
    corpora+=(--corpus "$1" "$2" "$3")
    shift 3
  done
  mkdir -p "$making"
  python "$root/examples/extract.py" "$source" "$target" --archives "$out/archives" --to "$making/$set" "${corpora[@]}"
}

# tokenise FROM TO LANGUAGE...: every file FROM/*.LANGUAGE by Moses' rules, into the folder TO; ${tokeniser[@]} are flags
tokeniser=()
tokenise() {
  local source=$1 target=$2 language file
  shift 2
  mkdir -p "$target"
  for language in "$@"; do
    for file in "$source"/*."$language"; do
      echo "  ${file##*/}" >&2
      sacremoses -l "$language" -j "$(nproc)" tokenize "${tokeniser[@]}" < "$file" > "$target/${file##*/}"
    done
  done
}

# clean FROM TO SOURCE TARGET FLAG...: training pairs by examples/clean.py, the other sets as they are
clean() { python "$root/examples/clean.py" "$@"; }

# joint_bpe FROM TO MERGES SOURCE TARGET: learnt on both sides of the training set, applied to all sets
joint_bpe() {
  local source=$1 target=$2 language
  mkdir -p "$target"
  cat "$source/train.$4" "$source/train.$5" | subword-nmt learn-bpe -s "$3" > "$target/codes"
  for language in "$4" "$5"; do
    apply_bpe "$source" "$target" "$target/codes" "$language"
  done
}

# separate_bpe FROM TO MERGES SOURCE TARGET: learnt on each side for itself
separate_bpe() {
  local source=$1 target=$2 language
  mkdir -p "$target"
  for language in "$4" "$5"; do
    subword-nmt learn-bpe -s "$3" < "$source/train.$language" > "$target/codes.$language"
    apply_bpe "$source" "$target" "$target/codes.$language" "$language"
  done
}

# apply_bpe FROM TO CODES LANGUAGE
apply_bpe() {
  local set
  for set in train valid test; do
    subword-nmt apply-bpe -c "$3" < "$1/$set.$4" > "$2/$set.$4"
  done
}

# binarise FROM TO SOURCE TARGET [FLAG...]: as fairseq-preprocess does
binarise() {
  local source=$1 target=$2
  fairseq-preprocess -s "$3" -t "$4" --trainpref "$source/train" --validpref "$source/valid" --testpref "$source/test" \
    --workers "$(nproc)" --destdir "$target" "${@:5}" > "$source.binarise.log" 2>&1 ||
    { tail -n 5 "$source.binarise.log" >&2; return 1; }
}

# summary FOLDER LANGUAGE...: what prepare.sh has made; FOLDER is what was binarised
summary() {
  local language
  for language in "${@:2}"; do
    echo "$out/data: $language, $(($(wc -l < "$out/data/dict.$language.txt") + 4)) types"
  done
  echo "$out/data: $(wc -l < "$1/train.$2") training pairs"
}

# train_table TABLE: its rows on the data of prepare.sh; models and the table go to $out/table. What is done is kept
train_table() {
  [ -d "$out/data" ] || fail "$out/data is missing: run prepare.sh first"
  lwc-fairseq table "$1" --data "$out/data" --out "$out/table" "${flags[@]}"
}

# translate CHECKPOINT[:CHECKPOINT...] [FLAG...]: the test set of prepare.sh. $translations names the file, beside the first
# checkpoint
translate() {
  [ -d "$out/data" ] || fail "$out/data is missing: run prepare.sh first"
  local result=${1%%:*}
  result=${result%.pt}.test
  generate "$out/data" "$1" "$result" "${@:2}"
  translations=$result.txt
}

# generate DATA CHECKPOINT[:CHECKPOINT...] RESULT [FLAG...]: the test set, translated; RESULT.txt has a line for each of its
# sentences, in their order
generate() {
  local first=${2%%:*}
  [ -f "$first" ] || fail "$first: there is no such checkpoint"
  fairseq-generate "$1" --user-dir "$root/lwc_fairseq" --task concat_translation --path "$2" --max-tokens 8000 \
    "${@:4}" "${flags[@]}" > "$3.making" 2> "$3.log" ||
    { tail -n 5 "$3.log" >&2; fail "stopped while translating; the log is $3.log"; }
  mv "$3.making" "$3.generated"
  in_order "$3.generated" H 3 > "$3.txt"
}

# in_order GENERATED KIND FIELD: fairseq-generate's lines KIND, which come in the order of their batches, sorted back
in_order() { grep "^$2-" "$1" | sed "s/^$2-//" | sort -n | cut -f "$3"; }
