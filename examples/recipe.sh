# Functions that the scripts in examples/ share. A script sources this file and then calls `parse`. The commands in
# .venv come first on the path.
set -euo pipefail
unset CDPATH # with it, `cd` may print
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PATH="$root/.venv/bin:$PATH"
program=${0##*/} # error messages begin with it

# ---- The command line ----

# fail MESSAGE [STATUS]: ends the script.
fail() {
  echo "$program: $1" >&2
  exit "${2:-1}"
}

# help_text: prints the comment at the head of the script.
help_text() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; }

# usage: ends a script that was called with the wrong arguments.
usage() {
  echo "usage: $(help_text | sed -n '/^ *bash examples/ { s/^ *//; p; q }') (--help explains the arguments)" >&2
  exit 2
}

# parse OPTIONS "$@": reads the command line. OPTIONS lists the options of the script, with a `=` after each that takes
# a value: '--from= --out='. A script that sets up the environment sets $sets_up before. Sets $from to the value of
# --from, and so on, ${words[@]} to the other arguments and ${flags[@]} to what follows `--`, if OPTIONS ends with it.
# For --help it prints the head of the script.
from='' out='' words=() flags=()
parse() {
  local options=" $1 "
  shift
  while [ $# -gt 0 ]; do
    case $1 in
      --help)
        help_text
        exit 0
        ;;
      --)
        [[ $options == *" -- "* ]] || fail "unknown argument --; --help lists the arguments" 2
        flags=("${@:2}")
        break
        ;;
      -*)
        case $options in
          *" $1= "*)
            [ $# -ge 2 ] || fail "$1 wants a value" 2
            printf -v "${1#--}" %s "$2"
            shift
            ;;
          *" $1 "*) printf -v "${1#--}" 1 ;;
          *) fail "unknown argument $1; --help lists the arguments" 2 ;;
        esac
        ;;
      *) words+=("$1") ;;
    esac
    shift
  done
  [ -n "${sets_up:-}" ] || command -v lwc-fairseq > /dev/null ||
    fail "lwc-fairseq is not installed: run \`bash $root/examples/setup_env.sh\` first"
  from=${from:+$(absolute "$from")} out=${out:+$(absolute "$out")}
  whole_number MERGES "${MERGES:-1}"
}

# whole_number NAME VALUE: fails unless the value is one, from 1.
whole_number() {
  [[ $2 =~ ^[1-9][0-9]*$ ]] || fail "$1 $2: give a whole number, at least 1" 2
}

# absolute PATH|URL: prints the path from the root folder; a URL stays as it is.
absolute() { case $1 in /* | *://*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; }

# ---- Steps ----

# step WHAT RESULT COMMAND...: makes RESULT, a file or a folder, unless it exists. The command writes to $making, which
# is renamed to RESULT when the command succeeds, so a step that was killed leaves no RESULT. The name
# has the number of this process, because another script may make the same. If the command sets $log, the error message
# names that file. If $steps is set, the steps are numbered: [1/7]. The command runs neither in an `if` nor before `||`,
# because bash ignores errors inside a function there.
doing='' log='' making='' steps='' current=0
step() {
  local title=$1 result=$2
  doing=$1 log=''
  shift 2
  if [ -n "$steps" ]; then
    current=$((current + 1)) title="[$current/$steps] $title"
  fi
  if [ -e "$result" ]; then
    echo "$title: done before"
    return
  fi
  echo "$title"
  remove_unfinished "$result"
  making=$result.$HOSTNAME.$$.making
  rm -rf "$making" # a restarted container may give the same number again
  trap stopped EXIT
  "$@"
  if [ -e "$result" ]; then
    rm -rf "$making" # another script was faster
  else
    mv -T "$making" "$result"
  fi
  trap - EXIT
}

# made_with FILE SETTINGS: fails if FILE, which a finished step has left in its folder, has other settings.
made_with() {
  local before
  before=$(cat "$1" 2> /dev/null || echo "$2")
  [ "$before" = "$2" ] || fail "${1%/*} was made with $before, not $2: name another folder by --out"
}

# remove_unfinished RESULT: removes what killed scripts of this machine have left of RESULT.
remove_unfinished() {
  local left process
  for left in "$1.$HOSTNAME".*.making; do
    process=${left%.making} process=${process##*.}
    [ -d "/proc/$process" ] || rm -rf "$left"
  done
}

# stopped: prints what failed, and removes $making. It is the trap of everything that takes long.
stopped() {
  rm -rf "$making"
  [ ! -f "$log" ] || tail -n 15 "$log" >&2
  echo "$program: stopped while $doing${log:+; the log is $log}" >&2
}

# ---- From archives to binary data: these functions write to $making ----

# archives GIB NAME...: fetches files of examples/sources.yaml into $out/archives. The whole recipe needs GIB of disk
# space.
archives() {
  python "$root/examples/fetch.py" "${@:2}" --to "$out/archives" --room "$1" ${from:+--from "$from"} > /dev/null
}

# extract SET SOURCE TARGET ARCHIVE SOURCE_FILE TARGET_FILE...: writes SET.SOURCE and SET.TARGET, corpus after corpus.
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

# tokenise FROM LANGUAGE...: tokenises each file FROM/*.LANGUAGE by Moses' rules. ${tokeniser[@]} are flags.
tokeniser=()
tokenise() {
  local source=$1 language file
  shift
  mkdir -p "$making"
  for language in "$@"; do
    for file in "$source"/*."$language"; do
      echo "  ${file##*/}" >&2
      sacremoses -l "$language" -j "$(nproc)" tokenize "${tokeniser[@]}" < "$file" > "$making/${file##*/}"
    done
  done
}

# clean FROM SOURCE TARGET FLAG...: leaves out training pairs; examples/clean.py has the flags.
clean() { python "$root/examples/clean.py" "$1" "$making" "${@:2}"; }

# joint_sentencepiece FROM PIECES SOURCE TARGET: learns sentencepiece on both sides of the training set together and
# applies it to all sets.
joint_sentencepiece() {
  local language set
  mkdir -p "$making"
  python "$root/examples/pieces.py" learn "$making/sentencepiece.model" "$2" "$1/train.$3" "$1/train.$4"
  for language in "$3" "$4"; do
    for set in train valid test; do
      python "$root/examples/pieces.py" apply "$making/sentencepiece.model" < "$1/$set.$language" > "$making/$set.$language"
    done
  done
}

# joint_bpe FROM MERGES SOURCE TARGET: learns BPE on both sides of the training set together and applies it to all sets.
joint_bpe() {
  local language
  mkdir -p "$making"
  cat "$1/train.$3" "$1/train.$4" | subword-nmt learn-bpe -s "$2" > "$making/codes"
  for language in "$3" "$4"; do
    apply_bpe "$1" "$making/codes" "$language"
  done
}

# separate_bpe FROM MERGES SOURCE TARGET: learns BPE on each side of the training set alone and applies it to all sets.
separate_bpe() {
  local language
  mkdir -p "$making"
  for language in "$3" "$4"; do
    subword-nmt learn-bpe -s "$2" < "$1/train.$language" > "$making/codes.$language"
    apply_bpe "$1" "$making/codes.$language" "$language"
  done
}

# apply_bpe FROM CODES LANGUAGE
apply_bpe() {
  local set
  for set in train valid test; do
    subword-nmt apply-bpe -c "$2" < "$1/$set.$3" > "$making/$set.$3"
  done
}

# binarise FROM SOURCE TARGET [FLAG...]: makes binary data.
binarise() {
  log=$1.binarise.log
  preprocess "$1" "$making" "${@:2}"
  "${command[@]}" > "$log" 2>&1
  describe_text "$1" "$2" "$3"
}

# describe_text FROM SOURCE TARGET: writes text.yaml, which tells `lwc-fairseq translate` how to prepare raw text, and
# copies the files that it names. ${preparation[@]} are KEY=VALUE about tokens and case; lwc_fairseq/preparation.py has the keys.
preparation=() truecase_model=''
describe_text() {
  local subwords=() codes
  for codes in "$1/codes" "$1/codes.$2"; do
    [ ! -f "$codes" ] || { cp "$codes" "$making/codes" && subwords=(bpe=subword_nmt codes=codes); }
  done
  codes=$1/sentencepiece.model
  [ ! -f "$codes" ] || { cp "$codes" "$making" && subwords=(bpe=sentencepiece codes=sentencepiece.model); }
  [ -z "$truecase_model" ] || cp "$truecase_model" "$making/truecase_model"
  python "$root/examples/describe.py" "$making" "source=$2" "target=$3" "${preparation[@]}" "${subwords[@]}"
}

# subwords_of DATA [KIND]: prints the kind of sub-words of binary data, or KIND if DATA has no text.yaml.
subwords_of() {
  if [ -n "${2:-}" ] && [ ! -f "$1/text.yaml" ]; then
    echo "$2"
  else
    python "$root/examples/describe.py" "$1" bpe
  fi
}

# preprocess FROM TO SOURCE TARGET [FLAG...]: sets ${command[@]}, which makes binary data.
preprocess() {
  command=(fairseq-preprocess -s "$3" -t "$4" --trainpref "$1/train" --validpref "$1/valid" --testpref "$1/test"
    --workers "$(nproc)" --destdir "$2" "${@:5}")
}

# ---- Steps that several recipes share ----

# tokens_to_data FROM SOURCE TARGET LONGEST joint|separate MERGES: keeps training pairs of at most LONGEST words a side,
# and goes on with pairs_to_data.
tokens_to_data() {
  step "choosing pairs" "$out/clean" clean "$1" "$2" "$3" --longest "$4"
  pairs_to_data "$out/clean" "$2" "$3" "$5" "$6"
}

# learn_subwords LEARN FROM MERGES SOURCE TARGET: calls the function LEARN, and writes its name and MERGES to `settings`.
learn_subwords() {
  "$@"
  echo "$1 $3" > "$making/settings"
}

# pairs_to_data FROM SOURCE TARGET joint|separate MERGES: learns BPE, applies it and makes binary data in $out/data.
# With joint BPE both languages share a dictionary. The environment variable MERGES replaces the argument. If
# $sentencepiece is set, sentencepiece makes the sub-words. ${dictionary[@]} are flags of fairseq-preprocess.
sentencepiece='' dictionary=()
pairs_to_data() {
  local languages=("$3" "$2") joined=() learn=$4_bpe merges=${MERGES:-$5}
  [ "$4" = separate ] || { languages=("$3") joined=(--joined-dictionary); }
  [ -z "$sentencepiece" ] || learn=$4_sentencepiece
  made_with "$out/bpe/settings" "$learn $merges"
  step "learning and applying sub-words" "$out/bpe" learn_subwords "$learn" "$1" "$merges" "$2" "$3"
  step "binarising" "$out/data" binarise "$out/bpe" "$2" "$3" "${joined[@]}" "${dictionary[@]}"
  summary "$out/bpe" "${languages[@]}"
}

# summary FOLDER LANGUAGE...: prints the sizes of the dictionaries and of the training set in FOLDER.
summary() {
  local language
  for language in "${@:2}"; do
    echo "$out/data: $language, $(($(wc -l < "$out/data/dict.$language.txt") + 4)) types"
  done
  echo "$out/data: $(wc -l < "$1/train.$2") training pairs"
}

# ---- Training and translation ----

# needs_data: fails unless prepare.sh has finished.
needs_data() { [ -d "$out/data" ] || fail "$out/data is missing: run prepare.sh first"; }

# train_table TABLE: trains and scores the rows of TABLE on the data of prepare.sh, in $out/table. Keeps finished runs.
train_table() {
  needs_data
  local subwords
  subwords=$(subwords_of "$out/data") # in a variable of its own, because bash ignores errors inside a word
  [ "$subwords" != sentencepiece ] || flags=(--generate '--post-process sentencepiece' "${flags[@]}")
  lwc-fairseq table "$1" --data "$out/data" --out "$out/table" "${flags[@]}"
}

# translate CHECKPOINT[:CHECKPOINT...] [FLAG...]: translates the test set of prepare.sh. Sets $translations to the file
# with the translations, which lies beside the first checkpoint. It replaces the file of an earlier call, but that of an
# ensemble has another name.
translate() {
  needs_data
  local result=${1%%:*}
  result=${result%.pt}
  [[ $1 != *:* ]] || result+=.ensemble
  result+=.test
  generate "$out/data" "$1" "$result" "${@:2}"
  translations=$result.txt
}

# generate DATA CHECKPOINT[:CHECKPOINT...] RESULT [FLAG...]: translates the test set of DATA. RESULT.txt has a line for
# each sentence, in the order of the test set; RESULT.generated is the output of fairseq-generate.
generate() {
  local first=${2%%:*}
  [ -f "$first" ] || fail "$first: there is no such checkpoint"
  mkdir -p "$(dirname "$3")"
  doing=translating log=$3.log making=$3.$$.making
  trap stopped EXIT
  fairseq-generate "$1" --user-dir "$root/lwc_fairseq" --task concat_translation --path "$2" --max-tokens 8000 \
    "${@:4}" "${flags[@]}" > "$making" 2> "$log"
  trap - EXIT
  rm -f "$3.txt" # it would be that of an earlier call if this one were interrupted here
  mv "$making" "$3.generated"
  in_order "$3.generated" H 3 > "$3.txt" || {
    rm "$3.txt"
    fail "$3.generated: there are no translations in it: leave out flags such as --quiet and --results-path"
  }
}

# in_order GENERATED KIND FIELD: prints a field of the lines KIND of fairseq-generate, sorted by sentence number.
in_order() { (export LC_ALL=C && grep -a "^$2-" "$1" | sed "s/^$2-//" | sort -n | cut -f "$3"); }
