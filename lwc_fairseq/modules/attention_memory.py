"""What recurrent decoders attend to: memories, projected once a sentence and shared by the hypotheses of its beam.

Letters: S sentences, R = S · beam rows that read, T steps, n tokens of the memory, D its width, d width of the state,
H heads. True in a padding mask means padding.
"""

from dataclasses import dataclass, fields
from typing import NamedTuple

from torch import Tensor


class Memory(NamedTuple):
    """States that can be attended to."""

    states: Tensor  # (S, n, D)
    padding_mask: Tensor  # (S, n)
    columns: Tensor  # (S, n): for each column of the tokens, the position of its state

    def select(self, sentences: Tensor) -> "Memory":
        """The memory of some of the sentences, by index."""
        return Memory(*(tensor.index_select(0, sentences) for tensor in self))


@dataclass(frozen=True)
class ProjectedMemory:
    """A memory with what one attention computes of it before the first step."""

    states: Tensor  # (S, n, D)
    padding_mask: Tensor  # (S, n)
    columns: Tensor  # (S, n): for each column of the tokens, the position of its state
    keys: Tensor  # what queries are compared with: (S, n, d), or (S, H, n, d/H) with several heads
    values: Tensor  # what contexts are sums of: (S, n, D), or (S, H, n, d/H)
    gates: Tensor | None = None  # (S, n, 3d): what the values contribute to the gates of the GRU that reads; kernels

    def select(self, sentences: Tensor) -> "ProjectedMemory":
        """The memory of some of the sentences, by index."""
        tensors = (getattr(self, field.name) for field in fields(self))
        return ProjectedMemory(*(None if tensor is None else tensor.index_select(0, sentences) for tensor in tensors))

    def in_columns(self, weights: Tensor) -> Tensor:
        """Attention weights over the states (R, m, n) as weights over the columns of the tokens."""
        columns = self.columns.repeat_interleave(len(weights) // len(self.columns), dim=0)
        return weights.gather(2, columns[:, None].expand_as(weights))
