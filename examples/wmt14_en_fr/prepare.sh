#!/usr/bin/env bash
# WMT14 English to French, the 12M selected pairs, from the archives to binary data: BPE of 40,000 merges for each language.
# The archives' text is tokenised.
#
#   bash examples/wmt14_en_fr/prepare.sh [--from FOLDER|URL] [--out FOLDER]
#
#   --from  a folder with the archives, or a mirror (default: their official place; examples/sources.yaml)
#   --out   where everything goes (default: runs/wmt14_en_fr); the data are in its folder `data`
#
# MERGES is another number of merges. Finished steps are kept.
source "$(dirname "$0")/../recipe.sh"
[ ${#words[@]} = 0 ] || fail "usage: prepare.sh [--from FOLDER|URL] [--out FOLDER]"
out=${out:-$PWD/runs/wmt14_en_fr}
mkdir -p "$out"

archives 25 bitexts.tgz dev+test.tgz
text() {
  local corpora=() name
  for name in ep7_pc45 nc9 dev08_11 crawl ccb2_pc30 un2000_pc34; do
    corpora+=(bitexts.tgz "$name".{en,fr}.gz)
  done
  extract train en fr "${corpora[@]}"
  extract valid en fr dev+test.tgz ntst1213.{en,fr}
  extract test en fr dev+test.tgz ntst14.{en,fr}
}
# the paper names no limits; this leaves nearly all, and no batch of one pair
pairs() { clean "$out/text" "$making" en fr --longest 250; }
sub_words() { separate_bpe "$out/clean" "$making" "${MERGES:-40000}" en fr; }
data() { binarise "$out/bpe" "$making" en fr; }

step "extracting the sentences" "$out/text" text
step "choosing pairs" "$out/clean" pairs
step "learning and applying BPE" "$out/bpe" sub_words
step "binarising" "$out/data" data
summary "$out/bpe" fr en
