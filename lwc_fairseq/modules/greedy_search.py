"""Greedy search with a recurrent decoder, for the reverse translation that another decoder attends to.

Letters: S sentences, T steps, d width of states.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from .decoding_cache import SourceMemory
from .recurrent_decoder import RecurrentDecoder


class GreedySearch(NamedTuple):
    """What was found: one entry a step, of which the last emits the end (or is the last allowed)."""

    inputs: Tensor  # (S, T) the token that goes into each step: the end symbol first, which starts a sentence
    outputs: Tensor  # (S, T) the token that comes out of it
    states: Tensor  # (S, T, d)
    padding_mask: Tensor  # (S, T), True at steps after the end


@torch.no_grad()
def search_greedily(decoder: RecurrentDecoder, source: SourceMemory, limits: Tensor) -> GreedySearch:
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
    return GreedySearch(
        tokens[:, :-1].masked_fill(padding_mask, pad), tokens[:, 1:], torch.cat(states, dim=1), padding_mask
    )
