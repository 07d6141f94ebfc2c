"""The reverse translation that another decoder attends to: greedy search, beam search, and a memory of translations.

Letters: S sentences, n source tokens, T steps, d width of states. True in a padding mask means padding.
"""

import math
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from lwc_fairseq_compat import UserError

from .recurrent import DecodingState, Memory, SteppingDecoder

STEPS_BETWEEN_CHECKS = 8
"""On a GPU, the greedy search checks only after this many steps whether all sentences have ended, because each check
waits for the GPU."""


@dataclass
class ReverseLimits(FairseqDataclass):
    """The options that limit the length of reverse translations."""

    max_reverse_len_a: float = field(
        default=2.0,
        metadata={"help": "the reverse translation has at most a · n + b tokens for n source tokens; this is a"},
    )
    max_reverse_len_b: int = field(default=0, metadata={"help": "b of the same"})

    def check(self) -> None:
        """Raises UserError naming the invalid setting."""
        super().check()  # type: ignore[misc]  # the options of a model come after these
        if not (0 <= self.max_reverse_len_a < math.inf and self.max_reverse_len_b >= 0):
            raise UserError(
                f"--max-reverse-len-a {self.max_reverse_len_a} --max-reverse-len-b {self.max_reverse_len_b}: "
                "must be numbers from 0"
            )

    def reverse_limits(self, padding_mask: Tensor) -> Tensor:
        """Return the maximum number of tokens of each reverse translation, (S,), at least 1. The mask (S, n) is that of
        the sources."""
        lengths = (~padding_mask).sum(1)
        return (self.max_reverse_len_a * lengths + self.max_reverse_len_b).long().clamp(min=1)


@dataclass
class ReverseContextOption(ReverseLimits):
    """The options of a model that writes the reverse translation by itself."""

    reverse_context: ChoiceEnum(["greedy", "reference", "translations"]) = field(  # type: ignore[valid-type]
        default="greedy",
        metadata={
            "help": "the reverse translation that the forward decoder reads in training: that of a greedy search; with "
            "`reference`, the reversed reference (so we read RR in the paper); with `translations`, that which "
            "`lwc-fairseq reverse` has made, as in the authors' program in PyTorch. Generation searches greedily"
        },
    )


@torch.no_grad()
def choose_greedily(
    next_logits: Callable[[Tensor, Tensor], Tensor],
    keep: Callable[[Tensor], None],
    limits: Tensor,
    eos: int,
    pad: int,
) -> Tensor:
    """Choose the most probable next token in every step, without gradients.

    On a CPU, sentences that have ended leave the batch together, as soon as they are a quarter of it. On a GPU, this
    would cost more than it saves.

    Args:
        next_logits: maps the tokens (R, 1) of the sentences (R,) that are still in the batch to logits (R, V).
        keep: is called when sentences leave, with the indices of those rows of the R that stay.
        limits: (S,), the maximum number of steps of each sentence, at least 1. Each sentence has its own limit, so that
            a translation does not depend on the other sentences of its batch.

    Returns:
        Tokens (S, T). The last token of a sentence is the end symbol, or the last one within the limit; those after it
        are padding.
    """
    token = limits.new_full((len(limits), 1), eos)
    sentences, last_steps = torch.arange(len(limits), device=limits.device), limits[:, None]
    ended = torch.zeros_like(token, dtype=torch.bool)
    columns = []
    for step in range(1, int(limits.max()) + 1):
        logits = next_logits(token, sentences)
        logits[:, pad] = -torch.inf
        token = logits.argmax(-1, keepdim=True).masked_fill(ended, pad)
        columns.append(spread(token, sentences, len(limits), pad))
        ended = ended | token.eq(eos) | last_steps.le(step)
        if token.is_cuda and step % STEPS_BETWEEN_CHECKS:
            continue
        going = (~ended).squeeze(1).nonzero().squeeze(1)
        if not len(going):
            break
        if not token.is_cuda and len(going) <= 0.75 * len(sentences):
            keep(going)
            token, sentences, last_steps, ended = (x[going] for x in (token, sentences, last_steps, ended))
    torch.clear_autocast_cache()  # older PyTorch would reuse the weights cast here, which have no graph
    tokens = torch.cat(columns, dim=1)
    return tokens[:, : int(tokens.ne(pad).sum(1).max())]  # the search may go on after the end of the longest sentence


def spread(values: Tensor, sentences: Tensor, total: int, missing: float = 0) -> Tensor:
    """Return a tensor (S, ...) with the values (R, ...) of some sentences (R,), and `missing` for the others."""
    if len(values) == total:
        return values
    return values.new_full((total, *values.shape[1:]), missing).index_copy(0, sentences, values)


@torch.no_grad()
def search_greedily(decoder: SteppingDecoder, state: DecodingState, limits: Tensor) -> tuple[Tensor, Memory]:
    """Run :func:`choose_greedily` on a recurrent decoder, without its dropout.

    Args:
        state: the state of `decoder` before its first step. Its memories are read as they are: in training, the encoder
            has applied dropout to them.
        limits: (S,), the maximum number of steps of each sentence, at least 1.

    Returns:
        Tokens (S, T), as :func:`choose_greedily` returns them, and the memory of the states in which they were chosen.
    """
    eos, pad = decoder.dictionary.eos(), decoder.dictionary.pad()
    states: list[Tensor] = []

    def next_logits(token: Tensor, sentences: Tensor) -> Tensor:
        nonlocal state
        hidden, state = decoder.run(token, state)
        states.append(spread(hidden.states, sentences, len(limits)))
        return decoder.output_layer(decoder.read_out(hidden))[:, -1]

    def keep(rows: Tensor) -> None:
        nonlocal state
        state = state.reorder(rows)

    training = decoder.training
    decoder.eval()
    try:
        tokens = choose_greedily(next_logits, keep, limits, eos, pad)
    finally:  # training goes on if the memory does not suffice for a batch
        decoder.train(training)
    return tokens, reverse_memory(torch.cat(states[: tokens.size(1)], dim=1), tokens.eq(pad))


def reverse_memory(states: Tensor, padding_mask: Tensor) -> Memory:
    """Wrap the states (S, T, d) of a reverse translation as a memory. Its padding (S, T) is on the right."""
    steps = torch.arange(padding_mask.size(1), device=padding_mask.device)
    return Memory(states, padding_mask, steps.expand_as(padding_mask))


@torch.no_grad()
def search_with_beam(model: FairseqEncoderDecoderModel, src_tokens: Tensor, limits: Tensor, beam: int) -> Tensor:
    """Return the translations with the highest log-probability that fairseq's beam search finds, without dropout.

    Sentences with equal limits are searched together, so that a translation does not depend on the other sentences of
    its batch. The end symbol counts toward the limit.

    Args:
        model: in evaluation mode.
        src_tokens: (S, n), padding on either side.
        limits: (S,), the maximum number of tokens of each translation, at least 1.

    Returns:
        Tokens (S, T), with padding on the right.
    """
    dictionary = model.decoder.dictionary
    best: dict[int, Tensor] = {}
    for limit in limits.unique().tolist():
        rows = limits.eq(limit).nonzero().squeeze(1)
        lengths = {"min_len": min(1, limit - 1), "max_len_a": 0, "max_len_b": limit - 1}  # the end is not counted
        generator = SequenceGenerator([model], dictionary, beam_size=beam, normalize_scores=False, **lengths)
        generator.vocab_size = model.decoder.output.out_features  # fairseq-generate adds words to the dictionary
        source = {"src_tokens": src_tokens[rows], "src_lengths": None}
        hypotheses = generator.generate([model], {"net_input": source})
        best |= {row: beams[0]["tokens"] for row, beams in zip(rows.tolist(), hypotheses, strict=True)}
    translations = [best[row] for row in range(len(src_tokens))]
    return pad_sequence(translations, batch_first=True, padding_value=dictionary.pad())


class KnownTranslations:
    """The translations that a frozen model has made, by their source.

    The model translates a source in the same way in every epoch, so each process of a training searches for its
    translation once. A source of 25 tokens and a translation of 25 tokens together take about 400 bytes of the host's
    memory.
    """

    def __init__(self, source_pad: int, target_pad: int):
        self.source_pad, self.target_pad = source_pad, target_pad
        self.by_source: dict[bytes, array] = {}

    def look_up(self, src_tokens: Tensor, search: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the translations (S, T) of sources (S, n), with padding on the right.

        `search` gets the indices of the rows whose source is unknown, if there are any. It returns their translations,
        with padding on the right.
        """
        sources = [row.tobytes() for row in without_padding(src_tokens, self.source_pad)]
        unknown = [i for i, source in enumerate(sources) if source not in self.by_source]
        if unknown:
            translations = search(torch.tensor(unknown, device=src_tokens.device))
            for i, translation in zip(unknown, without_padding(translations, self.target_pad), strict=True):
                self.by_source[sources[i]] = translation
        rows = [torch.tensor(self.by_source[source]) for source in sources]
        return pad_sequence(rows, batch_first=True, padding_value=self.target_pad).to(src_tokens)


def without_padding(tokens: Tensor, pad: int) -> list[array]:
    """Return the tokens of each row (S, n) that are not padding, as 32-bit integers."""
    return [array("i", (token for token in row if token != pad)) for row in tokens.tolist()]
