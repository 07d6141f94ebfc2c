"""What decoding remembers: of the source, once a sentence, and of the target, once a hypothesis."""

from dataclasses import dataclass

import torch
from torch import Tensor

from .row_groups import group_rows, kept_sentences


@dataclass(frozen=True)
class SourceCache:
    """Keys and values of every layer for the source tokens: the encoder's output.

    They are held per sentence. A generator that wants them per hypothesis gets the same tensors and a larger `beam`.
    """

    keys: tuple[Tensor, ...]  # a layer each, (S, H, N, d/H)
    values: tuple[Tensor, ...]  # the same
    padding_mask: Tensor  # (S, N), True at padding
    beam: int = 1  # consecutive rows that share a sentence

    def reorder(self, order: Tensor) -> "SourceCache":
        """The cache for the rows order[0], order[1], ... of this one, of which there are S · beam.

        Reordering hypotheses within their sentences, or repeating sentences for a beam, copies nothing; leaving out
        sentences that are finished copies what remains. Waits for the device once, to read `order`.
        """
        kept, beam = kept_sentences(order, len(self.padding_mask), self.beam)
        if kept is None:
            return SourceCache(self.keys, self.values, self.padding_mask, beam)
        return SourceCache(
            tuple(keys.index_select(0, kept) for keys in self.keys),
            tuple(values.index_select(0, kept) for values in self.values),
            self.padding_mask.index_select(0, kept),
            beam,
        )


FIRST_TOKENS = 32
"""For which a target cache first sets memory aside."""


class TargetCache:
    """Keys and values of every layer for the target tokens decoded so far, in memory set aside ahead of need.

    What a hypothesis has read stays where it was written when hypotheses are reordered: each sentence has `beam` slots
    for every token, and a table says in which of them a hypothesis finds it. Attention reads all slots of a sentence,
    which its hypotheses share, and hides those of other hypotheses. (So its work and its scores grow with the square of
    the beam; with the beams of translation, up to ten or so, that costs less than copying.)

    Args:
        layers: number of layers.
        sentences: S.
        beam: consecutive rows that belong to one sentence.
        like: a tensor with the device and dtype of the keys.
    """

    def __init__(self, layers: int, sentences: int, beam: int, heads: int, head_dim: int, like: Tensor):
        # (layer, keys or values, S, H, token, slot, d/H): the slots of all tokens held are one block of memory
        self.memory = like.new_empty(layers, 2, sentences, heads, 0, beam, head_dim)
        self.slots = torch.empty(sentences, beam, 0, dtype=torch.long, device=like.device)
        self.hidden = self._hidden(0)

    @property
    def length(self) -> int:
        """t, tokens held."""
        return self.slots.size(2)

    @property
    def beam(self) -> int:
        return self.slots.size(1)

    def reserve(self, new: int) -> None:
        """Make room for m more tokens, and find out which slots they may not see."""
        needed, capacity = self.length + new, self.memory.size(4)
        if needed > capacity:
            shape = list(self.memory.shape)
            shape[4] = max(needed, 2 * capacity, FIRST_TOKENS)
            grown = self.memory.new_empty(shape)
            grown[:, :, :, :, : self.length] = self.memory[:, :, :, :, : self.length]
            self.memory = grown
        self.hidden = self._hidden(new)

    def _hidden(self, new: int) -> Tensor:
        """(S, beam · m, (t + m) · beam), True where a new token may not see a slot."""
        device = self.slots.device
        index = torch.arange(self.beam, device=device)
        slots = self._with_new(new)
        others = slots[..., None] != index  # (S, beam, t + m, slot)
        token = torch.arange(slots.size(2), device=device)
        future = token > token[self.length :, None]  # (m, t + m)
        return (others[:, :, None] | future[:, :, None]).flatten(3).flatten(1, 2)

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write the m new keys and values (R, m, H, d/H) of a layer, without their graph.

        Returns:
            Those of all slots, (S, H, (t + m) · beam, d/H) each.
        """
        total = self.length + keys.size(1)
        for kind, new in enumerate((keys, values)):
            by_slot = new.detach().unflatten(0, (-1, self.beam)).permute(0, 3, 2, 1, 4)  # (S, H, m, beam, d/H)
            self.memory[layer, kind, :, :, self.length : total] = by_slot
        held = self.memory[layer, :, :, :, :total].flatten(3, 4)
        return held[0], held[1]

    def advance(self, new: int) -> None:
        """Count the m tokens that every layer has written, each hypothesis into its own slot."""
        self.slots = self._with_new(new)

    def _with_new(self, new: int) -> Tensor:
        """The table with m more tokens, (S, beam, t + m)."""
        own = torch.arange(self.beam, device=self.slots.device)[:, None]
        return torch.cat([self.slots, own.expand(len(self.slots), -1, new)], dim=2)

    def reorder(self, order: Tensor) -> None:
        """Keep the rows order[0], order[1], ...

        As :meth:`SourceCache.reorder`, it copies only where sentences are left out, or in an order that no beam search
        makes. Waits for the device once, to read `order`.
        """
        kept, beam = group_rows(order.tolist(), self.beam)
        if beam != self.beam:
            self._regroup(order, beam)
            return
        self.slots = self.slots.flatten(0, 1)[order].unflatten(0, (-1, beam))
        if kept != list(range(self.memory.size(2))):
            index = torch.tensor(kept, dtype=torch.long, device=order.device)
            shape = list(self.memory.shape)
            shape[2] = len(kept)
            fewer = self.memory.new_empty(shape)
            fewer[:, :, :, :, : self.length] = self.memory[:, :, :, :, : self.length].index_select(2, index)
            self.memory = fewer

    def _regroup(self, order: Tensor, beam: int) -> None:
        """Copy what each of the rows has read into slots of its own, `beam` rows a sentence."""
        held = self.memory[:, :, :, :, : self.length]
        index = self.slots.transpose(1, 2)[None, None, :, None, :, :, None]  # (1, 1, S, 1, t, beam, 1)
        own = held.take_along_dim(index, dim=5).movedim(5, 3).flatten(2, 3)  # (layer, 2, R, H, t, d/H)
        self.memory = own.index_select(2, order).unflatten(2, (-1, beam)).movedim(3, 5)
        slots = torch.arange(beam, device=order.device)[:, None]
        self.slots = slots.expand(self.memory.size(2), beam, self.length)


class TargetLayer:
    """One layer of a :class:`TargetCache`, for one step."""

    def __init__(self, cache: TargetCache, index: int):
        self.cache, self.index = cache, index

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """:meth:`TargetCache.extend`, and which slots each new token may not see, (S, beam · m, (t + m) · beam)."""
        return *self.cache.extend(self.index, keys, values), self.cache.hidden
