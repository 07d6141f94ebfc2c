"""Attention of the ablation without mixed attention (Table 3 of He et al., NeurIPS 2018): a target token attends to the
target so far and to the source in turn, a source token to the source.

What a token may attend to is an object of this protocol, one for each layout: :class:`PackedSeparateAttention` for the
packed stream, :class:`StepSeparateAttention` for decoding step by step.
"""

from typing import Protocol

import torch
from torch import Tensor

from ..data.packing import Packing
from .mixed_attention import PaddedAttention, StepAttention


class SeparateAttend(Protocol):
    """Queries, keys and values are (..., 3, H, d/H), contexts (..., H, d/H)."""

    def to_own_side(self, qkv: Tensor) -> Tensor:
        """Contexts of source tokens over the source, and of target tokens over the target so far."""

    def to_source(self, qkv: Tensor, below: Tensor) -> Tensor:
        """Contexts of the queries of `qkv` over the source's keys and values of `below`."""

    def on_target(self, new: Tensor, old: Tensor) -> Tensor:
        """States (..., d): the new ones of target tokens and the old ones of source tokens."""


class PackedSeparateAttention:
    """The two attentions of the packed stream, each with its mask."""

    def __init__(self, packing: Packing, dropout: float):
        own, source = separate_attention_masks(packing.source_lengths, packing.length)
        self.to_own_side = PaddedAttention(packing, own, dropout)
        self._to_source = PaddedAttention(packing, source, dropout)
        self.is_target = packing.sides.bool()[:, None]

    def to_source(self, qkv: Tensor, below: Tensor) -> Tensor:
        return self._to_source(torch.stack([qkv[:, 0], below[:, 1], below[:, 2]], dim=1))

    def on_target(self, new: Tensor, old: Tensor) -> Tensor:
        return torch.where(self.is_target, new, old)


def separate_attention_masks(source_lengths: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Which tokens see which in self-attention and in source attention, for sentences padded on the right to `length`.

    Args:
        source_lengths: (B,) n of each sentence.

    Returns:
        Two tensors (B, length, length), True where token i (second axis) may attend to token j (third axis). Rows that
        are not used see something, so that no softmax is empty.
    """
    index = torch.arange(length, device=source_lengths.device)
    in_source = index < source_lengths[:, None]  # (B, length)
    own = torch.where(in_source[:, :, None], in_source[:, None], ~in_source[:, None] & (index <= index[:, None]))
    source = (in_source | (source_lengths == 0)[:, None])[:, None].expand_as(own)
    return own, source


class StepSeparateAttention:
    """The two attentions of m new target tokens in one layer; arguments are those of :class:`StepAttention`."""

    def __init__(self, source_keys: Tensor, source_values: Tensor, source_padding: Tensor, target):
        none = source_keys[:, :, :0]
        self.to_own_side = StepAttention(none, none, source_padding[:, :0], target)
        self._to_source = StepAttention(source_keys, source_values, source_padding, NoTarget(none))

    @property
    def weights(self) -> Tensor | None:
        """(R, m, H, N) of the last call, to the source."""
        return self._to_source.weights

    def to_source(self, qkv: Tensor, below: Tensor) -> Tensor:
        return self._to_source(qkv)

    def on_target(self, new: Tensor, old: Tensor) -> Tensor:
        return new


class NoTarget:
    """In place of a :class:`~.decoding_cache.TargetLayer`: nothing to attend to.

    Args:
        none: no keys, (S, H, 0, d/H).
    """

    def __init__(self, none: Tensor):
        self.none = none

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        sentences = len(self.none)
        rows = keys.size(0) * keys.size(1) // sentences
        return self.none, self.none, self.none.new_zeros(sentences, rows, 0, dtype=torch.bool)
