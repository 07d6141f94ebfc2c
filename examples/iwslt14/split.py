"""Make the training, validation and test sets of He et al. (2018) from tokenised text.

    python examples/iwslt14/split.py TOKENS de|ro|es --out FOLDER

De-En: the text is lower-cased; every 23rd training pair (7K) goes to validation; dev2010, tst2010, tst2011 and tst2012
are the test set. Ro-En and Es-En: these four talks are the validation set, and tst2014 is the test set.
"""

import argparse
import sys
from pathlib import Path

EVERY = 23
TALKS = ("dev2010", "tst2010", "tst2011", "tst2012")
Pair = tuple[str, str]


def read(folder: Path, name: str, language: str, lower: bool) -> list[Pair]:
    """The pairs of a set. Exits with a message if a side is missing."""
    sides = [folder / f"{name}.{side}" for side in (language, "en")]
    if missing := [path for path in sides if not path.exists()]:
        sys.exit(f"split.py: error: {missing[0]} is missing: it was not in the archives")
    lines = [path.read_text(encoding="utf-8").removesuffix("\n").split("\n") for path in sides]
    pairs = zip(*lines, strict=True)
    return [(source.lower(), target.lower()) if lower else (source, target) for source, target in pairs]


def split(folder: Path, language: str) -> dict[str, list[Pair]]:
    """The pairs of train, valid and test."""
    lower = language == "de"
    train = read(folder, "train", language, lower)
    talks = [pair for name in TALKS for pair in read(folder, name, language, lower)]
    if language != "de":
        return {"train": train, "valid": talks, "test": read(folder, "tst2014", language, lower)}
    valid = train[EVERY - 1 :: EVERY]
    return {"train": [pair for i, pair in enumerate(train, 1) if i % EVERY], "valid": valid, "test": talks}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokens", type=Path, metavar="TOKENS")
    parser.add_argument("language", choices=["de", "ro", "es"])
    parser.add_argument("--out", required=True, type=Path, metavar="FOLDER")
    args = parser.parse_args()
    sets = split(args.tokens, args.language)
    args.out.mkdir(parents=True)
    for name, pairs in sets.items():
        for i, side in enumerate((args.language, "en")):
            lines = "".join(f"{pair[i]}\n" for pair in pairs)
            (args.out / f"{name}.{side}").write_text(lines, encoding="utf-8")
