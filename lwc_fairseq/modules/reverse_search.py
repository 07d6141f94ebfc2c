"""The search for the reverse translation that another decoder attends to: greedy search or beam search.

Letters: S sentences, T steps, d width of states.
"""

from itertools import count
from typing import NamedTuple

import torch
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .recurrent_decoder import RecurrentDecoder
from .source_memory import DecodingState

STEPS_BETWEEN_CHECKS = 8
"""On a GPU, the greedy search checks only after this many steps whether all sentences have ended, because each check
waits for the GPU."""


class ReverseTranslation(NamedTuple):
    """The result of a search, with one entry per step. The last step emits the end symbol or is the last step within
    the limit.

    Tokens after a sentence's end are padding.
    """

    inputs: Tensor  # (S, T), input token of each step; the first is the end symbol, as in fairseq
    outputs: Tensor  # (S, T), output token of each step
    states: Tensor  # (S, T, d)
    padding_mask: Tensor  # (S, T), True at steps after the end


@torch.no_grad()
def search_greedily(decoder: RecurrentDecoder, state: DecodingState, limits: Tensor) -> ReverseTranslation:
    """Choose the most probable next token in every step, without dropout in `decoder` and without gradients.

    Args:
        state: the state of `decoder` before its first step. Its memories are read as they are, so in training after the
            dropout of the encoder's states.
        limits: (S,), the maximum number of steps of each sentence, at least 1. Each sentence has its own limit, so that
            a translation does not depend on the other sentences of its batch.

    Returns:
        The translations; T is the number of steps of the longest one.
    """
    eos, pad = decoder.dictionary.eos(), decoder.dictionary.pad()
    token = limits.new_full((len(limits), 1), eos)
    ended = torch.zeros_like(limits, dtype=torch.bool)
    tokens, states, masks = [token], [], []
    between_checks = STEPS_BETWEEN_CHECKS if token.is_cuda else 1
    for step in count(1):
        known, state = decoder.run(token, state)
        logits = decoder.output(decoder.read_out(known))[:, -1]
        logits[:, pad] = -torch.inf
        token = logits.argmax(-1, keepdim=True).masked_fill(ended[:, None], pad)
        tokens.append(token)
        states.append(known.states)
        masks.append(ended)
        ended = ended | token[:, 0].eq(eos) | limits.le(step)
        if step % between_checks == 0 and bool(ended.all()):
            break
    torch.clear_autocast_cache()  # older PyTorch would reuse the weights cast here, which have no graph
    found, padding_mask, states = torch.cat(tokens, dim=1), torch.stack(masks, dim=1), torch.cat(states, dim=1)
    if between_checks > 1:  # leave out the steps after the end of the longest sentence
        steps = int((~padding_mask).sum(1).max())
        found, padding_mask, states = found[:, : steps + 1], padding_mask[:, :steps], states[:, :steps]
    inputs = found[:, :-1].masked_fill(padding_mask, pad)
    return ReverseTranslation(inputs, found[:, 1:], states, padding_mask)


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
        Tokens (S, T), with the end symbol last and padding on the right.
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
    found = [best[row] for row in range(len(src_tokens))]
    return pad_sequence(found, batch_first=True, padding_value=dictionary.pad())


def decoder_inputs(outputs: Tensor, eos: int, pad: int) -> Tensor:
    """Return the input tokens (S, T) of the steps whose output tokens are `outputs` (S, T)."""
    inputs = outputs.roll(1, dims=1).masked_fill(outputs.eq(pad), pad)
    inputs[:, 0] = eos
    return inputs
