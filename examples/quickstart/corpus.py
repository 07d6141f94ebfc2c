"""Writes the demo corpus: German-English sentence pairs with gold word alignments, made by a small grammar.

    python examples/quickstart/corpus.py --out DIR

writes train, valid and test in DIR, each as three files with a sentence a line: ``.de``, ``.en`` and
``.align``, which holds the links "i-j" between German word i and English word j, counted from 0. The same
seed gives the same files.
"""

import argparse
import os
from pathlib import Path

from grammar.dice import Dice
from grammar.sentences import draw_sentence

MOST = 1_000_000


def main(arguments=None):
    parser = argument_parser()
    options = parser.parse_args(arguments)
    sizes = {split: getattr(options, split) for split in ("test", "valid", "train")}
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


def argument_parser():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the files; made if need be")
    parser.add_argument("--seed", type=count, default=1, help="another seed, another corpus (default: %(default)s)")
    for split, size in (("train", 20000), ("valid", 500), ("test", 500)):
        parser.add_argument(f"--{split}", type=count, default=size, help="number of sentences (default: %(default)s)")
    return parser


def count(text):
    """A whole number from 0."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return int(text)


def make_corpus(seed, sizes):
    """Split -> sentences, in the order of ``sizes``. No German or English sentence comes up twice.

    The split that comes first does not depend on the size of the others: a test set that is made first stays
    the same when the training set grows.
    """
    dice = Dice(seed)
    seen = set()
    return {split: [draw_new_sentence(dice, seen) for _ in range(size)] for split, size in sizes.items()}


def draw_new_sentence(dice, seen):
    """A sentence whose two sides are not in ``seen``, where they are then put."""
    while True:
        sentence = draw_sentence(dice)
        sides = {("de", sentence.german), ("en", sentence.english)}
        if not sides & seen:
            seen |= sides
            return sentence


def write_corpus(corpus, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for split, sentences in corpus.items():
        write_lines(folder / f"{split}.de", [sentence.german for sentence in sentences])
        write_lines(folder / f"{split}.en", [sentence.english for sentence in sentences])
        write_lines(folder / f"{split}.align", [sentence.alignment for sentence in sentences])


def write_lines(path, lines):
    """Writes under another name first, so that a file with the right name is always complete."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with open(unfinished, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(line + "\n" for line in lines)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def summary(corpus, folder):
    sentences = [sentence for split in corpus.values() for sentence in split]
    sides = []
    for language, side in (("German", "german"), ("English", "english")):
        lines = [getattr(sentence, side).split() for sentence in sentences]
        words = {word for line in lines for word in line}
        mean = sum(map(len, lines)) / max(1, len(lines))
        sides.append(f"{language} {mean:.1f} words a sentence, {len(words)} different ones")
    sizes = ", ".join(f"{split} {len(corpus[split])}" for split in ("train", "valid", "test"))
    return f"{folder}: {sizes} sentences; {'; '.join(sides)}"


if __name__ == "__main__":
    main()
