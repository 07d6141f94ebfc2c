"""What decoding remembers: of the source, once a sentence, and of the target, once a hypothesis."""

from dataclasses import dataclass

import torch
from torch import Tensor

from .attention_memory import ProjectedMemory


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


@dataclass(frozen=True)
class SourceMemory:
    """What a recurrent decoder starts from: the encoder's output, held per sentence as in `SourceCache`."""

    first_state: Tensor  # (S, width), the decoder's state before the first word
    memories: tuple[ProjectedMemory, ...]  # one for each attention, of (S, n, D)
    beam: int = 1  # consecutive rows that share a sentence

    def first_states(self, rows: int) -> Tensor:
        """`first_state` for every one of R hypotheses, (R, width)."""
        return self.first_state.repeat_interleave(rows // len(self.first_state), dim=0)

    def reorder(self, order: Tensor) -> "SourceMemory":
        """As :meth:`SourceCache.reorder`."""
        kept, beam = kept_sentences(order, len(self.first_state), self.beam)
        if kept is None:
            return SourceMemory(self.first_state, self.memories, beam)
        return SourceMemory(
            self.first_state.index_select(0, kept),
            tuple(memory.select(kept) for memory in self.memories),
            beam,
        )


def kept_sentences(order: Tensor, sentences: int, beam: int) -> tuple[Tensor | None, int]:
    """What a reordering of rows means for what is held per sentence.

    Args:
        order: for each new row the old row it continues, of sentences · beam.

    Returns:
        The sentences to keep, by index, or None if they stay as they are; and the new beam.
    """
    kept, beam = group_rows(order.tolist(), beam)
    if kept == list(range(sentences)):
        return None, beam
    return torch.tensor(kept, dtype=torch.long, device=order.device), beam


def group_rows(order: list[int], beam: int) -> tuple[list[int], int]:
    """Group reordered rows by sentence.

    Args:
        order: for each new row the old row it continues; old row r belongs to sentence r // beam.

    Returns:
        The sentence of each group, and how many consecutive new rows make a group: as many as there are in the
        first run of one sentence or as many as before, if all groups can be that large; 1 in an irregular order.
    """
    sentences = [row // beam for row in order]
    run = next((i for i, sentence in enumerate(sentences) if sentence != sentences[0]), len(sentences))
    for size in filter(None, (run, beam)):
        groups = [sentences[i : i + size] for i in range(0, len(sentences), size)]
        if all(group == [group[0]] * size for group in groups):
            return [group[0] for group in groups], size
    return sentences, 1


class TargetCache:
    """Keys and values of every layer for the target tokens decoded so far, in memory set aside ahead of need.

    Args:
        layers: number of layers.
        rows: R, hypotheses.
        like: a tensor with the device and dtype of the keys.
    """

    def __init__(self, layers: int, rows: int, heads: int, head_dim: int, like: Tensor):
        self.length = 0  # t, tokens held
        # time comes first, so that the tokens held are one block of memory
        self.memory = like.new_empty(32, layers, 2, rows, heads, head_dim)

    def reserve(self, tokens: int) -> None:
        """Make room for that many more tokens."""
        needed, capacity = self.length + tokens, self.memory.size(0)
        if needed > capacity:
            grown = self.memory.new_empty(max(needed, 2 * capacity), *self.memory.shape[1:])
            grown[: self.length] = self.memory[: self.length]
            self.memory = grown

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write the m new keys and values (R, m, H, d/H) of a layer; returns its (t + m, R, H, d/H) of each."""
        total = self.length + keys.size(1)
        held = self.memory[:total, layer]
        held[self.length :, 0] = keys.transpose(0, 1)
        held[self.length :, 1] = values.transpose(0, 1)
        return held[:, 0], held[:, 1]

    def advance(self, tokens: int) -> None:
        """Count the tokens that every layer has written."""
        self.length += tokens

    def reorder(self, order: Tensor) -> None:
        """Keep the rows order[0], order[1], ..."""
        held = self.memory[: self.length].index_select(3, order)
        if order.numel() != self.memory.size(3):
            self.memory = self.memory.new_empty(*self.memory.shape[:3], order.numel(), *self.memory.shape[4:])
        self.memory[: self.length] = held
