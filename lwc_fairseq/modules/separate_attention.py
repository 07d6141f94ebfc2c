"""Separate self-attention and source attention instead of mixed attention, an ablation in Table 3 of He et al. (NeurIPS
2018).

A target token attends first to the target so far and then to the source, in two softmaxes. A source token attends to
the source. As in :mod:`~.mixed_attention`, there is one callable for each layout of the tokens:
:class:`PackedSeparateAttention` for the packed stream and :class:`StepSeparateAttention` for new target tokens in
decoding.

Letters: B sentences, T packed tokens, H heads, d width of the model. In decoding, S sentences, R = S · beam hypotheses,
m new tokens.
"""

from typing import Protocol

import torch
from torch import Tensor

from ..data.packing import Packing
from .mixed_attention import (
    PaddedAttention,
    StepAttention,
    add_scores_,
    mixed_attention_mask,
    padded_sides_and_positions,
    softmax,
)


class SeparateAttend(Protocol):
    """The two attentions. Queries, keys and values have shape (..., 3, H, d/H), and contexts (..., H, d/H)."""

    def __call__(self, qkv: Tensor) -> Tensor:
        """Compute the contexts of source tokens over the source, and of target tokens over the target so far."""

    def to_source(self, qkv: Tensor, below: Tensor) -> Tensor:
        """Compute the contexts of the queries in `qkv` over the source's keys and values in `below`."""

    def on_target(self, new: Tensor, old: Tensor) -> Tensor:
        """Return states (..., d): `new` for target tokens, `old` for source tokens."""


class PackedSeparateAttention:
    """The two attentions within the packed stream.

    Args:
        dropout: probability of dropping an attention weight.
        window: that of the layer, or None.
    """

    def __init__(self, packing: Packing, dropout: float, window: int | None = None):
        own_side, source = separate_attention_masks(packing.source_lengths, packing.length, window)
        self._to_own_side = PaddedAttention(packing, own_side, dropout)
        self._to_source = PaddedAttention(packing, source, dropout)
        self.is_target = packing.sides.bool()[:, None]

    def __call__(self, qkv: Tensor) -> Tensor:
        """Map queries, keys and values (T, 3, H, d/H) to contexts (T, H, d/H)."""
        return self._to_own_side(qkv)

    def to_source(self, qkv: Tensor, below: Tensor) -> Tensor:
        return self._to_source(torch.stack([qkv[:, 0], below[:, 1], below[:, 2]], dim=1))

    def on_target(self, new: Tensor, old: Tensor) -> Tensor:
        return torch.where(self.is_target, new, old)


def separate_attention_masks(source_lengths: Tensor, length: int, window: int | None) -> tuple[Tensor, Tensor]:
    """Return the masks of self-attention and of source attention, for sentences padded on the right to `length`.

    Args:
        source_lengths: (B,) n of each sentence.
        window: that of the layer, or None; it limits self-attention alone.

    Returns:
        Two tensors (B, length, length), True where token i (second axis) may attend to token j (third axis). Rows
        beyond a sentence's end are never used. They attend to some token, so that no softmax is empty.
    """
    sides, _ = padded_sides_and_positions(source_lengths, length)
    own = mixed_attention_mask(source_lengths, length, window) & (sides[:, :, None] == sides[:, None])
    in_source = sides == 0
    source = (in_source | (source_lengths == 0)[:, None])[:, None].expand_as(own)
    return own, source


class StepSeparateAttention(StepAttention):
    """The two attentions of m new target tokens in one layer. They use the same caches as mixed attention."""

    def __call__(self, qkv: Tensor) -> Tensor:
        """Map queries, keys and values (R, m, 3, H, d/H) to contexts (R, m, H, d/H) over the target so far."""
        mask = self.mask[..., self.source.padding_mask.size(1) :]
        keys, values = self.extended_target(qkv, mask.size(-1))
        scores = self.for_heads(mask)
        add_scores_(scores, self.group_by_sentence(qkv[:, :, 0]), keys.flatten(0, 1))
        self._target_weights = softmax(scores)
        return self.ungroup(self._target_weights @ values.flatten(0, 1))

    def to_source(self, qkv: Tensor, below: Tensor) -> Tensor:
        """Map queries in (R, m, 3, H, d/H) to contexts (R, m, H, d/H) over the cached source. `below` is unused."""
        keys, values = self.cached_source()
        scores = self.for_heads(self.mask[..., : keys.size(1)])
        add_scores_(scores, self.group_by_sentence(qkv[:, :, 0]), keys)
        self._source_weights = softmax(scores)
        return self.ungroup(self._source_weights @ values)

    def on_target(self, new: Tensor, old: Tensor) -> Tensor:
        return new
