"""Leave out training pairs that are empty, too long, or of very different lengths. Other sets are copied unchanged.

    python examples/clean.py FROM TO SOURCE TARGET --longest WORDS [--ratio TIMES]

FROM and TO are folders with tokenised sets: train.SOURCE, train.TARGET and others. The rules are those of Moses'
clean-corpus-n: each side has 1 to WORDS words, and neither is more than TIMES as long as the other.
"""

import argparse
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path


def kept(pairs: Iterator[tuple[bytes, bytes]], longest: int, ratio: float) -> Iterator[tuple[bytes, bytes]]:
    """The pairs that meet the rules."""
    for pair in pairs:
        shorter, longer = sorted(len(side.split()) for side in pair)
        if shorter >= 1 and longer <= min(longest, ratio * shorter):
            yield pair


def clean(source: Path, target: Path, languages: list[str], longest: int, ratio: float) -> str:
    """Writes the sets to ``target`` and returns a line that says how many training pairs it kept.

    Raises ValueError if the sides of the training set have unequal numbers of lines.
    """
    names = [f"train.{language}" for language in languages]
    lines = [(source / name).open("rb") for name in names]
    out = [(target / name).open("wb") for name in names]
    count = 0
    with lines[0], lines[1], out[0], out[1]:
        for pair in kept(zip(*lines, strict=True), longest, ratio):
            count += 1
            for file, side in zip(out, pair, strict=True):
                file.write(side)
    for path in source.iterdir():
        if path.name not in names:
            shutil.copyfile(path, target / path.name)
    return f"  {count} training pairs kept"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, metavar="FROM")
    parser.add_argument("target", type=Path, metavar="TO")
    parser.add_argument("source_language", metavar="SOURCE")
    parser.add_argument("target_language", metavar="TARGET")
    parser.add_argument("--longest", required=True, type=int, metavar="WORDS")
    parser.add_argument("--ratio", default=9.0, type=float, metavar="TIMES", help="default: 9, as in Moses")
    args = parser.parse_args()
    args.target.mkdir(parents=True, exist_ok=True)
    try:
        languages = [args.source_language, args.target_language]
        print(clean(args.source, args.target, languages, args.longest, args.ratio), file=sys.stderr)
    except ValueError:
        sys.exit(f"clean.py: error: {args.source}: the two sides of the training set have unequal numbers of lines")
