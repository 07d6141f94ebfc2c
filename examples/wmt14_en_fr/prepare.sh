#!/usr/bin/env bash
# Make binary data of WMT14, English to French: the 12M selected pairs, BPE of 40,000 merges for each language. The text
# in the archives is already tokenised.
#
#   bash examples/wmt14_en_fr/prepare.sh [--from FOLDER|URL] [--out FOLDER]
#
#   --from  a folder with the archives, or a mirror (default: the addresses in examples/sources.yaml)
#   --out   where everything goes (default: runs/wmt14_en_fr); the binary data go to its folder `data`
#
# The environment variable MERGES is another number of BPE merges. Finished steps are kept.
source "$(dirname "$0")/../recipe.sh"
parse '--from= --out=' "$@"
[ ${#words[@]} = 0 ] || usage
out=${out:-$PWD/runs/wmt14_en_fr}

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

preparation=(tokenize=true)
step "extracting the sentences" "$out/text" text
# The paper names no limit. This one leaves nearly all pairs, and none that fills a batch.
tokens_to_data "$out/text" en fr 250 separate 40000
