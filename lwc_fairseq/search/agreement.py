"""Agreement of two directions: Liu, Utiyama, Finch, Sumita, *Agreement on Target-Bidirectional Neural Machine
Translation* (2016), the baseline ATNMT of the ABD paper.

A left-to-right model and a right-to-left model search separately. Then both models score every hypothesis that either
search has found. The score of a hypothesis is the sum

    log P(y | x; left to right) + log P(reversed y | x; right to left)
"""

import torch
from fairseq.data import data_utils
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer
from torch import Tensor

from lwc_fairseq_compat import UserError

from ..data.reverse import reverse_targets, reverse_words, reversed_order


class AgreementSearch:
    """Two searches whose hypotheses both models score. It has the interface of fairseq's generators.

    Args:
        generator: the search with the left-to-right models.
        reverse_generator: the search with the right-to-left models.
        reverse_models: the ensemble of right-to-left models.
        dictionary: the target dictionary.
    """

    def __init__(self, generator: SequenceGenerator, reverse_generator: SequenceGenerator, reverse_models, dictionary):
        self.generator = generator
        self.reverse_generator = reverse_generator
        self.reverse_models = reverse_models
        self.scorer = SequenceScorer(dictionary)
        self.pad, self.eos = dictionary.pad(), dictionary.eos()
        self.symbols_to_strip_from_output = generator.symbols_to_strip_from_output

    def generate(self, models, sample: dict, prefix_tokens=None, constraints=None, **unused) -> list[list[dict]]:
        """Return the hypotheses of each sentence, in reading order and unranked. Their "score" is the sum above.

        Raises:
            UserError: `prefix_tokens` or `constraints` are given.
        """
        if prefix_tokens is not None or constraints is not None:
            raise UserError("--agreement-path cannot be combined with --prefix-size or --constraints: leave those out")
        candidates = merge(
            self.generator.generate(models, sample),
            self.reverse_generator.generate(self.reverse_models, sample),
            self.eos,
        )
        hypotheses: list[list[dict]] = [[] for _ in candidates]
        for i in range(max(map(len, candidates))):  # one of each sentence per pass, so that no source is copied
            rows = [row for row, found in enumerate(candidates) if i < len(found)]
            targets = [candidates[row][i] for row in rows]
            for row, tokens, scores in zip(rows, targets, self._score(models, sample, rows, targets), strict=True):
                hypotheses[row].append(as_hypothesis(tokens, scores))
        return hypotheses

    def _score(self, models, sample: dict, rows: list[int], targets: list[Tensor]) -> list[Tensor]:
        """Return, for each target, the sum of both models' log-probabilities of its tokens, (m,).

        Args:
            rows: for each target, the row of its sentence in the batch.
        """
        target = data_utils.collate_tokens(targets, self.pad)
        forward = self._teacher_force(models, sample, rows, target)
        backward = self._teacher_force(self.reverse_models, sample, rows, reverse_targets(target, self.pad))
        return [
            one + other[reversed_order(tokens, self.eos)]
            for tokens, one, other in zip(targets, forward, backward, strict=True)
        ]

    def _teacher_force(self, models, sample: dict, rows: list[int], target: Tensor) -> list[Tensor]:
        """Return, for each target (B, m), the models' log-probabilities of its tokens."""
        source = sample["net_input"]
        index = torch.tensor(rows, device=target.device)
        start = target.new_full((len(target), 1), self.eos)
        words = target[:, :-1]
        prev_output_tokens = torch.cat([start, words.masked_fill(words.eq(self.eos), self.pad)], dim=1)
        net_input = {
            "src_tokens": source["src_tokens"].index_select(0, index),
            "src_lengths": source["src_lengths"].index_select(0, index),
            "prev_output_tokens": prev_output_tokens,
        }
        scored = self.scorer.generate(models, {"net_input": net_input, "target": target})
        return [hypotheses[0]["positional_scores"] for hypotheses in scored]


def as_hypothesis(tokens: Tensor, scores: Tensor) -> dict:
    """Return a hypothesis in fairseq's format, from tokens (m,) and their log-probabilities (m,)."""
    return {
        "tokens": tokens,
        "score": scores.sum(),
        "positional_scores": scores,
        "attention": scores.new_empty(0),
        "alignment": [],
    }


def merge(found: list[list[dict]], found_reversed: list[list[dict]], eos: int) -> list[list[Tensor]]:
    """Return, for each sentence, the tokens of both searches' hypotheses in reading order, without duplicates."""
    merged = []
    for one, other in zip(found, found_reversed, strict=True):
        tokens = [hypothesis["tokens"] for hypothesis in one]
        tokens += [reverse_words(hypothesis["tokens"], eos) for hypothesis in other]
        merged.append(list({tuple(row.tolist()): row for row in tokens}.values()))
    return merged
