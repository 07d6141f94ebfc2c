"""Binary data of random sentence pairs with a joined dictionary."""

import random
from pathlib import Path

from fairseq import options
from fairseq_cli import preprocess

SPECIAL_TYPES = 4


def make_data(folder: Path, types: int, lengths: tuple[int, int], pairs: int) -> Path:
    """Write `pairs` training and validation pairs to `folder`, and return the folder of the binary data.

    Args:
        types: size of the dictionary.
        lengths: fewest and most words of a sentence; the end of the sentence is one token more.
    """
    words = [f"w{i}" for i in range(types - SPECIAL_TYPES)]
    draw = random.Random(1)
    for split in ("train", "valid"):
        for language in ("de", "en"):
            lines = [" ".join(draw.choices(words, k=draw.randint(*lengths))) for _ in range(pairs)]
            (folder / f"{split}.{language}").write_text("\n".join(lines) + "\n")
    (folder / "dict.txt").write_text("".join(f"{word} 1\n" for word in words))
    prefixes = [f"--{split}pref={folder / split}" for split in ("train", "valid")]
    dictionary = ["--srcdict", str(folder / "dict.txt"), "--joined-dictionary"]
    flags = ["-s", "de", "-t", "en", *prefixes, *dictionary, "--destdir", str(folder / "bin")]
    preprocess.main(options.get_preprocessing_parser().parse_args(flags))
    return folder / "bin"
