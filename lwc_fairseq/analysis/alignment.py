"""Word alignments: from attention, from files, and their error rate.

A link (i, j) connects source word i and target word j, counted from 0. In the Pharaoh format it is `i-j`. Gold links
are sure, `i-j`, or possible, `ipj` or `i?j`.

Letters: n source and m target tokens, N and M words.
"""

import re
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path

import torch
from torch import Tensor

from lwc_fairseq_compat import UserError

from ..files import read_lines
from .attention import Forced, choose, word_numbers

Link = tuple[int, int]


def by_words(weights: Tensor, source: list[str], target: list[str]) -> Tensor:
    """Convert attention between subwords (m, n) to attention between words (M, N): the sum over the subwords of a
    source word, and the mean over those of a target word."""
    rows, columns = (torch.tensor(word_numbers(tokens)) for tokens in (target, source))
    words = weights.new_zeros(int(rows.max()) + 1, weights.size(1)).index_add(0, rows, weights)
    words = words / rows.bincount()[:, None]
    return words.new_zeros(len(words), int(columns.max()) + 1).index_add(1, columns, words)


def links(sentence: Forced, layer: int | None, head: int | None) -> list[Link]:
    """Link each target word to the source word that it attends to most. The layer and the head are those of
    :func:`choose`."""
    source, target = sentence.source[:-1], sentence.target[:-1]  # without the end symbols
    if not source or not target:
        return []
    weights = choose(sentence.attentions, layer, head)[:-1, :-1]
    best = by_words(weights, source, target).argmax(1).tolist()
    return [(i, j) for j, i in enumerate(best)]


def pharaoh(alignment: Iterable[Link]) -> str:
    return " ".join(f"{i}-{j}" for i, j in sorted(alignment))


@dataclass(frozen=True)
class Gold:
    """The gold links of a sentence. Every sure link is also a possible link."""

    sure: set[Link]
    possible: set[Link]


def read_alignments(path: Path, first: int = 0) -> list[Gold]:
    """Read a file of gold alignments, one sentence per line. The first word of a sentence has the number `first`, 0
    or 1. Raises UserError if the file cannot be read, or a line is invalid."""
    alignments = []
    for number, line in enumerate(read_lines(path), 1):
        gold = Gold(set(), set())
        for word in line.split():
            match = re.fullmatch(r"(\d+)([-p?])(\d+)", word)
            if match is None:
                raise UserError(f"{path}, line {number}: {word}: not a link such as 0-1, 0p1 or 0?1")
            link = int(match[1]) - first, int(match[3]) - first
            if min(link) < 0:
                raise UserError(f"{path}, line {number}: {word}: words are counted from {first}")
            gold.possible.add(link)
            if match[2] == "-":
                gold.sure.add(link)
        alignments.append(gold)
    return alignments


def read_links(path: Path) -> list[set[Link]]:
    """Read a file of a system's links, with words counted from 0. Raises UserError if the file cannot be read, or
    contains possible links."""
    alignments = read_alignments(path)
    for number, alignment in enumerate(alignments, 1):
        if alignment.possible != alignment.sure:
            raise UserError(f"{path}, line {number}: links of a system are written i-j; p and ? are for gold files")
    return [alignment.sure for alignment in alignments]


def check_inside(gold: Gold, sentence: Forced, where: str) -> None:
    """Raises UserError if a gold link refers to a word beyond the end of the sentence."""
    sizes = [len(set(word_numbers(tokens[:-1]))) for tokens in (sentence.source, sentence.target)]
    for i, j in sorted(gold.possible):
        if i >= sizes[0] or j >= sizes[1]:
            raise UserError(
                f"{where}: link {i}-{j}, counted from 0, in a sentence of {sizes[0]} and {sizes[1]} words: is the file "
                "of this test set, and --gold-first right?"
            )


@dataclass(frozen=True)
class ErrorRate:
    """The alignment error rate of Och and Ney (2003) over all sentences. A are the links of a system, S the sure and P
    the possible gold links.

    precision = |A ∩ P| / |A|,  recall = |A ∩ S| / |S|,  AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
    """

    aer: float
    precision: float
    recall: float

    def percentages(self) -> list[str]:
        return [f"{100 * value:.2f}" for value in astuple(self)]


def error_rate(system: list[set[Link]], gold: list[Gold]) -> ErrorRate:
    """Compute the error rate of a system's alignments; both lists have one entry per sentence. Raises UserError if
    their lengths differ, or neither has a link."""
    if len(system) != len(gold):
        raise UserError(f"{len(system)} alignments, but {len(gold)} in the gold file: give files of the same sentences")
    total, sure = sum(map(len, system)), sum(len(sentence.sure) for sentence in gold)
    if total + sure == 0:
        raise UserError("neither alignment has a link")
    in_sure = sum(len(links & sentence.sure) for links, sentence in zip(system, gold, strict=True))
    in_possible = sum(len(links & sentence.possible) for links, sentence in zip(system, gold, strict=True))
    return ErrorRate(
        aer=1 - (in_sure + in_possible) / (total + sure),
        precision=in_possible / total if total else 0.0,
        recall=in_sure / sure if sure else 0.0,
    )


def layer_error_rates(sentences: Iterable[Forced], gold: list[Gold], gold_file: Path) -> dict[str, ErrorRate]:
    """Compute the error rate of each layer, by its number, and of the mean over all layers ("all").

    The gold alignments are in the order of the data; errors name their file. Raises UserError if they do not match the
    sentences.
    """
    by_layer: dict[str, dict[int, set[Link]]] = {}
    for sentence in sentences:
        if sentence.number < len(gold):
            check_inside(gold[sentence.number], sentence, f"{gold_file}, line {sentence.number + 1}")
        for layer in [*range(len(sentence.attentions)), None]:
            name = "all" if layer is None else str(layer)
            by_layer.setdefault(name, {})[sentence.number] = set(links(sentence, layer, None))
    return {name: error_rate([of[number] for number in sorted(of)], gold) for name, of in by_layer.items()}
