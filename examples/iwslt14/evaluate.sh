#!/usr/bin/env bash
# Translate the test set with a model or an ensemble, as the paper does (beam 6, length penalty 1.1), and compute BLEU
# on the tokenised text. For De-En the text is lower-cased and BLEU is case-insensitive.
#
#   bash examples/iwslt14/evaluate.sh de|ro|es CHECKPOINT[:CHECKPOINT...] [--out FOLDER] [-- more flags ...]
#
#   --out  the folder that prepare.sh wrote (default: runs/iwslt14-de and so on)
#   flags  go to fairseq-generate
source "$(dirname "$0")/../recipe.sh"
parse '--out= --' "$@"
[ ${#words[@]} = 2 ] || usage
language=${words[0]} checkpoint=${words[1]}
case $language in
  de) casing=(--lowercase) ;;
  ro | es) casing=() ;;
  *) usage ;;
esac
out=${out:-$PWD/runs/iwslt14-$language}

translate "$checkpoint" --beam 6 --lenpen 1.1 --gnmt-length-penalty --post-process subword_nmt
sacrebleu "$out/sets/test.en" -i "$translations" --tokenize none --force "${casing[@]}"
