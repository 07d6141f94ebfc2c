"""Print the model card of a row of a table, seed 1: what the model translates, its scores, its training and its limits.

python examples/multi30k/card.py runs/multi30k/table/table.json lwc > card.md
"""

import argparse
import json
import sys
from pathlib import Path

CARD = """\
# {label}: Multi30k, German to English

A small model for trying `lwc_fairseq`. It translates captions of photographs, such as "Zwei Hunde spielen im Schnee.".

```bash
lwc-fairseq translate PACK.zip --detokenize <<< "Zwei Hunde spielen im Schnee."
```

- **Scores** on the test set, one seed, collected on {date}: {bleu} BLEU and {chrf} chrF2. Translations are
  {length_ratio} times as long as the references.
- **Search** of these scores: `{generate}`
- **Data**: {published_on}. Multi30k is by Elliott et al. (2016, doi 10.18653/v1/W16-3210), from
  https://github.com/multi30k/dataset, for research use; that repository names no licence.
- **Training**: {updates:,} updates, {parameters:,} weights, {hardware}; {versions}.
- **Flags**: `{train}`
- **Weights**: {checkpoint}, in half precision. The scores are those of the weights before they were rounded.

## Limits

The model knows captions and nothing else. It translates other text badly, leaves out words that it does not know, and
writes lower case. Captions describe people by their looks, and so does the model: it may guess sex, age or origin. Do
not use it for anything that matters.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, help="the file table.json that `lwc-fairseq table` wrote")
    parser.add_argument("row", help="the name of the row")
    args = parser.parse_args()
    table = json.loads(args.table.read_text(encoding="utf-8"))
    row = next((row for row in table["rows"] if row["name"] == args.row), {"runs": []})
    run = next((run for run in row["runs"] if run["seed"] == 1), None)
    if run is None:
        sys.exit(f"card: error: {args.table}: it has no results of seed 1 of a row {args.row}")
    scores = {**run, **row}
    for name in ("updates", "parameters"):
        if scores.get(name) is None:
            sys.exit(f"card: error: {args.table}: row {args.row} has no {name}: the log of its training lacks them")
    of_all, of_row = table["flags"], table["row_flags"][args.row]

    def in_order(*flags: str | None) -> str:
        return " ".join(filter(None, flags))

    flags = {
        "train": in_order(
            f"--arch {of_row['arch']}",
            of_row.get("own optimizer", of_all.get("optimizer")),
            *(of_all.get("train"), of_row.get("train"), of_row.get("chosen by trials"), of_all.get("more of train")),
        ),
        "generate": in_order(of_all.get("generate"), of_row.get("generate"), of_all.get("more of generate")),
        "checkpoint": of_all.get("checkpoint", "lowest validation loss"),
    }
    facts = {name: table[name] for name in ("published_on", "hardware", "date", "versions")}
    print(CARD.format(**scores, **facts, **flags), end="")


if __name__ == "__main__":
    main()
