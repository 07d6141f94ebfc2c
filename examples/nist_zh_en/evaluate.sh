#!/usr/bin/env bash
# Translate the test sets with a checkpoint, or an ensemble, as the paper does, beam 10, and score each: case-insensitive
# BLEU of tokenised text against four references; for the sets together (DeepAtt's column ALL), and their mean (ABD's
# Average). DeepAtt: scores normalised by length (the rows LN; for the others add -- --unnormalized); ABD: sums.
#
#   bash examples/nist_zh_en/evaluate.sh deepatt|abd CHECKPOINT[:CHECKPOINT...] [--out FOLDER] [-- more flags ...]
#
#   --out  that of prepare.sh (default: runs/nist_zh_en-deepatt and so on)
source "$(dirname "$0")/../recipe.sh"
paper=${words[0]:-} checkpoint=${words[1]:-}
case $paper in
  deepatt) search=() ;;
  abd) search=(--unnormalized) ;;
  *) checkpoint='' ;;
esac
[ -n "$checkpoint" ] || fail "usage: evaluate.sh deepatt|abd CHECKPOINT[:CHECKPOINT...] [--out FOLDER] [-- flags ...]"
out=${out:-$PWD/runs/nist_zh_en-$paper}

translate "$checkpoint" --beam 10 "${search[@]}"

# score FIRST COUNT: BLEU of COUNT sentences from the FIRST on
score() {
  local i parts=$translations.parts
  mkdir -p "$parts"
  for i in 0 1 2 3; do
    tail -n "+$1" "$out/clean/reference$i.en" | head -n "$2" > "$parts/$i"
  done
  tail -n "+$1" "$translations" | head -n "$2" > "$parts/hypotheses"
  sacrebleu "$parts"/{0,1,2,3} -i "$parts/hypotheses" --tokenize none --lowercase --force --score-only --width 2
}
sentences=$(awk '{ sum += $2 } END { print sum }' "$out/text/sets")
[ "$(wc -l < "$translations")" = "$sentences" ] || fail "$translations has not the $sentences sentences of $out/text/sets"
first=1 scores=()
while read -r set count; do
  scores+=("$(score "$first" "$count")")
  echo "$set ${scores[-1]}"
  first=$((first + count))
done < "$out/text/sets"
echo "all $(score 1 "$sentences")"
printf '%s\n' "${scores[@]}" | awk '{ sum += $1 } END { printf "mean %.2f\n", sum / NR }'
