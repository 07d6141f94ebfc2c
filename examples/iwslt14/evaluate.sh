#!/usr/bin/env bash
# Translate the test set with a checkpoint, or an ensemble, as the paper does: beam 6, length penalty 1.1; and score it.
# De-En: case-insensitive BLEU of tokenised text (the text is lower-cased); Ro-En and Es-En: BLEU of tokenised text.
#
#   bash examples/iwslt14/evaluate.sh de|ro|es CHECKPOINT[:CHECKPOINT...] [--out FOLDER]
#
#   --out  that of prepare.sh (default: runs/iwslt14-de and so on)
source "$(dirname "$0")/../recipe.sh"
language=${words[0]:-} checkpoint=${words[1]:-}
case $language in de | ro | es) ;; *) fail "usage: evaluate.sh de|ro|es CHECKPOINT [--out FOLDER]" ;; esac
[ -n "$checkpoint" ] || fail "usage: evaluate.sh de|ro|es CHECKPOINT [--out FOLDER]"
out=${out:-$PWD/runs/iwslt14-$language}

translate "$checkpoint" --beam 6 --lenpen 1.1 --gnmt-length-penalty --post-process subword_nmt
sacrebleu "$out/sets/test.en" -i "$translations" --tokenize none --force $([ "$language" = de ] && echo --lowercase)
