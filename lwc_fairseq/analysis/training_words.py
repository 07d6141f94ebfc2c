"""The words of the training set in binary data."""

import os
from collections import Counter
from collections.abc import Iterator
from itertools import count

import numpy as np
from fairseq.data import Dictionary
from fairseq.data.data_utils import load_indexed_dataset
from fairseq.tasks import FairseqTask

from .attention import join


def count_training_words(task: FairseqTask) -> Counter[str]:
    """Count the words on the target side of the training sets in a task's data; sub-words are joined to words. There
    are none if the data have no training set."""
    dictionary = task.target_dictionary
    symbols = np.array(dictionary.symbols, dtype=object)
    begins, ends = word_boundaries(dictionary)
    words: Counter[tuple[int, ...]] = Counter()
    for dataset in training_sets(task):
        for first in range(0, len(dataset), 10_000):  # together, because a loop over tokens is slow
            sentences = [dataset[i].numpy() for i in range(first, min(first + 10_000, len(dataset)))]
            tokens = np.concatenate(sentences)
            starts = np.flatnonzero(np.append(True, ends[tokens[:-1]] | begins[tokens[1:]]))
            lengths = np.diff(np.append(starts, len(tokens)))
            single, numbers = np.unique(tokens[starts[lengths == 1]], return_counts=True)
            words.update({(token,): number for token, number in zip(single.tolist(), numbers.tolist(), strict=True)})
            longer = np.flatnonzero(lengths > 1)
            words.update(tuple(tokens[starts[i] : starts[i] + lengths[i]].tolist()) for i in longer)
    for symbol in (dictionary.eos(), dictionary.unk()):  # the second stands for words that are not known here
        words.pop((symbol,), None)
    counts: Counter[str] = Counter()
    for word, number in words.items():
        counts[join(list(symbols[list(word)]))] += number
    return counts


def word_boundaries(dictionary: Dictionary) -> tuple[np.ndarray, np.ndarray]:
    """Return for each symbol (V,) whether a word begins before it, and whether a word ends behind it, as in
    :func:`.attention.word_numbers`. A few symbols that begin with ▁ may come from the text itself."""
    pieces = np.array([symbol.startswith("▁") for symbol in dictionary.symbols])
    continued = np.array([symbol.endswith("@@") for symbol in dictionary.symbols])
    is_end = np.arange(len(pieces)) == dictionary.eos()
    if pieces.mean() > max(0.01, continued.mean()):
        return pieces | is_end, is_end
    return is_end, ~continued


def training_sets(task: FairseqTask) -> Iterator:
    """Yield the target sides of `train`, `train1` and so on in all folders of a task's data."""
    source, target = task.cfg.source_lang, task.cfg.target_lang
    for folder in task.cfg.data.split(os.pathsep):
        for number in count():
            prefix = os.path.join(folder, f"train{number or ''}")
            pairs = (f"{prefix}.{pair}.{target}" for pair in (f"{source}-{target}", f"{target}-{source}"))
            loaded = (load_indexed_dataset(path, task.target_dictionary, task.cfg.dataset_impl) for path in pairs)
            dataset = next((dataset for dataset in loaded if dataset is not None), None)
            if dataset is None:
                break
            yield dataset
