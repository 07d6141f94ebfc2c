"""Random sentence pairs with the lengths and word frequencies of real text, as binary data of fairseq."""

import math
import random
from pathlib import Path

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

from lwc_fairseq_compat.files import whole_file

SPECIAL = 4  # types that fairseq adds to a dictionary


def write_data(folder: Path, types: int, sentences: dict[str, int], length: tuple[int, int] | None = None) -> Path:
    """Writes dictionaries and the pairs of each split, unless the folder exists.

    Source lengths follow a log-normal distribution (median 20, σ 0.5, from 3 to 100 words). A target is at most a tenth
    shorter or longer than its source. Words follow Zipf's law. The seed is fixed.

    Args:
        types: V, the size of the dictionary, which both languages share.
        sentences: the number of pairs of each split.
        length: the shortest and the longest source, for a uniform distribution instead.
    """
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(folder) as making:
        fill(Path(making), types, sentences, length)
    return folder


def fill(making: Path, types: int, sentences: dict[str, int], length: tuple[int, int] | None) -> None:
    """Writes the files. The arguments are those of `write_data`."""
    making.mkdir()
    dictionary = Dictionary()
    for number in range(types - len(dictionary)):
        dictionary.add_symbol(f"w{number}", n=types - number)
    for language in ("de", "en"):
        dictionary.save(str(making / f"dict.{language}.txt"))
    draw = random.Random(1)
    words = torch.Generator().manual_seed(1)
    frequencies = 1.0 / torch.arange(1, types - SPECIAL + 1)
    for split, count in sentences.items():
        source = [draw_length(draw, length) for _ in range(count)]
        lengths = {"de": source, "en": [max(2, round(n * draw.uniform(0.9, 1.1))) for n in source]}
        for language in ("de", "en"):
            prefix = str(making / f"{split}.de-en.{language}")
            builder = MMapIndexedDatasetBuilder(prefix + ".bin", dtype=np.int32)
            for n in lengths[language]:
                drawn = torch.multinomial(frequencies, n, replacement=True, generator=words) + SPECIAL
                builder.add_item(torch.cat([drawn, torch.tensor([dictionary.eos()])]).int())
            builder.finalize(prefix + ".idx")


def draw_length(draw: random.Random, length: tuple[int, int] | None) -> int:
    if length is not None:
        return draw.randint(*length)
    return min(100, max(3, round(draw.lognormvariate(math.log(20), 0.5))))
