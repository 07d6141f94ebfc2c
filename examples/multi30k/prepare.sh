#!/usr/bin/env bash
# Multi30k, German to English, to binary data: joint BPE, joined dictionary.
#
#   bash examples/multi30k/prepare.sh [--from FOLDER|URL] [--out FOLDER]
#
#   --from  a folder with train, val and test_2016_flickr, each .de and .en, or a mirror (default: examples/sources.yaml)
#   --out   where everything goes (default: runs/multi30k); the data are in its folder `data`
#
# MERGES is the number of BPE merges (default: 8000). Finished steps are kept.
source "$(dirname "$0")/../recipe.sh"
[ ${#words[@]} = 0 ] || fail "usage: prepare.sh [--from FOLDER|URL] [--out FOLDER]"
out=${out:-$PWD/runs/multi30k}
mkdir -p "$out"

archives 1 multi30k/{train,val,test_2016_flickr}.{de,en}
sets() {
  mkdir -p "$making"
  for language in de en; do
    cp "$out/archives/train.$language" "$making/train.$language"
    cp "$out/archives/val.$language" "$making/valid.$language"
    cp "$out/archives/test_2016_flickr.$language" "$making/test.$language"
  done
}
sub_words() { joint_bpe "$out/text" "$making" "${MERGES:-8000}" de en; }
data() { binarise "$out/bpe" "$making" de en --joined-dictionary; }

step "naming the sets" "$out/text" sets
step "learning and applying BPE" "$out/bpe" sub_words
step "binarising" "$out/data" data
summary "$out/bpe" en
