"""The decoder cache of the layer-wise coordinated Transformer for the target.

Letters: S sentences, R = S · beam hypotheses, t cached tokens, m new tokens, H heads, d width of the model.
"""

import torch
from torch import Tensor

from .row_groups import kept_sentences
from .source_cache import SourceCache

FIRST_TOKENS = 32
"""Number of target tokens for which a cache initially allocates memory."""


class TargetCache:
    """Each layer's keys and values of the target tokens decoded so far.

    Reordering hypotheses does not move keys and values. Each sentence has `beam` slots for every token. A hypothesis
    writes each new token into its own slot, and the table `slots` stores which slots hold the tokens of each
    hypothesis. Attention computes scores for all slots of a sentence and hides those of other hypotheses. Its cost
    therefore grows with the square of the beam; up to a beam of about ten, this is cheaper than copying.

    The cache allocates memory in advance, and doubles it when it is full.

    Args:
        layers: number of layers.
        sentences: S.
        beam: consecutive rows that belong to one sentence.
        like: a tensor with the dtype and the device of the keys.
    """

    def __init__(self, layers: int, sentences: int, beam: int, heads: int, head_dim: int, like: Tensor):
        # (layer, keys or values, S, H, token, slot, d/H): for each head, the slots of all cached tokens are contiguous
        self.memory = like.new_empty(layers, 2, sentences, heads, 0, beam, head_dim)
        self.slots = torch.empty(sentences, beam, 0, dtype=torch.long, device=like.device)
        self.others = self._others(0)

    @classmethod
    def beside(cls, source: SourceCache, rows: int) -> "TargetCache":
        """Create an empty cache for R rows that attend to the sentences of `source`."""
        keys = source.keys[0]
        sentences, heads, _, head_dim = keys.shape
        return cls(len(source.keys), sentences, rows // sentences, heads, head_dim, like=keys)

    @property
    def length(self) -> int:
        """t, the number of cached tokens."""
        return self.slots.size(2)

    @property
    def beam(self) -> int:
        return self.slots.size(1)

    def reserve(self, new: int) -> None:
        """Allocate space for m new tokens, and set `others`, (S, beam, t + m, beam), which is True at the slots of
        other hypotheses."""
        needed, capacity = self.length + new, self.memory.size(4)
        if needed > capacity:
            shape = list(self.memory.shape)
            shape[4] = max(needed, 2 * capacity, FIRST_TOKENS)
            grown = self.memory.new_empty(shape)
            grown[:, :, :, :, : self.length] = self.memory[:, :, :, :, : self.length]
            self.memory = grown
        self.others = self._others(new)

    def _others(self, new: int) -> Tensor:
        return self._with_new(new)[..., None] != torch.arange(self.beam, device=self.slots.device)

    def extend(self, layer: int, new: Tensor) -> tuple[Tensor, Tensor]:
        """Write a layer's keys and values of the m new tokens, (R, m, 2, H, d/H). Gradients do not flow through the
        cache.

        Returns:
            Views of the layer's keys and values in all slots, (S, H, (t + m) · beam, d/H) each.
        """
        total = self.length + new.size(1)
        by_slot = new.detach().unflatten(0, (-1, self.beam)).permute(3, 0, 4, 2, 1, 5)  # (2, S, H, m, beam, d/H)
        self.memory[layer, :, :, :, self.length : total] = by_slot
        held = self.memory[layer, :, :, :, :total].flatten(3, 4)
        return held[0], held[1]

    def advance(self, new: int) -> None:
        """Count the m new tokens as cached, after every layer has written them."""
        self.slots = self._with_new(new)

    def _with_new(self, new: int) -> Tensor:
        """Return the table of slots with m more tokens, each in its hypothesis's own slot, (S, beam, t + m)."""
        own = torch.arange(self.beam, device=self.slots.device)[:, None]
        return torch.cat([self.slots, own.expand(len(self.slots), -1, new)], dim=2)

    def reorder_hypotheses(self, order: Tensor) -> None:
        """Continue with the rows order[0], order[1], ..., where each row continues one of the same sentence."""
        self.slots = self.slots.flatten(0, 1).index_select(0, order).unflatten(0, (-1, self.beam))

    def reorder(self, order: Tensor) -> None:
        """Continue with the rows order[0], order[1], ...

        Keys and values are copied only if sentences are dropped or change places, or if the beam changes. Reading
        `order` synchronizes with the device once.
        """
        kept, beam = kept_sentences(order, self.memory.size(2), self.beam)
        if beam != self.beam:
            self._regroup(order, beam)
            return
        self.reorder_hypotheses(order)
        if kept is not None:
            shape = list(self.memory.shape)
            shape[2] = len(kept)
            fewer = self.memory.new_empty(shape)
            fewer[:, :, :, :, : self.length] = self.memory[:, :, :, :, : self.length].index_select(2, kept)
            self.memory = fewer

    def _regroup(self, order: Tensor, beam: int) -> None:
        """Copy the tokens of each row into its own slots, for a new beam."""
        held = self.memory[:, :, :, :, : self.length]
        index = self.slots.transpose(1, 2)[None, None, :, None, :, :, None]  # (1, 1, S, 1, t, beam, 1)
        own = held.take_along_dim(index, dim=5).movedim(5, 3).flatten(2, 3)  # (layer, 2, R, H, t, d/H)
        self.memory = own.index_select(2, order).unflatten(2, (-1, beam)).movedim(3, 5)
        slots = torch.arange(beam, device=order.device)[:, None]
        self.slots = slots.expand(self.memory.size(2), beam, self.length)
