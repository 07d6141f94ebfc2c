# What the recipes' prepare.sh share; they source it. After it: $root, $from (of --from), $out (of --out), ${words[@]},
# what else was on the command line; and .venv is on the path.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ -d "$root/.venv" ] && export PATH="$root/.venv/bin:$PATH"

fail() {
  echo "${0##*/}: $1" >&2
  exit 1
}
absolute() { case $1 in /* | *://*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; }

from='' out='' words=()
while [ $# -gt 0 ]; do
  case $1 in
    --from | --out)
      [ $# -ge 2 ] || fail "$1 wants a value"
      if [ "$1" = --from ]; then from=$(absolute "$2"); else out=$(absolute "$2"); fi
      shift
      ;;
    -*) fail "unknown option $1; see the head of $0" ;;
    *) words+=("$1") ;;
  esac
  shift
done

# fetch FOLDER NAME...: files of examples/sources.yaml; their paths are printed
fetch() {
  local folder=$1
  shift
  python "$root/examples/fetch.py" "$@" --to "$folder" ${from:+--from "$from"}
}

# step WHAT RESULT COMMAND...: the command writes to $making, which becomes RESULT when it has ended well; what is
# there is not made again, so that a step that was killed leaves nothing that looks finished
step() {
  local what=$1 result=$2
  shift 2
  if [ -e "$result" ]; then
    echo "$what: done before"
    return
  fi
  echo "$what"
  rm -rf "$result.making"
  making=$result.making
  "$@" || fail "stopped while $what"
  mv "$result.making" "$result"
}

# tokenise FROM TO LANGUAGE...: every file FROM/*.LANGUAGE by Moses' rules, into the folder TO
tokenise() {
  local source=$1 target=$2 language file
  shift 2
  mkdir -p "$target"
  for language in "$@"; do
    for file in "$source"/*."$language"; do
      echo "  ${file##*/}" >&2
      sacremoses -l "$language" -j "$(nproc)" -q tokenize -x < "$file" > "$target/${file##*/}"
    done
  done
}

# joint_bpe FROM TO MERGES SOURCE TARGET: learnt on both sides of the training set, applied to all sets
joint_bpe() {
  local source=$1 target=$2 merges=$3 file
  mkdir -p "$target"
  cat "$source/train.$4" "$source/train.$5" | subword-nmt learn-bpe -s "$merges" > "$target/codes"
  for file in "$source"/{train,valid,test}.{"$4","$5"}; do
    subword-nmt apply-bpe -c "$target/codes" < "$file" > "$target/${file##*/}"
  done
}

# binarise FROM TO SOURCE TARGET [FLAG...]: as fairseq-preprocess does
binarise() {
  local source=$1 target=$2
  fairseq-preprocess -s "$3" -t "$4" --trainpref "$source/train" --validpref "$source/valid" --testpref "$source/test" \
    --workers "$(nproc)" --destdir "$target" "${@:5}" > "$source.binarise.log" 2>&1 ||
    { tail -n 5 "$source.binarise.log" >&2; return 1; }
}
