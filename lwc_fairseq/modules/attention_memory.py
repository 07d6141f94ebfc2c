"""What recurrent decoders attend to: memories, projected once a sentence and shared by the hypotheses of its beam.

Letters: S sentences, R = S · beam rows that read, T steps, n tokens of the memory, D its width, d the width of the
state, H heads. True in a padding mask means padding.
"""

from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from torch import Tensor


class InputMap(NamedTuple):
    """What takes a context to the gates of a GRU: the part of its input weights that is for this context."""

    weight: Tensor  # (3d, D)
    bias: Tensor | None  # (3d); of several contexts, the first has it


class Memory(NamedTuple):
    """States that can be attended to."""

    states: Tensor  # (S, n, D)
    padding_mask: Tensor  # (S, n)
    columns: Tensor  # (S, n), where the states of each column of the tokens are


@dataclass(frozen=True)
class ProjectedMemory:
    """A memory, and what one attention computes of it before any step."""

    states: Tensor  # (S, n, D)
    padding_mask: Tensor  # (S, n)
    columns: Tensor  # (S, n), where the states of each column of the tokens are
    keys: Tensor  # what queries are compared with: (S, n, d), or (S, H, n, d/H) with several heads
    values: Tensor  # what is summed up within a step: (S, n, 3d) for a GRU's gates, or (S, H, n, d/H)

    def select(self, sentences: Tensor) -> "ProjectedMemory":
        """The same for some of the sentences, by index."""
        return ProjectedMemory(*(getattr(self, field.name).index_select(0, sentences) for field in fields(self)))

    def in_columns(self, weights: Tensor) -> Tensor:
        """Attention weights over the states (R, m, n) as weights over the columns of the tokens."""
        columns = self.columns.repeat_interleave(len(weights) // len(self.columns), dim=0)
        return weights.gather(2, columns[:, None].expand_as(weights))


def sum_up(weights: Tensor, memory: Tensor) -> Tensor:
    """Attention weights (T, S, beam, n) over a memory (S, n, D): the contexts of all steps, (R, T, D)."""
    steps, sentences, beam, tokens = weights.shape
    rows = weights.permute(1, 2, 0, 3).reshape(sentences, beam * steps, tokens)
    return torch.bmm(rows, memory).view(sentences * beam, steps, -1)
