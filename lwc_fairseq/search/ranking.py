"""The ranking of the hypotheses that a search has found.

A hypothesis y of m tokens, including the end symbol, is ranked by log P(y | x) / penalty(m). The penalty is

    m^α                   fairseq's default; α is --lenpen
    ((5 + m) / 6)^α       with --gnmt-length-penalty (Wu et al., 2016), to which the α of the LWC paper refers
    1                     with --unnormalized

fairseq's search compares unfinished hypotheses by log P and ends a sentence as soon as `beam` hypotheses have ended.
So the penalty affects only the order of the finished hypotheses, and can be applied after the search.
"""

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter

import torch
from torch import Tensor

from lwc_fairseq_compat import UserError


@dataclass(frozen=True)
class Ranking:
    """Ranks the hypotheses of a sentence by log P / penalty(m)."""

    penalty: Callable[[int], float]

    def rank(self, found: list[list[dict[str, Tensor]]]) -> list[list[dict[str, Tensor]]]:
        """Return each sentence's hypotheses, best first, with "score" divided by the penalty.

        Args:
            found: the hypotheses of each sentence of a batch, in fairseq's format; "score" is log P.
        """
        penalized = [[self._penalize(one) for one in own] for own in found]
        # One copy for the whole batch, because each copy waits for the device.
        scores = iter(torch.stack([one["score"] for own in penalized for one in own]).tolist())
        by_score = [[(next(scores), one) for one in own] for own in penalized]
        return [[one for _, one in sorted(own, key=itemgetter(0), reverse=True)] for own in by_score]

    def _penalize(self, hypothesis: dict[str, Tensor]) -> dict[str, Tensor]:
        return {**hypothesis, "score": hypothesis["score"] / self.penalty(len(hypothesis["tokens"]))}


def choose_ranking(alpha: float = 1.0, gnmt: bool = False, unnormalized: bool = False) -> Ranking:
    """Return the ranking for --lenpen, --gnmt-length-penalty and --unnormalized.

    Raises:
        UserError: both of the last two options are set.
    """
    if gnmt and unnormalized:
        raise UserError("--gnmt-length-penalty and --unnormalized exclude each other: leave one out")
    if unnormalized:
        return Ranking(lambda length: 1.0)
    if gnmt:
        return Ranking(lambda length: ((5 + length) / 6) ** alpha)
    return Ranking(lambda length: length**alpha)


class RankedGenerator:
    """Ranks the hypotheses of another generator. It has the interface of fairseq's generators.

    Args:
        generator: the other generator; the "score" of its hypotheses is log P.
    """

    def __init__(self, generator, ranking: Ranking):
        self.generator = generator
        self.ranking = ranking
        self.symbols_to_strip_from_output = generator.symbols_to_strip_from_output

    def generate(self, models, sample: dict, **options) -> list[list[dict[str, Tensor]]]:
        """Return the hypotheses of each sentence, best first."""
        return self.ranking.rank(self.generator.generate(models, sample, **options))
