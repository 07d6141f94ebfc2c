"""A beam search with the same results as fairseq's, but less work in each step.

It finds the same hypotheses as `fairseq.sequence_generator`, with the same scores. (Among hypotheses with equal scores,
which occur in half precision, it may keep others.) In each step, fairseq computes all R × V log-probabilities, passes
over them several times (for NaN, masks, penalties and the addition of scores), and selects the best of beam · V. This
search selects the best few logits of each row, and computes the log-probabilities of only these. For that it needs only
the logarithm of the softmax's denominator, one number per row.

Letters: S sentences in the batch, R = S · beam rows, V types, K candidates per row, t target tokens decoded before.
"""

from typing import NamedTuple

import torch
from fairseq.search import BeamSearch
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.generation import NO_TRANSLATION, possible_min_len

GROUP = 64
"""Number of types in a group. The search for the largest logits first computes the maximum of each group."""

UNFINISHED_SHARE = 7 / 8
"""Finished sentences stay in the batch until at most this share of its sentences is unfinished, because shrinking the
batch copies the caches of the others."""

ROWS = 8
"""Number of rows of logits that fit into a processor's cache."""


class QuickSequenceGenerator(SequenceGenerator):
    """fairseq's generator with :class:`QuickSearch` as its plain beam search.

    The "score" of a hypothesis is log P. The hypotheses are not ranked (:mod:`.ranking` ranks them).

    fairseq's own loop handles everything else: sampling, diverse beams, constraints, prefixes, ensembles, language
    models, blocking of repeated n-grams, and attention. It also runs if `make_generation_fast_` has not turned off the
    model's attention output, and if the model computes its probabilities in another way than fairseq.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **{**kwargs, "normalize_scores": False})

    def _generate(self, sample, prefix_tokens=None, constraints=None, bos_token=None):
        if prefix_tokens is not None or constraints is not None or not self._is_plain():
            return super()._generate(sample, prefix_tokens, constraints, bos_token)
        return QuickSearch(self, sample["net_input"]).run(self.eos if bos_token is None else bos_token)

    def _is_plain(self) -> bool:
        model, decoder = self.model.single_model, self.model.single_model.decoder
        names = "get_normalized_probs", "get_normalized_probs_scriptable"
        softmax = [getattr(type(part), name) for part in (model, decoder) for name in names]
        return (
            type(self.search) is BeamSearch
            and self.model.models_size == 1
            and self.model.has_incremental
            and self.lm_model is None
            and self.repeat_ngram_blocker is None
            and self.token_indices_to_suppress is None
            and not self.match_source_len
            and not getattr(decoder, "need_attn", False)
            and decoder.adaptive_softmax is None
            and all(function.__module__.startswith("fairseq.") for function in softmax)
            and self.vocab_size > 2 * self.beam_size + 1  # fewer types may yield too few candidates
        )


class Beams(NamedTuple):
    """The unfinished hypotheses: R rows, of which `beam` consecutive ones (before the first step, one) belong to a
    sentence."""

    sentences: list[int]  # S indices of sentences in the original batch
    tokens: Tensor  # (R, t + 1), the start symbol first
    scores: Tensor  # (R, t), sums of log-probabilities up to each token


class QuickSearch:
    """The search for one batch.

    Args:
        generator: the generator, which holds the options and the model.
        net_input: "src_tokens" (S, n) and the other arguments of the encoder.
    """

    def __init__(self, generator: SequenceGenerator, net_input: dict):
        self.options, self.model = generator, generator.model
        self.decoder, self.beam = generator.model.single_model.decoder, generator.beam_size
        sentences, width = net_input["src_tokens"].shape
        self.device = net_input["src_tokens"].device
        self.max_len = min(int(generator.max_len_a * width + generator.max_len_b), generator.max_len - 1)
        self.min_len = possible_min_len(generator, net_input)
        self.encoder_outs = self.model.forward_encoder(net_input)
        self.states: list[dict] = [{}]
        self.finished: list[list[dict]] = [[] for _ in range(sentences)]

    def run(self, start: int) -> list[list[dict[str, Tensor]]]:
        """Return the `beam` best hypotheses of each sentence in fairseq's format, not ranked.

        Args:
            start: the first input token of every target.

        Raises:
            UserError: a sentence has no hypothesis, because the model's scores are NaN.
        """
        sentences = list(range(len(self.finished)))
        tokens = torch.full((len(sentences), 1), start, dtype=torch.long, device=self.device)
        beams = Beams(sentences, tokens, tokens.new_zeros((len(sentences), 0), dtype=torch.float))
        for step in range(self.max_len + 1):
            scores, types, parents = self._candidates(step, beams)
            is_end = types.eq(self.options.eos) & scores.ne(-torch.inf)
            self._finish(beams, is_end, scores, parents)
            rest = [i for i, sentence in enumerate(beams.sentences) if len(self.finished[sentence]) < self.beam]
            if step == self.max_len or not rest:
                break
            if len(rest) > UNFINISHED_SHARE * len(beams.sentences):
                rest = list(range(len(beams.sentences)))
            beams = self._continue(beams, rest, is_end, scores, types, parents)
        if not all(self.finished):
            raise UserError(NO_TRANSLATION)
        return self.finished

    def _candidates(self, step: int, beams: Beams) -> tuple[Tensor, Tensor, Tensor]:
        """Return the 2 · beam best continuations of each sentence, best first. In the last step, all are end symbols.

        Returns:
            Their scores, their types, and the rows that they continue, (S, candidates) each.
        """
        options = self.options
        logits, *_ = self.decoder.forward(
            beams.tokens, encoder_out=self.encoder_outs[0], incremental_state=self.states[0]
        )
        logits = logits[:, -1].float()
        if options.temperature != 1.0:
            logits = logits / options.temperature
        normalizer = log_sum_exp(logits)
        if step == self.max_len:
            best, types = logits[:, options.eos, None], torch.full_like(beams.tokens[:, :1], options.eos)
        else:
            logits[:, options.pad] = -torch.inf
            if options.unk_penalty:
                logits[:, options.unk] -= options.unk_penalty
            if step < self.min_len:
                logits[:, options.eos] = -torch.inf
            best, types = largest(logits, 2 * self.beam)  # (R, K)
        scores = best - normalizer
        if step:
            scores += beams.scores[:, -1:]
        rows, sentences = len(scores), len(beams.sentences)
        scores = scores.nan_to_num_(-torch.inf, torch.inf, -torch.inf).view(sentences, -1)
        scores, index = scores.topk(min(2 * self.beam, scores.size(1)))
        first_rows = torch.arange(0, rows, rows // sentences, device=self.device)
        parents = first_rows[:, None] + index // best.size(1)
        return scores, types.view(sentences, -1).gather(1, index), parents

    def _finish(self, beams: Beams, is_end: Tensor, scores: Tensor, parents: Tensor) -> None:
        """Store the hypotheses whose end symbol is among the `beam` best candidates of their sentence.

        A sentence keeps at most `beam` hypotheses, so finished sentences that are still in the batch get no more.
        """
        best = is_end[:, : self.beam]
        ends = [i for i, row in enumerate(best.tolist()) for end in row if end]  # waits for the device, once a step
        if not ends:
            return
        i, j = best.nonzero().unbind(1)
        rows, totals = parents[i, j], scores[i, j]
        tokens = torch.cat([beams.tokens[rows, 1:], torch.full_like(rows[:, None], self.options.eos)], dim=1)
        sums = torch.cat([beams.scores[rows], totals[:, None]], dim=1)
        positional = torch.cat([sums[:, :1], sums.diff(dim=1)], dim=1)
        for n, end in enumerate(ends):
            hypotheses = self.finished[beams.sentences[end]]
            if len(hypotheses) < self.beam:
                hypothesis = {"tokens": tokens[n], "score": totals[n], "positional_scores": positional[n]}
                hypotheses.append({**hypothesis, "attention": torch.empty(0), "alignment": torch.empty(0)})

    def _continue(
        self, beams: Beams, rest: list[int], is_end: Tensor, scores: Tensor, types: Tensor, parents: Tensor
    ) -> Beams:
        """Continue the sentences `rest` of the batch with their `beam` best candidates that are not end symbols."""
        are_all = len(rest) == len(beams.sentences)
        if not are_all:
            index = torch.tensor(rest, device=self.device)
            is_end, scores, types, parents = (x[index] for x in (is_end, scores, types, parents))
        places = torch.arange(is_end.size(1), device=self.device)
        order = torch.add(places, is_end, alpha=len(places))  # end symbols come last
        chosen = order.topk(self.beam, largest=False).indices
        scores, types, parents = (x.gather(1, chosen).flatten() for x in (scores, types, parents))
        within_sentences = are_all and len(parents) == len(beams.tokens)  # so each row keeps its encoder output
        if within_sentences and hasattr(self.decoder, "reorder_hypotheses"):
            self.decoder.reorder_hypotheses(self.states[0], parents)  # need not wait for the device
        else:
            self.model.reorder_incremental_state(self.states, parents)
        if not within_sentences:
            self.encoder_outs = self.model.reorder_encoder_out(self.encoder_outs, parents)
        return Beams(
            [beams.sentences[i] for i in rest],
            torch.cat([beams.tokens[parents], types[:, None]], dim=1),
            torch.cat([beams.scores[parents], scores[:, None]], dim=1),
        )


def log_sum_exp(x: Tensor) -> Tensor:
    """Compute log Σ_v exp x_iv, (R, 1), for each row of x (R, V)."""
    if x.is_cuda:
        return x.logsumexp(-1, keepdim=True)
    return torch.cat([rows.logsumexp(-1, keepdim=True) for rows in x.split(ROWS)])


def largest(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest entries of each row of x (R, V), and their columns, as torch.topk does.

    These entries lie in the k groups with the largest maxima. On a CPU, computing these maxima is fast, and leaves few
    entries to sort.
    """
    groups = x.size(1) // GROUP
    if x.is_cuda or groups < 4 * k:
        return x.topk(k)
    columns = columns_of_best_groups(x[:, : groups * GROUP], k)
    rest = torch.arange(groups * GROUP, x.size(1), device=x.device).expand(len(x), -1)
    columns = torch.cat([columns, rest], dim=1)
    return largest_in_columns(x, columns, k)


def columns_of_best_groups(x: Tensor, k: int) -> Tensor:
    """Return the columns, (R, k · GROUP), of the k groups with the largest maxima in each row of x, which has whole
    groups alone."""
    best = x.unflatten(1, (-1, GROUP)).amax(2).topk(k).indices  # (R, k)
    return (best[:, :, None] * GROUP + torch.arange(GROUP, device=x.device)).flatten(1)


def largest_in_columns(x: Tensor, columns: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest entries of each row of x (R, V) among the given columns, and their columns."""
    values, index = x.gather(1, columns).topk(k)
    return values, columns.gather(1, index)
