#!/usr/bin/env bash
# Translate the test set of any binary data with a model or an ensemble, beam 10, and score the translations.
#
#   bash examples/evaluate.sh CHECKPOINT[:CHECKPOINT...] DATA [--out FOLDER] [-- more flags of fairseq-generate ...]
#
#   --out  a folder for translations and scores (default: the folder of the first checkpoint). They replace those of
#          an earlier call, but an ensemble has other names.
#
# Hypotheses are ranked by log-probability per token, as in the rows "LN" of the DeepAtt paper. `-- --unnormalized`
# ranks them by log-probability, as in its other rows. BLEU and chrF compare the tokenised text of DATA, with its
# sub-words joined.
source "$(dirname "$0")/recipe.sh"
parse '--out= --' "$@"
[ ${#words[@]} = 2 ] || usage
checkpoints=${words[0]} data=${words[1]}
result=${out:-$(dirname "${checkpoints%%:*}")}/test
[[ $checkpoints != *:* ]] || result+=.ensemble

subwords=$(subwords_of "$data" subword_nmt)
generate "$data" "$checkpoints" "$result" --beam 10 ${subwords:+--post-process "$subwords"}
rm -f "$result.score.json" # of an earlier call
in_order "$result.generated" T 2 > "$result.reference"
doing=scoring log='' making=$result.score.$$.making
trap stopped EXIT
sacrebleu "$result.reference" -i "$result.txt" --tokenize none --metrics bleu chrf --force > "$making"
trap - EXIT
mv "$making" "$result.score.json"
cat "$result.score.json"
