"""Word alignments from attention.

A link (i, j) connects source word i and target word j, counted from 0. In the Pharaoh format it is `i-j`.

Letters: n source and m target tokens, N and M words.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from lwc_fairseq_compat import UserError

from .attention import Forced
from .subwords import word_numbers

Link = tuple[int, int]


def by_words(weights: Tensor, source: list[str], target: list[str]) -> Tensor:
    """Convert attention between subwords (m, n) to attention between words (M, N).

    The weight of a source word is the sum over its subwords; a target word takes the mean over its subwords.
    """
    rows, columns = (torch.tensor(word_numbers(tokens)) for tokens in (target, source))
    words = weights.new_zeros(int(rows.max()) + 1, weights.size(1)).index_add(0, rows, weights)
    words = words / rows.bincount()[:, None]
    return words.new_zeros(len(words), int(columns.max()) + 1).index_add(1, columns, words)


def choose(attentions: list[Tensor], layer: int | None, head: int | None) -> Tensor:
    """Return the weights (m, n) of a layer and a head. None selects the mean over layers or heads.

    Args:
        attentions: the weights of each layer, (H, m, n).

    Raises:
        UserError: the model has no such layer or head.
    """
    stacked = torch.stack([weights if head is None else pick(weights, head, "--head") for weights in attentions])
    heads = stacked.mean(1) if head is None else stacked
    return heads.mean(0) if layer is None else pick(heads, layer, "--layer")


def pick(weights: Tensor, index: int, option: str) -> Tensor:
    """Return one entry of the first dimension.

    Raises:
        UserError: the entry does not exist.
    """
    if not 0 <= index < len(weights):
        raise UserError(f"{option} {index}: the model has {len(weights)}, counted from 0")
    return weights[index]


def links(sentence: Forced, layer: int | None, head: int | None) -> list[Link]:
    """Link each target word to the source word that it attends to most."""
    source, target = sentence.source[:-1], sentence.target[:-1]  # without the end symbols
    if not source or not target:
        return []
    weights = choose(sentence.attentions, layer, head)[:-1, :-1]
    best = by_words(weights, source, target).argmax(1).tolist()
    return [(i, j) for j, i in enumerate(best)]


def pharaoh(alignment: Iterable[Link]) -> str:
    return " ".join(f"{i}-{j}" for i, j in sorted(alignment))
