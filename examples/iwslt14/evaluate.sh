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
first=${checkpoint%%:*}
[ -f "$first" ] || fail "$first: there is no such checkpoint"
result=${first%.pt}.test

fairseq-generate "$out/data" --user-dir "$root/lwc_fairseq" --task concat_translation --path "$checkpoint" \
  --beam 6 --lenpen 1.1 --gnmt-length-penalty --post-process subword_nmt --max-tokens 8000 \
  > "$result.making" 2> "$result.log" || { tail -n 5 "$result.log" >&2; fail "stopped while translating; the log is $result.log"; }
mv "$result.making" "$result.generated"
# hypotheses come in the order of their batches: sort them back
grep '^H-' "$result.generated" | sed 's/^H-//' | sort -n | cut -f 3 > "$result.en"
sacrebleu "$out/split/test.en" -i "$result.en" --tokenize none --force $([ "$language" = de ] && echo --lowercase)
