#!/usr/bin/env bash
# WMT16 English to Romanian, from the archives to binary data, after Sennrich et al. (WMT 2016): parallel data of Europarl
# and SETIMES with back-translated news, punctuation normalised, tokenised, truecased, joint BPE.
#
#   bash examples/wmt16_en_ro/prepare.sh [--from FOLDER|URL] [--out FOLDER]
#
#   --from  a folder with the archives, or a mirror (default: their official places; examples/sources.yaml)
#   --out   where everything goes (default: runs/wmt16_en_ro); the data are in its folder `data`
#
# MERGES is the number of joint BPE merges (default: 36000, as many as the paper has types). Finished steps are kept.
source "$(dirname "$0")/../recipe.sh"
[ ${#words[@]} = 0 ] || fail "usage: prepare.sh [--from FOLDER|URL] [--out FOLDER]"
out=${out:-$PWD/runs/wmt16_en_ro}
mkdir -p "$out"

archives 12 europarl-v8.tgz setimes-en-ro.zip corpus.bt.en-ro.{en,ro}.gz wmt16-dev.tgz wmt16-test.tgz
text() {
  extract train en ro europarl-v8.tgz europarl-v8.ro-en.{en,ro} setimes-en-ro.zip SETIMES.en-ro.{en,ro} \
    . corpus.bt.en-ro.{en,ro}.gz
  extract valid en ro wmt16-dev.tgz newsdev2016-enro-{src.en,ref.ro}.sgm
  extract test en ro wmt16-test.tgz newstest2016-enro-{src.en,ref.ro}.sgm
}
# Romanian is written with a comma below s and t, and in older files with a cedilla
normalised() {
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
tokeniser=(--aggressive-dash-splits)
tokens() { tokenise "$out/normalised" "$making" en ro; }
pairs() { clean "$out/tokens" "$making" en ro --longest 80; }
# learnt from the parallel text, which comes first: learning from all pairs takes four times the memory
truecased() {
  mkdir -p "$making"
  local language set
  for language in en ro; do
    head -n 600000 "$out/clean/train.$language" | sacremoses -j "$(nproc)" train-truecase -m "$making/model.$language"
    for set in train valid test; do
      sacremoses -j "$(nproc)" truecase -m "$making/model.$language" < "$out/clean/$set.$language" > "$making/$set.$language"
    done
  done
}
sub_words() { joint_bpe "$out/truecased" "$making" "${MERGES:-36000}" en ro; }
data() { binarise "$out/bpe" "$making" en ro --joined-dictionary; }

step "extracting the sentences" "$out/text" text
step "normalising" "$out/normalised" normalised
step "tokenising" "$out/tokens" tokens
step "choosing pairs" "$out/clean" pairs
step "truecasing" "$out/truecased" truecased
step "learning and applying BPE" "$out/bpe" sub_words
step "binarising" "$out/data" data
summary "$out/bpe" ro
