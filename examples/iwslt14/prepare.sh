#!/usr/bin/env bash
# Make binary data of IWSLT14, German, Romanian or Spanish to English, with the sets of He et al. (2018).
#
#   bash examples/iwslt14/prepare.sh de|ro|es [--longest WORDS] [--from FOLDER|URL] [--out FOLDER]
#
#   --longest  leave out training pairs with a side of more words (default: 50 for de, 175 for ro and es)
#   --from     a folder with the archives, or a mirror (default: the addresses in examples/sources.yaml)
#   --out      where everything goes (default: runs/iwslt14-de and so on); the binary data go to its folder `data`
#
# The environment variable MERGES is the number of joint BPE merges (default: the number of types in the paper).
# Finished steps are kept.
source "$(dirname "$0")/../recipe.sh"
longest=''
parse '--longest= --from= --out=' "$@"
[ ${#words[@]} = 1 ] || usage
language=${words[0]}
case $language in
  de) merges=31000 limit=50 files=(iwslt14-de-en.tgz) ;;
  ro) merges=39000 limit=175 files=(iwslt14.tgz iwslt14-test.tgz) ;;
  es) merges=34000 limit=175 files=(iwslt14.tgz iwslt14-test.tgz) ;;
  *) usage ;;
esac
longest=${longest:-$limit}
whole_number --longest "$longest"
out=${out:-$PWD/runs/iwslt14-$language}
made_with "$out/clean/settings" "--longest $longest"

archives 3 "${files[@]}"
text() { python "$root/examples/iwslt14/extract.py" "$language" "${files[@]/#/"$out/archives/"}" --out "$making"; }
choose() {
  clean "$out/tokens" "$language" en --longest "$longest" --ratio 1.5
  echo "--longest $longest" > "$making/settings"
}
sets() { python "$root/examples/iwslt14/split.py" "$out/clean" "$language" --out "$making"; }

step "extracting the sentences" "$out/text" text
step "tokenising" "$out/tokens" tokenise "$out/text" "$language" en
step "choosing pairs" "$out/clean" choose
step "choosing sets" "$out/sets" sets
preparation=(tokenize=true)
[ "$language" != de ] || preparation+=(case=lower)
pairs_to_data "$out/sets" "$language" en joint "$merges"
