#!/usr/bin/env bash
# WMT14 English to German, from the archives to binary data.
#
#   bash examples/wmt14_en_de/prepare.sh lwc|deepatt [--from FOLDER|URL] [--out FOLDER]
#
#   lwc      He et al. (2018): newstest2012 and 2013 for validation, joint BPE of 40,000 merges, joined dictionary
#   deepatt  Zhang, Xiong, Su (2018): newstest2013 for validation, BPE of 30,000 merges for each language
#   --from   a folder with the archives, or a mirror (default: their official places; examples/sources.yaml)
#   --out    where everything goes (default: runs/wmt14_en_de-lwc and so on); the data are in its folder `data`
#
# MERGES is another number of merges; 16000 for the first row of DeepAtt. Finished steps are kept.
source "$(dirname "$0")/../recipe.sh"
paper=${words[0]:-}
case $paper in
  lwc)
    valid=(wmt12-test.tgz newstest2012-src.{en,de}.sgm wmt13-test.tgz newstest2013-src.{en,de}.sgm)
    sub_words() { joint_bpe "$out/clean" "$making" "${MERGES:-40000}" en de; }
    data() { binarise "$out/bpe" "$making" en de --joined-dictionary; }
    ;;
  deepatt)
    valid=(wmt13-test.tgz newstest2013-src.{en,de}.sgm)
    sub_words() { separate_bpe "$out/clean" "$making" "${MERGES:-30000}" en de; }
    data() { binarise "$out/bpe" "$making" en de; }
    ;;
  *) fail "usage: prepare.sh lwc|deepatt [--from FOLDER|URL] [--out FOLDER]" ;;
esac
out=${out:-$PWD/runs/wmt14_en_de-$paper}
mkdir -p "$out"

archives 14 europarl-v7.tgz commoncrawl.tgz news-commentary-v9.tgz wmt12-test.tgz wmt13-test.tgz wmt14-test-full.tgz
text() {
  extract train en de europarl-v7.tgz europarl-v7.de-en.{en,de} commoncrawl.tgz commoncrawl.de-en.{en,de} \
    news-commentary-v9.tgz news-commentary-v9.de-en.{en,de}
  extract valid en de "${valid[@]}"
  extract test en de wmt14-test-full.tgz newstest2014-deen-{src.en,ref.de}.sgm
}
tokens() { tokenise "$out/text" "$making" en de; }
# the papers name no limits; this leaves what they count, 4.5M pairs, and no batch of one pair
pairs() { clean "$out/tokens" "$making" en de --longest 250; }

step "extracting the sentences" "$out/text" text
step "tokenising" "$out/tokens" tokens
step "choosing pairs" "$out/clean" pairs
step "learning and applying BPE" "$out/bpe" sub_words
step "binarising" "$out/data" data
summary "$out/bpe" de en
