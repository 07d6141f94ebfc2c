#!/usr/bin/env bash
# WMT15 English to German, from the archives to binary data, as Zhang et al. (AAAI 2018): training pairs of at most 50 words
# a side, BPE for each language to about 50,000 types, newstest2013 for validation, newstest2015 as test.
#
#   bash examples/wmt15_en_de/prepare.sh [--from FOLDER|URL] [--out FOLDER]
#
#   --from  a folder with the archives, or a mirror (default: their official places; examples/sources.yaml)
#   --out   where everything goes (default: runs/wmt15_en_de); the data are in its folder `data`
#
# MERGES is another number of merges (default: 50000). Finished steps are kept.
source "$(dirname "$0")/../recipe.sh"
[ ${#words[@]} = 0 ] || fail "usage: prepare.sh [--from FOLDER|URL] [--out FOLDER]"
out=${out:-$PWD/runs/wmt15_en_de}
mkdir -p "$out"

archives 14 europarl-v7.tgz commoncrawl.tgz news-commentary-v10.tgz wmt13-test.tgz wmt15-test.tgz
text() {
  extract train en de europarl-v7.tgz europarl-v7.de-en.{en,de} commoncrawl.tgz commoncrawl.de-en.{en,de} \
    news-commentary-v10.tgz news-commentary-v10.de-en.{en,de}
  extract valid en de wmt13-test.tgz newstest2013-src.{en,de}.sgm
  extract test en de wmt15-test.tgz newstest2015-ende-{src.en,ref.de}.sgm
}
tokens() { tokenise "$out/text" "$making" en de; }
pairs() { clean "$out/tokens" "$making" en de --longest 50; }
sub_words() { separate_bpe "$out/clean" "$making" "${MERGES:-50000}" en de; }
data() { binarise "$out/bpe" "$making" en de; }

step "extracting the sentences" "$out/text" text
step "tokenising" "$out/tokens" tokens
step "choosing pairs" "$out/clean" pairs
step "learning and applying BPE" "$out/bpe" sub_words
step "binarising" "$out/data" data
summary "$out/bpe" de en
