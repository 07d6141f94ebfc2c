#!/usr/bin/env bash
# Make binary data of NIST, Chinese to English, from your own copy: the LDC licenses the data. Each side has 30,000
# words; others are UNK.
#
#   bash examples/nist_zh_en/prepare.sh deepatt|abd --from FOLDER [--out FOLDER]
#
#   deepatt  Zhang, Xiong, Su (2018): MT05 for validation; MT02, 03, 04, 06 and 08 as test sets
#   abd      Zhang et al. (AAAI 2018): MT02 for validation; MT03, 04, 05 and 06 as test sets; pairs of at most 50 words
#   --from   a folder with train.zh and train.en, mt02.zh and its references mt02.en0 to mt02.en3, and so on: a sentence a
#            line, UTF-8, Chinese segmented into words. The script tokenises and lower-cases English
#   --out    where everything goes (default: runs/nist_zh_en-deepatt and so on); the binary data go to its folder `data`
#
# In the binary data, the set `test` is all test sets joined, and test1, test2 and so on are each of them. Finished steps
# are kept.
source "$(dirname "$0")/../recipe.sh"
parse '--from= --out=' "$@"
[ ${#words[@]} = 1 ] || usage
paper=${words[0]}
case $paper in
  deepatt) valid=mt05 tests=(mt02 mt03 mt04 mt06 mt08) longest=250 ;; # the paper names no limit
  abd) valid=mt02 tests=(mt03 mt04 mt05 mt06) longest=50 ;;
  *) usage ;;
esac
[ -d "$from" ] || fail "the data are the LDC's: name the folder of your copy by --from; --help lists its files"
out=${out:-$PWD/runs/nist_zh_en-$paper}
made_with "$out/text/paper" "$paper"

mkdir -p "$out"
ln -sfn "$from" "$out/archives"
text() {
  extract train zh en . train.{zh,en}
  extract valid zh en . "$valid".{zh,en0}
  local i set corpora
  for i in 0 1 2 3; do
    corpora=()
    for set in "${tests[@]}"; do
      corpora+=(. "$set.zh" "$set.en$i")
    done
    extract "reference$i" zh en "${corpora[@]}"
  done
  for set in "${tests[@]}"; do # for tables that score each test set
    for i in 0 1 2 3; do
      extract "$set.reference$i" zh en . "$set.zh" "$set.en$i"
    done
  done
  cp "$making/reference0.zh" "$making/test.zh"
  cp "$making/reference0.en" "$making/test.en"
  for set in "${tests[@]}"; do
    echo "$set $(awk 'END { print NR }' "$from/$set.zh")" # the last line may lack a newline, which wc would not count
  done > "$making/sets" # for train.sh and evaluate.sh
  echo "$paper" > "$making/paper"
}
tokens() {
  tokenise "$out/text" en
  local file
  for file in "$making"/*.en; do
    tr A-Z a-z < "$file" > "$file.small"
    mv "$file.small" "$file"
  done
  cp "$out/text"/*.zh "$making"
}

preparation=(tokenize_target=true) # the source must be in words already
step "reading the sentences" "$out/text" text
step "tokenising" "$out/tokens" tokens
step "choosing pairs" "$out/clean" clean "$out/tokens" zh en --longest "$longest"
sets=
for set in "${tests[@]}"; do sets+=,$out/clean/$set.reference0; done
words=30004 # fairseq counts <s>, <pad>, </s> and <unk>
step "binarising" "$out/data" binarise "$out/clean" zh en --nwordssrc "$words" --nwordstgt "$words" --testpref "$out/clean/test$sets"
summary "$out/clean" zh en
