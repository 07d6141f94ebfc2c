#!/usr/bin/env bash
# Make binary data of WMT15, English to German, as Zhang et al. (AAAI 2018): training pairs of at most 50 words a side,
# BPE of 50,000 merges for each language, its 50,000 most frequent types, newstest2013 for validation, newstest2015 as test set.
#
#   bash examples/wmt15_en_de/prepare.sh [--from FOLDER|URL] [--out FOLDER]
#
#   --from  a folder with the archives, or a mirror (default: the addresses in examples/sources.yaml)
#   --out   where everything goes (default: runs/wmt15_en_de); the binary data go to its folder `data`
#
# The environment variable MERGES is another number of BPE merges (default: 50000). Finished steps are kept.
source "$(dirname "$0")/../recipe.sh"
parse '--from= --out=' "$@"
[ ${#words[@]} = 0 ] || usage
out=${out:-$PWD/runs/wmt15_en_de}

archives 14 europarl-v7.tgz commoncrawl.tgz news-commentary-v10.tgz wmt13-test.tgz wmt15-test.tgz
text() {
  extract train en de europarl-v7.tgz europarl-v7.de-en.{en,de} commoncrawl.tgz commoncrawl.de-en.{en,de} \
    news-commentary-v10.tgz news-commentary-v10.de-en.{en,de}
  extract valid en de wmt13-test.tgz newstest2013-src.{en,de}.sgm
  extract test en de wmt15-test.tgz newstest2015-ende-{src.en,ref.de}.sgm
}

preparation=(tokenize=true)
dictionary=(--nwordssrc 50004 --nwordstgt 50004) # fairseq counts <s>, <pad>, </s> and <unk>
step "extracting the sentences" "$out/text" text
step "tokenising" "$out/tokens" tokenise "$out/text" en de
tokens_to_data "$out/tokens" en de 50 separate 50000
