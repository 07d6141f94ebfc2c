#!/usr/bin/env bash
# Make binary data of WMT16, English to Romanian, after Sennrich et al. (WMT 2016): Europarl, SETIMES and
# back-translated news; punctuation is normalised, the text tokenised and truecased, and BPE is joint.
#
#   bash examples/wmt16_en_ro/prepare.sh [--from FOLDER|URL] [--out FOLDER]
#
#   --from  a folder with the archives, or a mirror (default: the addresses in examples/sources.yaml)
#   --out   where everything goes (default: runs/wmt16_en_ro); the binary data go to its folder `data`
#
# The environment variable MERGES is the number of BPE merges (default: 36000, the number of types in the paper).
# Finished steps are kept.
source "$(dirname "$0")/../recipe.sh"
parse '--from= --out=' "$@"
[ ${#words[@]} = 0 ] || usage
out=${out:-$PWD/runs/wmt16_en_ro}

archives 12 europarl-v8.tgz setimes-en-ro.zip corpus.bt.en-ro.{en,ro}.gz wmt16-dev.tgz wmt16-test.tgz
text() {
  extract train en ro europarl-v8.tgz europarl-v8.ro-en.{en,ro} setimes-en-ro.zip SETIMES.en-ro.{en,ro} \
    . corpus.bt.en-ro.{en,ro}.gz
  extract valid en ro wmt16-dev.tgz newsdev2016-enro-{src.en,ref.ro}.sgm
  extract test en ro wmt16-test.tgz newstest2016-enro-{src.en,ref.ro}.sgm
}
# Older files write Romanian s and t with a cedilla instead of a comma below.
normalise() {
  mkdir -p "$making"
  local language set
  for language in en ro; do
    for set in train valid test; do
      echo "  $set.$language" >&2
      sed 's/Ş/Ș/g; s/ş/ș/g; s/Ţ/Ț/g; s/ţ/ț/g' "$out/text/$set.$language" |
        sacremoses -l "$language" -j "$(nproc)" normalize > "$making/$set.$language"
    done
  done
}
# The model is learnt from the parallel text, which comes first: learning it from all pairs takes four times the memory.
truecase() {
  mkdir -p "$making"
  local language set
  for language in en ro; do
    head -n 600000 "$out/clean/train.$language" | sacremoses -j "$(nproc)" train-truecase -m "$making/model.$language"
    for set in train valid test; do
      sacremoses -j "$(nproc)" truecase -m "$making/model.$language" < "$out/clean/$set.$language" > "$making/$set.$language"
    done
  done
}

step "extracting the sentences" "$out/text" text
step "normalising" "$out/normalised" normalise
tokeniser=(--aggressive-dash-splits)
step "tokenising" "$out/tokens" tokenise "$out/normalised" en ro
step "choosing pairs" "$out/clean" clean "$out/tokens" en ro --longest 80
step "truecasing" "$out/truecased" truecase
preparation=(normalize=true tokenize=true split_hyphens=true case=truecase case_model=truecase_model)
truecase_model=$out/truecased/model.en
pairs_to_data "$out/truecased" en ro joint 36000
