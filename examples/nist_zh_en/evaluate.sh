#!/usr/bin/env bash
# Translate the test sets with a model or an ensemble, as the paper does (beam 10), and print case-insensitive BLEU on
# the tokenised text against four references: for each set, for all sets together (DeepAtt's column ALL) and the mean
# over the sets (ABD's Average). DeepAtt ranks hypotheses by log-probability per token, as in its rows LN;
# `-- --unnormalized` ranks them by log-probability, as in its other rows and in ABD.
#
#   bash examples/nist_zh_en/evaluate.sh deepatt|abd CHECKPOINT[:CHECKPOINT...] [--out FOLDER] [-- more flags ...]
#
#   --out  the folder that prepare.sh wrote (default: runs/nist_zh_en-deepatt and so on)
#   flags  go to fairseq-generate
source "$(dirname "$0")/../recipe.sh"
parse '--out= --' "$@"
[ ${#words[@]} = 2 ] || usage
paper=${words[0]} checkpoint=${words[1]}
case $paper in
  deepatt) search=() ;;
  abd) search=(--unnormalized) ;;
  *) usage ;;
esac
out=${out:-$PWD/runs/nist_zh_en-$paper}

translate "$checkpoint" --beam 10 "${search[@]}"

# score FIRST COUNT: prints BLEU of COUNT sentences, from number FIRST on.
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
  bleu=$(score "$first" "$count")
  echo "$set $bleu"
  scores+=("$bleu")
  first=$((first + count))
done < "$out/text/sets"
bleu=$(score 1 "$sentences")
echo "all $bleu"
printf '%s\n' "${scores[@]}" | LC_ALL=C awk '{ sum += $1 } END { printf "mean %.2f\n", sum / NR }'
