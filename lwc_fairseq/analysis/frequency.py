"""How well systems translate the words that are rare in the training set, and those that are frequent.

The measure is the one that compare-mt shows: Neubig et al., *compare-mt: A Tool for Holistic Comparison of Language
Generation Systems*, NAACL 2019. It is F1 of words rather than BLEU, because an n-gram joins words of different
frequencies.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from ..files import read_lines

BOUNDS = (0, 1, 2, 3, 4, 5, 10, 100, 1000)
"""The frequencies at which groups begin."""

DEFINITION = (
    "F1: twice the number of words that a translation shares with the reference, divided by the number of words of "
    "both. Only the words count that are so frequent in the training set."
)


def frequency_groups(
    systems: Mapping[str, Sequence[str]], references: Sequence[Sequence[str]], frequencies: Mapping[str, int]
) -> list[dict]:
    """Return F1, in per cent, of the words of each group of frequencies in the training set.

        F1_g = 100 · 2 Σ_w Σ_i min(c_i(w), r_i(w)) / Σ_w Σ_i (c_i(w) + r_i(w))

    where w are the words of group g, and sentence i has w c_i(w) times in the translation and r_i(w) times in the
    reference. With several references, both sums are over all pairs of a translation and one of its references. Groups
    of which no reference has a word are left out.

    Args:
        systems: the translations of each system.
        references: lists of references, each with a line for each sentence.
        frequencies: how often the training set has each word.
    """
    group = {word: bisect_right(BOUNDS, number) - 1 for word, number in frequencies.items()}

    def sizes(words: Counter[str]) -> Counter[int]:
        """Return how many of these words each group has."""
        of_groups: Counter[int] = Counter()
        for word, number in words.items():
            of_groups[group.get(word, 0)] += number
        return of_groups

    expected = [[Counter(line.split()) for line in reference] for reference in references]
    in_references: Counter[int] = Counter()
    for words in chain(*expected):
        in_references.update(sizes(words))
    shared: dict[str, Counter[int]] = {name: Counter() for name in systems}
    in_both: dict[str, Counter[int]] = {name: Counter(in_references) for name in systems}
    for name, lines in systems.items():
        for line, *of_line in zip(lines, *expected, strict=True):
            produced = Counter(line.split())
            for reference in of_line:
                shared[name].update(sizes(produced & reference))
                in_both[name].update(sizes(produced))
    return [
        {
            "from": low,
            "to": high,
            "words": in_references[i],
            "f1": {name: round(200 * shared[name][i] / in_both[name][i], 2) for name in systems},
        }
        for i, (low, high) in enumerate(zip(BOUNDS, [*BOUNDS[1:], None], strict=True))
        if in_references[i]
    ]


def count_words(path: Path) -> Counter[str]:
    """Count the words of a text. Raises UserError if it cannot be read, or is empty."""
    return Counter(chain.from_iterable(map(str.split, read_lines(path))))
