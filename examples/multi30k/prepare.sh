#!/usr/bin/env bash
# Multi30k German-English to binary data: joint BPE, joined dictionary.
#
#   bash examples/multi30k/prepare.sh FOLDER [DATA]
#
# FOLDER holds train, val and test_2016_flickr, each .de and .en, one tokenised sentence a line.
# DATA (runs/multi30k/data) is made whole or not at all.
set -euo pipefail
absolute() { case $1 in /*) echo "$1" ;; *) echo "$PWD/$1" ;; esac; } # before the folder changes
folder=$(absolute "${1:?usage: prepare.sh FOLDER [DATA]}")
data=${2:+$(absolute "${2%/}")}
cd "$(dirname "$0")/../.."
[ -d .venv ] && export PATH="$PWD/.venv/bin:$PATH"
data=${data:-runs/multi30k/data}
merges=${MERGES:-8000}

[ -f "$data/reference.en" ] && { echo "$data is there already"; exit 0; }
[ ! -e "$data" ] || { echo "prepare.sh: $data exists and is not what this makes: name another" >&2; exit 1; }
for file in {train,val,test_2016_flickr}.{de,en}; do
  [ -s "$folder/$file" ] || { echo "prepare.sh: $folder/$file is missing; see examples/multi30k/README.md" >&2; exit 1; }
done

work=$data.making
rm -rf "$work"
mkdir -p "$work"
echo "learning $merges joint BPE merges"
cat "$folder/train.de" "$folder/train.en" | subword-nmt learn-bpe -s "$merges" > "$work/codes"
for split in train val test_2016_flickr; do
  for language in de en; do
    subword-nmt apply-bpe -c "$work/codes" < "$folder/$split.$language" > "$work/$split.$language"
  done
done
fairseq-preprocess -s de -t en --joined-dictionary --destdir "$work" \
  --trainpref "$work/train" --validpref "$work/val" --testpref "$work/test_2016_flickr" --workers 2
cp "$folder/test_2016_flickr.en" "$work/reference.en"
mv "$work" "$data"
echo "wrote $data"
