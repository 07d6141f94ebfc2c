#!/usr/bin/env bash
# Pack the models of a table, the first seed of each row: weights in half precision, dictionaries, the codes of the
# sub-words, and a model card with the scores. `lwc-fairseq translate PACK` and `load` take a pack.
#
#   bash examples/multi30k/weights.sh [--out FOLDER] [--table FOLDER]
#
#   --out    the folder that prepare.sh wrote (default: runs/multi30k); the packs and their checksums go to its folder
#            `packs`
#   --table  the folder of another table than `table` in the first folder, where train.sh writes; the packs then go to
#            the folder `packs` in it
source "$(dirname "$0")/../recipe.sh"
table=''
parse '--out= --table=' "$@"
[ ${#words[@]} = 0 ] || usage
out=${out:-$PWD/runs/multi30k}
needs_data
packs=${table:-$out}/packs
table=$(absolute "${table:-$out/table}")
[ -f "$table/table.json" ] || fail "$table/table.json: no such file: train the models first, or give another --table"

mkdir -p "$packs"
packed=()
for run in "$table"/*/seed1; do
  row=$(basename "$(dirname "$run")")
  model=$run/averaged.pt
  [ -f "$model" ] || model=$run/checkpoint_best.pt
  [ -f "$model" ] || continue
  card=$(python "$root/examples/multi30k/card.py" "$table/table.json" "$row") || continue  # it says what is missing
  echo "$card" > "$packs/$row.md"
  lwc-fairseq pack "$model" --data "$out/data" --card "$packs/$row.md" --out "$packs/multi30k_$row.zip"
  packed+=("multi30k_$row.zip")
done
[ ${#packed[@]} != 0 ] || fail "$table: none of its models could be packed"
cd "$packs"
sha256sum -- "${packed[@]}" > SHA256SUMS  # not of those that stand there since another table
echo "wrote $packs/SHA256SUMS"
