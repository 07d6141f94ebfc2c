"""The length penalty of Wu et al. (GNMT, 2016), which the LWC paper's α refers to."""

from fairseq.sequence_generator import SequenceGenerator, SequenceGeneratorWithAlignment
from torch import Tensor

from .beam_search import QuickSequenceGenerator, best_first


def gnmt_length_penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6)^α, for a hypothesis of `length` tokens, EOS counted."""
    return ((5 + length) / 6) ** alpha


class GNMTScores:
    """A mix-in for generators: divides log-probabilities by :func:`gnmt_length_penalty` instead of by length^lenpen.

    fairseq's search compares open hypotheses by plain log-probability and ends a sentence when `beam` hypotheses have
    ended, so the penalty decides only how those are ranked: it can be applied once the search is over.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **{**kwargs, "normalize_scores": False})

    def _generate(self, sample: dict, *args, **kwargs) -> list[list[dict[str, Tensor]]]:
        sentences = super()._generate(sample, *args, **kwargs)
        for hypotheses in sentences:
            for hypothesis in hypotheses:
                penalty = gnmt_length_penalty(len(hypothesis["tokens"]), self.len_penalty)
                hypothesis["score"] = hypothesis["score"] / penalty
        return [best_first(hypotheses) for hypotheses in sentences]


class GNMTSequenceGenerator(GNMTScores, QuickSequenceGenerator):
    """With the search of this plugin."""


class StockGNMTSequenceGenerator(GNMTScores, SequenceGenerator):
    """With fairseq's search."""


class GNMTSequenceGeneratorWithAlignment(SequenceGeneratorWithAlignment, StockGNMTSequenceGenerator):
    """For --print-alignment, which aligns what the search has ranked."""
