#!/usr/bin/env bash
# IWSLT14 German, Romanian or Spanish to English, from the archive to binary data, with the splits of He et al. (2018).
#
#   bash examples/iwslt14/prepare.sh de|ro|es [--from FOLDER|URL] [--out FOLDER]
#
#   --from  a folder with the archives, or a mirror (default: their official place; examples/sources.yaml)
#   --out   where everything goes (default: runs/iwslt14-de and so on); the data are in its folder `data`
#
# MERGES is the number of joint BPE merges (default: as many as the paper has types). Finished steps are kept.
source "$(dirname "$0")/../recipe.sh"
language=${words[0]:-}
case $language in
  de) merges=31000 files=(iwslt14-de-en.tgz) ;;
  ro) merges=39000 files=(iwslt14.tgz iwslt14-test.tgz) ;;
  es) merges=34000 files=(iwslt14.tgz iwslt14-test.tgz) ;;
  *) fail "usage: prepare.sh de|ro|es [--from FOLDER|URL] [--out FOLDER]" ;;
esac
out=${out:-$PWD/runs/iwslt14-$language}
mkdir -p "$out"

archives 3 "${files[@]}"
text() {
  python "$root/examples/iwslt14/extract.py" "$language" "${files[@]/#/$out/archives/}" --out "$making"
}
tokens() { tokenise "$out/text" "$making" "$language" en; }
# not in the paper; usual for these data
pairs() { clean "$out/tokens" "$making" "$language" en --longest 175 --ratio 1.5; }
sets() { python "$root/examples/iwslt14/split.py" "$out/clean" "$language" --out "$making"; }
sub_words() { joint_bpe "$out/sets" "$making" "${MERGES:-$merges}" "$language" en; }
data() { binarise "$out/bpe" "$making" "$language" en --joined-dictionary; }

step "extracting the sentences" "$out/text" text
step "tokenising" "$out/tokens" tokens
step "choosing pairs" "$out/clean" pairs
step "choosing sets" "$out/sets" sets
step "learning and applying BPE" "$out/bpe" sub_words
step "binarising" "$out/data" data
summary "$out/bpe" en
