"""How the hypotheses that a search has found are ranked.

A hypothesis y of m tokens, including the end symbol, is ranked by log P(y | x) / penalty(m), where the penalty is

    m^α                   fairseq's default; α is --lenpen
    ((5 + m) / 6)^α       with --gnmt-length-penalty (Wu et al., 2016), to which the α of the LWC paper refers
    1                     with --unnormalized

fairseq's search compares unfinished hypotheses by log P and ends a sentence as soon as `beam` hypotheses have ended.
So the penalty decides only the order of those, and it can be applied once the search is over.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lwc_fairseq_compat import UserError


@dataclass(frozen=True)
class Ranking:
    """Ranks the hypotheses of a sentence by log P / penalty(m)."""

    penalty: Callable[[int], float]

    def rank(self, hypotheses: list[dict[str, Tensor]]) -> list[dict[str, Tensor]]:
        """The hypotheses, best first, with "score" divided by the penalty.

        Args:
            hypotheses: of one sentence, in fairseq's form; "score" is log P.
        """
        ranked = [{**one, "score": one["score"] / self.penalty(len(one["tokens"]))} for one in hypotheses]
        order = torch.stack([one["score"] for one in ranked]).argsort(descending=True, stable=True)
        return [ranked[i] for i in order.tolist()]


def choose_ranking(alpha: float = 1.0, gnmt: bool = False, unnormalized: bool = False) -> Ranking:
    """The ranking of --lenpen, --gnmt-length-penalty and --unnormalized.

    Raises:
        UserError: the last two are given together.
    """
    if gnmt and unnormalized:
        raise UserError("--gnmt-length-penalty and --unnormalized exclude each other: leave one out")
    if unnormalized:
        return Ranking(lambda length: 1.0)
    if gnmt:
        return Ranking(lambda length: ((5 + length) / 6) ** alpha)
    return Ranking(lambda length: length**alpha)


class RankedGenerator:
    """A generator of fairseq whose hypotheses are ranked here.

    Args:
        generator: finds hypotheses, whose "score" is log P.
    """

    def __init__(self, generator, ranking: Ranking):
        self.generator = generator
        self.ranking = ranking
        self.symbols_to_strip_from_output = generator.symbols_to_strip_from_output

    def generate(self, models, sample: dict, **options) -> list[list[dict[str, Tensor]]]:
        """The hypotheses of each sentence, best first."""
        return [self.ranking.rank(found) for found in self.generator.generate(models, sample, **options)]
