"""Sentence pairs without meaning, of the lengths and word frequencies of real ones, as binary data of fairseq."""

import math
import random
from pathlib import Path

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

SPECIAL = 4  # types that fairseq adds to a dictionary


def write_data(folder: Path, types: int, sentences: dict[str, int], length: tuple[int, int] | None = None) -> Path:
    """Write dictionaries and, for each split, so many pairs; nothing if the folder is there.

    Source lengths follow a log-normal distribution (median 20, σ 0.5, from 3 to 100 words), those of targets lie within
    a tenth of them; words follow Zipf's law. Everything is drawn from the same seed.

    Args:
        types: V, of each language; both dictionaries are the same.
        length: the lowest and the highest source length instead, drawn evenly.
    """
    if folder.exists():
        return folder
    making = folder.with_name(folder.name + ".making")
    making.mkdir(parents=True, exist_ok=True)
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
    making.rename(folder)
    return folder


def draw_length(draw: random.Random, length: tuple[int, int] | None) -> int:
    if length is not None:
        return draw.randint(*length)
    return min(100, max(3, round(draw.lognormvariate(math.log(20), 0.5))))
