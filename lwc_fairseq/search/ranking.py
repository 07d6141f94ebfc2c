"""The ranking of the hypotheses that a search has found.

A hypothesis y of m tokens, including the end symbol, is ranked by log P(y | x) / penalty(m). The penalty is

    m^α                   fairseq's default; α is --lenpen
    ((5 + m) / 6)^α       with --gnmt-length-penalty (Wu et al., 2016), to which the α of the LWC paper refers
    1                     with --unnormalized

fairseq's search compares unfinished hypotheses by log P and ends a sentence as soon as `beam` hypotheses have ended.
So the penalty affects only the order of the finished hypotheses, and can be applied after the search.
"""

from collections.abc import Callable
from operator import itemgetter

import torch
from torch import Tensor

from lwc_fairseq_compat import UserError

Penalty = Callable[[int], float]


def choose_penalty(alpha: float = 1.0, gnmt: bool = False, unnormalized: bool = False) -> Penalty:
    """Return the penalty for --lenpen, --gnmt-length-penalty and --unnormalized.

    Raises:
        UserError: both of the last two options are set.
    """
    if gnmt and unnormalized:
        raise UserError("--gnmt-length-penalty and --unnormalized exclude each other: leave one out")
    if unnormalized:
        return lambda length: 1.0
    if gnmt:
        return lambda length: ((5 + length) / 6) ** alpha
    return lambda length: length**alpha


def rank(batch: list[list[dict[str, Tensor]]], penalty: Penalty) -> list[list[dict[str, Tensor]]]:
    """Return each sentence's hypotheses, best first, with "score" divided by the penalty.

    Args:
        batch: the hypotheses of each sentence of a batch, in fairseq's format; "score" is log P.
    """
    batch = [[{**h, "score": h["score"] / penalty(len(h["tokens"]))} for h in hypotheses] for hypotheses in batch]
    # One copy for the whole batch, because each copy waits for the device.
    scores = iter(torch.stack([h["score"] for hypotheses in batch for h in hypotheses]).tolist())
    by_score = [[(next(scores), h) for h in hypotheses] for hypotheses in batch]
    return [[h for _, h in sorted(pairs, key=itemgetter(0), reverse=True)] for pairs in by_score]


class RankedGenerator:
    """Ranks the hypotheses of another generator, by :func:`rank`. It has the interface of fairseq's generators."""

    def __init__(self, generator, penalty: Penalty):
        self.generator, self.penalty = generator, penalty
        self.symbols_to_strip_from_output = generator.symbols_to_strip_from_output

    def generate(self, models, sample: dict, **options) -> list[list[dict[str, Tensor]]]:
        return rank(self.generator.generate(models, sample, **options), self.penalty)
