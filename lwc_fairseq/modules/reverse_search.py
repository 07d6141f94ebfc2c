"""Search for the reverse translation that another decoder attends to: greedy, or with a beam.

Letters: S sentences, T steps, d width of states.
"""

from typing import NamedTuple

import torch
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .recurrent_decoder import RecurrentDecoder
from .source_memory import SourceMemory


class ReverseTranslation(NamedTuple):
    """What was found: one entry a step, of which the last emits the end (or is the last allowed)."""

    inputs: Tensor  # (S, T) the token that goes into each step: the end symbol first, which starts a sentence
    outputs: Tensor  # (S, T) the token that comes out of it
    states: Tensor  # (S, T, d)
    padding_mask: Tensor  # (S, T), True at steps after the end


@torch.no_grad()
def search_greedily(decoder: RecurrentDecoder, source: SourceMemory, limits: Tensor) -> ReverseTranslation:
    """The likeliest next token again and again, without dropout and without gradients.

    Args:
        source: what `decoder` starts from.
        limits: (S,) the largest number of steps of each sentence, at least 1, so that a sentence does not depend on
            its neighbours.

    Returns:
        T is the number of steps of the longest search. Tokens after a sentence's end are `pad`.
    """
    eos, pad = decoder.dictionary.eos(), decoder.dictionary.pad()
    incremental_state: dict = {}
    tokens = limits.new_full((len(limits), 1), eos)
    ended = torch.zeros_like(limits, dtype=torch.bool)
    states, masks = [], []
    for step in range(1, int(limits.max()) + 1):
        known = decoder.run(tokens, source, incremental_state)
        logits = decoder.output(decoder.read_out(known))[:, -1]
        logits[:, pad] = -torch.inf
        chosen = logits.argmax(-1).masked_fill(ended, pad)
        states.append(known.states)
        masks.append(ended)
        tokens = torch.cat([tokens, chosen[:, None]], dim=1)
        ended = ended | chosen.eq(eos) | limits.le(step)
        if bool(ended.all()):
            break
    torch.clear_autocast_cache()  # older PyTorch would go on with weights that it has cast here, without a graph
    padding_mask = torch.stack(masks, dim=1)
    return ReverseTranslation(
        tokens[:, :-1].masked_fill(padding_mask, pad), tokens[:, 1:], torch.cat(states, dim=1), padding_mask
    )


@torch.no_grad()
def search_with_beam(
    model: FairseqEncoderDecoderModel, src_tokens: Tensor, limits: Tensor, beam: int
) -> ReverseTranslation:
    """The translation of the highest log-probability that fairseq's beam search finds, without dropout.

    Sentences of one limit are searched together, so that a sentence does not depend on its neighbours. The last token
    that a limit allows is the end.

    Args:
        model: a recurrent model, in evaluation mode.
        src_tokens: (S, n), padding on either side.
        limits: (S,) the largest number of tokens of each translation, at least 1.
    """
    dictionary = model.decoder.dictionary
    eos, pad = dictionary.eos(), dictionary.pad()
    best: dict[int, Tensor] = {}
    for limit in limits.unique().tolist():
        rows = limits.eq(limit).nonzero().squeeze(1)
        lengths = {"min_len": min(1, limit - 1), "max_len_a": 0, "max_len_b": limit - 1}  # the end is not counted
        generator = SequenceGenerator([model], dictionary, beam_size=beam, normalize_scores=False, **lengths)
        source = {"src_tokens": src_tokens[rows], "src_lengths": None}
        hypotheses = generator.generate([model], {"net_input": source})
        best |= {row: beams[0]["tokens"] for row, beams in zip(rows.tolist(), hypotheses, strict=True)}
    outputs = pad_sequence([best[row] for row in range(len(src_tokens))], batch_first=True, padding_value=pad)
    padding_mask = outputs.eq(pad)
    inputs = outputs.roll(1, dims=1).masked_fill(padding_mask, pad)
    inputs[:, 0] = eos
    states = model.decoder.run(inputs, model.encoder(src_tokens)).states
    return ReverseTranslation(inputs, outputs, states, padding_mask)
