"""Memories: the states that recurrent decoders attend to. A memory is projected once per sentence, and all hypotheses
of the sentence share it.

Letters: S sentences, R = S · beam rows (one state per hypothesis), m target tokens, n memory positions, D memory width,
d state width, H heads. True in a padding mask means padding.
"""

from dataclasses import dataclass, fields
from typing import NamedTuple

from torch import Tensor


class Memory(NamedTuple):
    """The states of a memory, before projection."""

    states: Tensor  # (S, n, D)
    padding_mask: Tensor  # (S, n)
    columns: Tensor  # (S, n): for each column of the tokens, the position of its state

    def select(self, sentences: Tensor) -> "Memory":
        """The memory of some of the sentences, by index."""
        return Memory(*(tensor.index_select(0, sentences) for tensor in self))


@dataclass(frozen=True)
class ProjectedMemory:
    """A memory with the projections that one attention computes before the first step."""

    states: Tensor  # (S, n, D)
    padding_mask: Tensor  # (S, n)
    columns: Tensor  # (S, n): for each column of the tokens, the position of its state
    keys: Tensor  # (S, n, d), or (S, H, n, d/H) with several heads
    values: Tensor  # (S, n, D), or (S, H, n, d/H) with several heads
    gates: Tensor | None = None  # (S, n, 3d), for kernels: W h, the input product of the GRU that takes the context

    def select(self, sentences: Tensor) -> "ProjectedMemory":
        """The memory of some of the sentences, by index."""
        tensors = (getattr(self, field.name) for field in fields(self))
        return ProjectedMemory(*(None if tensor is None else tensor.index_select(0, sentences) for tensor in tensors))

    def in_columns(self, weights: Tensor) -> Tensor:
        """Convert attention weights over the states (R, m, n) to weights over the columns of the tokens."""
        columns = self.columns.repeat_interleave(len(weights) // len(self.columns), dim=0)
        return weights.gather(2, columns[:, None].expand_as(weights))
