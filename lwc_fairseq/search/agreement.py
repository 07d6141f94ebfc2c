"""Agreement of two directions: Liu, Utiyama, Finch, Sumita, *Agreement on Target-Bidirectional Neural Machine
Translation* (2016), the baseline ATNMT of the ABD paper.

A left-to-right and a right-to-left model each search by themselves. Every hypothesis that either of them found is then
scored by both, and ranked by the sum of the two scores:

    log P(y | x; left to right) + log P(reversed y | x; right to left)
"""

import torch
from fairseq.data import data_utils
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer
from torch import Tensor

from lwc_fairseq_compat import UserError

from ..data.reverse import reverse_targets


class AgreementSearch:
    """Two searches and the ranking of what they find; used as a generator of fairseq.

    Args:
        generator: searches with the left-to-right models. Its length normalisation ranks the result.
        reverse_generator: searches with the right-to-left models.
        reverse_models: the latter, an ensemble.
        dictionary: of the target.
    """

    def __init__(self, generator: SequenceGenerator, reverse_generator: SequenceGenerator, reverse_models, dictionary):
        self.generator = generator
        self.reverse_generator = reverse_generator
        self.reverse_models = reverse_models
        self.scorer = SequenceScorer(dictionary)
        self.pad, self.eos = dictionary.pad(), dictionary.eos()
        self.symbols_to_strip_from_output = generator.symbols_to_strip_from_output

    def generate(self, models, sample: dict, prefix_tokens=None, constraints=None, **unused) -> list[list[dict]]:
        """Hypotheses of each sentence, best first, in reading order."""
        if prefix_tokens is not None or constraints is not None:
            raise UserError("--agreement-path goes neither with --prefix-size nor with --constraints: leave those out")
        candidates = merge(
            self.generator.generate(models, sample),
            self.reverse_generator.generate(self.reverse_models, sample),
            self.eos,
        )
        ranked: list[list[dict]] = [[] for _ in candidates]
        for rank in range(max(map(len, candidates))):
            rows = [i for i, found in enumerate(candidates) if rank < len(found)]
            scores = self._score(models, sample, rows, [candidates[i][rank] for i in rows])
            for i, tokens, of_tokens in zip(rows, [candidates[i][rank] for i in rows], scores, strict=True):
                ranked[i].append(self._hypothesis(tokens, of_tokens))
        for found in ranked:
            found.sort(key=lambda hypothesis: hypothesis["score"].item(), reverse=True)
        return ranked

    def _score(self, models, sample: dict, rows: list[int], targets: list[Tensor]) -> list[Tensor]:
        """For one hypothesis of each of some sentences: the sum of both models' log-probabilities of each token."""
        target = data_utils.collate_tokens(targets, self.pad)
        forward = self._teacher_force(models, sample, rows, target)
        backward = self._teacher_force(self.reverse_models, sample, rows, reverse_targets(target, self.pad))
        return [one + torch.cat([other[:-1].flip(0), other[-1:]]) for one, other in zip(forward, backward, strict=True)]

    def _teacher_force(self, models, sample: dict, rows: list[int], target: Tensor) -> list[Tensor]:
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

    def _hypothesis(self, tokens: Tensor, scores: Tensor) -> dict:
        score = scores.sum()
        if self.generator.normalize_scores:
            score = score / len(tokens) ** self.generator.len_penalty
        return {
            "tokens": tokens,
            "score": score,
            "positional_scores": scores,
            "attention": scores.new_empty(0),
            "alignment": [],
        }


def merge(found: list[list[dict]], found_reversed: list[list[dict]], eos: int) -> list[list[Tensor]]:
    """The hypotheses of both searches for each sentence, each once, in reading order, with the end symbol last."""
    merged = []
    for one, other in zip(found, found_reversed, strict=True):
        words = [without_end(hypothesis["tokens"], eos) for hypothesis in one]
        words += [without_end(hypothesis["tokens"], eos).flip(0) for hypothesis in other]
        unique = {tuple(tokens.tolist()): tokens for tokens in words}
        merged.append([torch.cat([tokens, tokens.new_tensor([eos])]) for tokens in unique.values()])
    return merged


def without_end(tokens: Tensor, eos: int) -> Tensor:
    """A hypothesis' tokens but for the end symbol that it may have."""
    return tokens[:-1] if len(tokens) and tokens[-1].item() == eos else tokens
