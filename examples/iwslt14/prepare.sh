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
  de) merges=31000 archives=(iwslt14-de-en) ;;
  ro) merges=39000 archives=(iwslt14-ro-en iwslt14-test-ro-en) ;;
  es) merges=34000 archives=(iwslt14-es-en iwslt14-test-es-en) ;;
  *) fail "usage: prepare.sh de|ro|es [--from FOLDER|URL] [--out FOLDER]" ;;
esac
out=${out:-$PWD/runs/iwslt14-$language}
mkdir -p "$out"

fetch "$out/archives" "${archives[@]}" > "$out/archives.list"
mapfile -t files < "$out/archives.list"
extract() { python "$root/examples/iwslt14/extract.py" "$language" "${files[@]}" --out "$making"; }
tokens() { tokenise "$out/text" "$making" "$language" en; }
# De-En is lower-cased, as the paper says; pairs of very different lengths go, as with Moses' clean-corpus-n 1.5, 1 to 175
split() { python "$root/examples/iwslt14/split.py" "$out/tokens" "$language" --out "$making"; }
sub_words() { joint_bpe "$out/split" "$making" "${MERGES:-$merges}" "$language" en; }
data() { binarise "$out/bpe" "$making" "$language" en --joined-dictionary; }

step "extracting the sentences" "$out/text" extract
step "tokenising" "$out/tokens" tokens
step "choosing pairs and sets" "$out/split" split
step "learning and applying BPE" "$out/bpe" sub_words
step "binarising" "$out/data" data
echo "$out/data: $(($(wc -l < "$out/data/dict.en.txt") + 4)) types, $(wc -l < "$out/split/train.en") training pairs"
