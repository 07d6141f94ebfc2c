"""Word alignments from attention, and their error rate.

A link (i, j) joins source word i and target word j, counted from 0; its Pharaoh form is `i-j`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from lwc_fairseq_compat import UserError

from ..files import read_lines
from .attention import Forced

Link = tuple[int, int]


def word_numbers(tokens: list[str]) -> list[int]:
    """The word that each token belongs to; a token that ends in @@ goes on in the next one (subword-nmt)."""
    numbers, word = [], 0
    for token in tokens:
        numbers.append(word)
        word += not token.endswith("@@")
    return numbers


def by_words(weights: Tensor, source: list[str], target: list[str]) -> Tensor:
    """Attention of sub-words (m, n) as attention of words (M, N).

    What a word's parts receive is added up, what its parts give is averaged.
    """
    rows, columns = (torch.tensor(word_numbers(tokens)) for tokens in (target, source))
    words = weights.new_zeros(int(rows.max()) + 1, weights.size(1)).index_add(0, rows, weights)
    words = words / rows.bincount()[:, None]
    return words.new_zeros(len(words), int(columns.max()) + 1).index_add(1, columns, words)


def choose(attentions: list[Tensor], layer: int | None, head: int | None) -> Tensor:
    """Weights (m, n) of a layer and a head, or their mean over all of them (None).

    Raises:
        UserError: there is no such layer or head.
    """
    stacked = torch.stack([weights if head is None else pick(weights, head, "--head") for weights in attentions])
    heads = stacked.mean(1) if head is None else stacked
    return heads.mean(0) if layer is None else pick(heads, layer, "--layer")


def pick(weights: Tensor, index: int, option: str) -> Tensor:
    if not 0 <= index < len(weights):
        raise UserError(f"{option} {index}: the model has {len(weights)}, counted from 0")
    return weights[index]


def links(sentence: Forced, layer: int | None, head: int | None) -> list[Link]:
    """For each target word, in reading order, the source word that it attends to most."""
    source, target = sentence.source[:-1], sentence.target[:-1]  # without the end symbols
    if not source or not target:
        return []
    weights = choose(sentence.attentions, layer, head)[:-1, :-1]
    if sentence.reverse:
        weights, target = weights.flip(0), target[::-1]
    best = by_words(weights, source, target).argmax(1).tolist()
    return [(i, j) for j, i in enumerate(best)]


def pharaoh(alignment: Iterable[Link]) -> str:
    return " ".join(f"{i}-{j}" for i, j in sorted(alignment))


@dataclass(frozen=True)
class Gold:
    """Links that are sure, and those that are at least possible, which include the sure ones."""

    sure: set[Link]
    possible: set[Link]


def parse_line(line: str, first: int) -> Gold:
    """Links `i-j` (sure), `ipj` or `i?j` (possible), counted from `first`."""
    sure, possible = set(), set()
    for word in line.split():
        match = re.fullmatch(r"(\d+)([-p?])(\d+)", word)
        if match is None:
            raise ValueError(f"{word}: not a link such as 0-1, 0p1 or 0?1")
        link = int(match[1]) - first, int(match[3]) - first
        if min(link) < 0:
            raise ValueError(f"{word}: words are counted from {first}")
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return Gold(sure, possible)


def read_alignments(path: Path, first: int = 0) -> list[Gold]:
    """A file of alignments, a line a sentence.

    Args:
        first: the number of the first word, 0 or 1.

    Raises:
        UserError: the file cannot be read; the line is named.
    """
    alignments = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            alignments.append(parse_line(line, first))
        except ValueError as error:
            raise UserError(f"{path}, line {number}: {error}") from error
    return alignments


def read_links(path: Path) -> list[set[Link]]:
    """A file of links found by a system, from 0.

    Raises:
        UserError: it cannot be read, or has links that are only possible.
    """
    alignments = read_alignments(path)
    for number, alignment in enumerate(alignments, 1):
        if alignment.possible != alignment.sure:
            raise UserError(f"{path}, line {number}: links of a system are written i-j; p and ? are for gold files")
    return [alignment.sure for alignment in alignments]


def check_inside(gold: Gold, sentence: Forced, where: str) -> None:
    """Raises UserError if a gold link names a word that the sentence does not have."""
    sizes = [len(set(word_numbers(tokens[:-1]))) for tokens in (sentence.source, sentence.target)]
    for i, j in sorted(gold.possible):
        if i >= sizes[0] or j >= sizes[1]:
            raise UserError(
                f"{where}: link {i}-{j}, counted from 0, in a sentence of {sizes[0]} and {sizes[1]} words: is the file "
                "of this test set, and --gold-first right?"
            )


@dataclass(frozen=True)
class ErrorRate:
    """Och and Ney (2003), summed over all sentences: A the links found, S the sure and P the possible ones.

    precision = |A ∩ P| / |A|,  recall = |A ∩ S| / |S|,  AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
    """

    aer: float
    precision: float
    recall: float


def error_rate(found: list[set[Link]], gold: list[Gold]) -> ErrorRate:
    """Of alignments, sentence by sentence.

    Raises:
        UserError: there are not equally many, or there is nothing to compare.
    """
    if len(found) != len(gold):
        raise UserError(f"{len(found)} alignments, but {len(gold)} in the gold file: give files of the same sentences")
    links_found, sure = sum(map(len, found)), sum(len(one.sure) for one in gold)
    if links_found + sure == 0:
        raise UserError("neither alignment has a link")
    in_sure = sum(len(links & one.sure) for links, one in zip(found, gold, strict=True))
    in_possible = sum(len(links & one.possible) for links, one in zip(found, gold, strict=True))
    return ErrorRate(
        aer=1 - (in_sure + in_possible) / (links_found + sure),
        precision=in_possible / links_found if links_found else 0.0,
        recall=in_sure / sure if sure else 0.0,
    )


def layer_error_rates(sentences: Iterable[Forced], gold: list[Gold], gold_file: Path) -> dict[str, ErrorRate]:
    """The error rate of each layer, by its number, and of the mean of all layers' weights ("all").

    Args:
        gold: of each sentence, in the order of the data.
        gold_file: where they were read, for messages.

    Raises:
        UserError: they are not of these sentences.
    """
    found: dict[str, dict[int, set[Link]]] = {}
    for one in sentences:
        if one.number < len(gold):
            check_inside(gold[one.number], one, f"{gold_file}, line {one.number + 1}")
        for layer in [*range(len(one.attentions)), None]:
            name = "all" if layer is None else str(layer)
            found.setdefault(name, {})[one.number] = set(links(one, layer, None))
    return {
        name: error_rate([of_layer[number] for number in sorted(of_layer)], gold) for name, of_layer in found.items()
    }
