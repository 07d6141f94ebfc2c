#!/usr/bin/env bash
# Make binary data of WMT14, English to German.
#
#   bash examples/wmt14_en_de/prepare.sh lwc|deepatt [--stanford] [--from FOLDER|URL] [--out FOLDER]
#
#   lwc         He et al. (2018): newstest2012 and newstest2013 for validation; joint BPE of 40,000 merges, one dictionary
#   deepatt     Zhang, Xiong, Su (2018): newstest2013 for validation; BPE of 30,000 merges for each language
#   --stanford  the files that Luong et al. (2015) prepared, instead of those of WMT14
#   --from      a folder with the archives, or a mirror (default: the addresses in examples/sources.yaml)
#   --out       where everything goes (default: runs/wmt14_en_de-lwc and so on, or runs/wmt14_en_de-lwc-stanford); the
#               binary data go to its folder `data`
#
# The environment variable MERGES is another number of merges: 16000 for the first row of DeepAtt, with
# another --out. Finished steps are kept.
source "$(dirname "$0")/../recipe.sh"
stanford=''
parse '--stanford --from= --out=' "$@"
[ ${#words[@]} = 1 ] || usage
paper=${words[0]}
newstest2012=(wmt12-test.tgz newstest2012-src.{en,de}.sgm)
newstest2013=(wmt13-test.tgz newstest2013-src.{en,de}.sgm)
case $paper in
  lwc) valid=("${newstest2012[@]}" "${newstest2013[@]}") bpe=joint merges=40000 ;;
  deepatt) valid=("${newstest2013[@]}") bpe=separate merges=30000 ;;
  *) usage ;;
esac
source_of_text=$paper${stanford:+ --stanford}
out=${out:-$PWD/runs/wmt14_en_de-${source_of_text/ -/}}
made_with "$out/text/settings" "$source_of_text"

if [ -n "$stanford" ]; then
  archives 8 wmt14_stanford/{train,newstest2012,newstest2013,newstest2014}.{en,de}
  text() {
    extract train en de . train.{en,de}
    valid=(. newstest2013.{en,de})
    [ "$paper" = deepatt ] || valid=(. newstest2012.{en,de} "${valid[@]}")
    extract valid en de "${valid[@]}"
    extract test en de . newstest2014.{en,de}
    echo "$source_of_text" > "$making/settings"
  }
  step "taking the sentences, which are tokenised" "$out/text" text
  tokens_to_data "$out/text" en de 250 "$bpe" "$merges"
  exit
fi

archives 14 europarl-v7.tgz commoncrawl.tgz news-commentary-v9.tgz wmt12-test.tgz wmt13-test.tgz wmt14-test-full.tgz
text() {
  extract train en de europarl-v7.tgz europarl-v7.de-en.{en,de} commoncrawl.tgz commoncrawl.de-en.{en,de} \
    news-commentary-v9.tgz news-commentary-v9.de-en.{en,de}
  extract valid en de "${valid[@]}"
  extract test en de wmt14-test-full.tgz newstest2014-deen-{src.en,ref.de}.sgm
  echo "$source_of_text" > "$making/settings"
}

preparation=(tokenize=true)
step "extracting the sentences" "$out/text" text
step "tokenising" "$out/tokens" tokenise "$out/text" en de
# The papers name no limit. This one leaves the 4.5M pairs that they count, and no pair that fills a batch.
tokens_to_data "$out/tokens" en de 250 "$bpe" "$merges"
