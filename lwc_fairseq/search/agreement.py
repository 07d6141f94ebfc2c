"""Agreement of two directions: Liu, Utiyama, Finch, Sumita, *Agreement on Target-Bidirectional Neural Machine
Translation* (2016), the baseline ATNMT of the ABD paper.

A left-to-right model and a right-to-left model search separately. Then both models score every hypothesis that either
search has found. The score of a hypothesis is the sum

    log P(y | x; left to right) + log P(reversed y | x; right to left)

The ABD paper says that Liu et al. train both directions jointly. Here, the two models are trained separately.
"""

from copy import copy

import torch
from fairseq.checkpoint_utils import load_model_ensemble
from fairseq.data import data_utils
from fairseq.models import BaseFairseqModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks import FairseqTask
from fairseq.utils import split_paths
from torch import Tensor

from lwc_fairseq_compat import UserError

from ..data.reverse import require_reversed, reverse_targets, reverse_words, reversed_order


def load_reverse_models(task: FairseqTask) -> list[BaseFairseqModel]:
    """Load the models of --agreement-path.

    Raises:
        UserError: a model was not trained from right to left.
    """
    builder = copy(task)  # building a model changes the task, which describes the models in --path
    builder.trained_reversed = []
    models = []
    for path in split_paths(task.cfg.agreement_path):
        (model,), saved = load_model_ensemble([path], task=builder)
        require_reversed(saved.task, f"--agreement-path {path}")
        model.make_generation_fast_(need_attn=False)
        models.append(model)
    return models


class AgreementSearch:
    """Two searches whose hypotheses both models score. It has the interface of fairseq's generators.

    Args:
        generator: the search with the left-to-right models.
        reverse_generator: the search with the right-to-left models.
        reverse_models: the ensemble of right-to-left models.
        dictionary: the target dictionary.
    """

    def __init__(self, generator: SequenceGenerator, reverse_generator: SequenceGenerator, reverse_models, dictionary):
        self.generator, self.reverse_generator, self.reverse_models = generator, reverse_generator, reverse_models
        self.scorer = SequenceScorer(dictionary)
        generator.max_len = reverse_generator.max_len = min(generator.max_len, reverse_generator.max_len)
        self.pad, self.eos = dictionary.pad(), dictionary.eos()
        self.symbols_to_strip_from_output = generator.symbols_to_strip_from_output

    def generate(self, models, sample: dict, prefix_tokens=None, constraints=None, **unused) -> list[list[dict]]:
        """Return the hypotheses of each sentence, in reading order and unranked. Their "score" is the sum above.

        Raises:
            UserError: `prefix_tokens` or `constraints` are given.
        """
        if prefix_tokens is not None or constraints is not None:
            raise UserError("--agreement-path cannot be combined with --prefix-size or --constraints: leave those out")
        forward = self.generator.generate(models, sample)
        backward = self.reverse_generator.generate(self.reverse_models, sample)
        candidates = []
        for hypotheses, reverse_hypotheses in zip(forward, backward, strict=True):
            both = [hypothesis["tokens"] for hypothesis in hypotheses]
            both += [reverse_words(hypothesis["tokens"], self.eos) for hypothesis in reverse_hypotheses]
            candidates.append(list({tuple(tokens.tolist()): tokens for tokens in both}.values()))
        scored: list[list[dict]] = [[] for _ in candidates]
        for i in range(max(map(len, candidates))):  # one of each sentence per pass, so that no source is copied
            rows = [row for row, targets in enumerate(candidates) if i < len(targets)]
            targets = [candidates[row][i] for row in rows]
            for row, tokens, scores in zip(rows, targets, self._score(models, sample, rows, targets), strict=True):
                hypothesis = {"tokens": tokens, "score": scores.sum(), "positional_scores": scores}
                scored[row].append({**hypothesis, "attention": scores.new_empty(0), "alignment": []})
        return scored

    def _score(self, models, sample: dict, rows: list[int], targets: list[Tensor]) -> list[Tensor]:
        """Return, for each target, the sum of both models' log-probabilities of its tokens, (m,).

        Args:
            rows: for each target, the row of its sentence in the batch.
        """
        target = data_utils.collate_tokens(targets, self.pad)
        forward = self._teacher_force(models, sample, rows, target)
        backward = self._teacher_force(self.reverse_models, sample, rows, reverse_targets(target, self.pad))
        return [
            of_forward + of_backward[reversed_order(tokens, self.eos)]
            for tokens, of_forward, of_backward in zip(targets, forward, backward, strict=True)
        ]

    def _teacher_force(self, models, sample: dict, rows: list[int], target: Tensor) -> list[Tensor]:
        """Return, for each target (B, m), the models' log-probabilities of its tokens."""
        index = torch.tensor(rows, device=target.device)
        start = target.new_full((len(target), 1), self.eos)
        words = target[:, :-1]
        net_input = {name: sample["net_input"][name].index_select(0, index) for name in ("src_tokens", "src_lengths")}
        net_input["prev_output_tokens"] = torch.cat([start, words.masked_fill(words.eq(self.eos), self.pad)], dim=1)
        scored = self.scorer.generate(models, {"net_input": net_input, "target": target})
        return [hypotheses[0]["positional_scores"] for hypotheses in scored]
