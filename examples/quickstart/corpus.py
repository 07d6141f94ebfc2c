"""Write the demo corpus: German-English sentence pairs with gold word alignments, made by a small grammar.

    python examples/quickstart/corpus.py --out FOLDER [--seed N] [--train N] [--valid N] [--test N]

writes train, valid and test to FOLDER, each as three files with one sentence a line: ``.de``, ``.en`` and ``.align``.
The last holds the links "i-j" between German word i and English word j, counted from 0. The same seed gives the same
files.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from grammar.dice import Dice
from grammar.sentences import Sentence, draw_sentence
from lwc_fairseq_compat.files import whole_file

MOST = 1_000_000
SPLITS = ("train", "valid", "test")
Corpus = dict[str, list[Sentence]]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argument_parser()
    options = parser.parse_args(arguments)
    # The test set comes first, so that it does not depend on the other sizes.
    sizes = {"test": options.test, "valid": options.valid, "train": options.train}
    if sum(sizes.values()) > MOST:
        parser.error(f"--train, --valid and --test add up to more than {MOST} sentences; ask for fewer")
    if options.out.exists() and not options.out.is_dir():
        parser.error(f"--out {options.out} is a file; name a folder")
    corpus = make_corpus(options.seed, sizes)
    try:
        write_corpus(corpus, options.out)
    except OSError as error:
        parser.error(f"cannot write to --out {options.out}: {error.strerror}")
    print(summary(corpus, options.out))


def argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="created if it does not exist")
    parser.add_argument(
        "--seed", type=count, default=1, metavar="N", help="another seed gives another corpus (default: 1)"
    )
    for split, size in zip(SPLITS, (20000, 500, 500), strict=True):
        parser.add_argument(
            f"--{split}", type=count, default=size, metavar="N", help="number of sentences (default: %(default)s)"
        )
    return parser


def count(text: str) -> int:
    """A whole number from 0. Raises argparse.ArgumentTypeError for anything else."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return int(text)


def make_corpus(seed: int, sizes: dict[str, int]) -> Corpus:
    """The sentences of each split, drawn in the order of ``sizes``. No German and no English sentence occurs twice.

    A split does not depend on the sizes of those after it: the test set, if it is made first, stays the same when the
    training set grows.
    """
    dice = Dice(seed)
    seen: set[tuple[str, str]] = set()
    return {split: [draw_new_sentence(dice, seen) for _ in range(size)] for split, size in sizes.items()}


def draw_new_sentence(dice: Dice, seen: set[tuple[str, str]]) -> Sentence:
    """A sentence pair of which neither side is in ``seen``; adds both."""
    while True:
        sentence = draw_sentence(dice)
        sides = {("de", sentence.german), ("en", sentence.english)}
        if not sides & seen:
            seen |= sides
            return sentence


def write_corpus(corpus: Corpus, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for split, sentences in corpus.items():
        write_lines(folder / f"{split}.de", (sentence.german for sentence in sentences))
        write_lines(folder / f"{split}.en", (sentence.english for sentence in sentences))
        write_lines(folder / f"{split}.align", (sentence.alignment for sentence in sentences))


def write_lines(path: Path, lines: Iterable[str]) -> None:
    with whole_file(path) as making, open(making, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)


def summary(corpus: Corpus, folder: Path) -> str:
    sentences = [sentence for split in corpus.values() for sentence in split]
    sizes = ", ".join(f"{split} {len(corpus[split])}" for split in SPLITS)
    german = describe("German", [sentence.german.split() for sentence in sentences])
    english = describe("English", [sentence.english.split() for sentence in sentences])
    return f"{folder}: {sizes} sentences; {german}; {english}"


def describe(language: str, lines: list[list[str]]) -> str:
    words = {word for line in lines for word in line}
    mean = sum(map(len, lines)) / max(1, len(lines))
    return f"{language} {mean:.1f} words a sentence, {len(words)} different ones"


if __name__ == "__main__":
    main()
