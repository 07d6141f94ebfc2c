#!/usr/bin/env bash
# Make binary data of Multi30k, German to English, with joint sub-words and one dictionary for both languages.
#
#   bash examples/multi30k/prepare.sh [--from FOLDER|URL] [--out FOLDER] [--sentencepiece]
#
#   --from  a folder with {train,val,test_2016_flickr}.{de,en}, or a mirror (default: the addresses in
#           examples/sources.yaml)
#   --out   where everything goes (default: runs/multi30k); the binary data go to its folder `data`
#   --sentencepiece  makes the sub-words by sentencepiece instead of subword-nmt
#
# The environment variable MERGES is the number of BPE merges or of pieces (default: 8000). Finished steps are kept.
source "$(dirname "$0")/../recipe.sh"
parse '--from= --out= --sentencepiece' "$@"
[ ${#words[@]} = 0 ] || usage
out=${out:-$PWD/runs/multi30k}

archives 1 multi30k/{train,val,test_2016_flickr}.{de,en}
name_sets() {
  local language
  mkdir -p "$making"
  for language in de en; do
    cp "$out/archives/train.$language" "$making/train.$language"
    cp "$out/archives/val.$language" "$making/valid.$language"
    cp "$out/archives/test_2016_flickr.$language" "$making/test.$language"
  done
}

preparation=(normalize=true tokenize=true case=lower)
step "naming the sets" "$out/text" name_sets
pairs_to_data "$out/text" de en joint 8000
