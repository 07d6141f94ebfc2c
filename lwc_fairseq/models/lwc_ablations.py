"""Ablations of the layer-wise coordinated Transformer: the rows of Table 3 of He et al. (NeurIPS 2018).

| Table 3 | option | here |
|---|---|---|
| no weight sharing | --unshared-weights | :class:`UnsharedStack` |
| no mixed attention | --separate-attention | :class:`SeparateAttentionStack` |
| no source/target embedding | --no-side-embedding | :class:`~.lwc_transformer.ConcatEmbedding` |
| no position embedding | --no-position-embedding | the same class |

The options can be combined. The letters for shapes are those of :mod:`~.lwc_transformer`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..data.packing import SOURCE, Packing
from ..modules.mixed_attention import (
    PaddedAttention,
    StepAttention,
    active_rate,
    attention_scores,
    mixed_attention_mask,
    pad_keys_and_values,
)
from .lwc_transformer import STACKS, CoordinatedLayer, CoordinatedStack, LWCTransformerConfig


class UnsharedStack(CoordinatedStack):
    """A stack with separate layers for source and target, half as many for each, so that the number of parameters stays
    the same.

    Layer i of the target attends to the output of layer i of the source, projected with the target layer's weights.
    (In the full model, it attends to the output of layer i - 1 of the source. Here, this would leave the top layer of
    the source without any effect.)
    """

    source_layers: Sequence[CoordinatedLayer]

    def __init__(self, cfg: LWCTransformerConfig, types: int, padding_idx: int):
        super().__init__(cfg, types, padding_idx)
        self.add_module("source_layers", self.make_layers(cfg))

    def forward(self, packing: Packing) -> Tensor:
        attend, is_target = self.packed_attention(packing, window=None), packing.sides.bool()[:, None]
        x = self.embedding(packing.tokens, packing.sides, packing.positions)
        source_layers, target_layers = self.recomputable(self.source_layers), self.recomputable(self.layers)
        for source_layer, target_layer in zip(source_layers, target_layers, strict=True):
            x = torch.where(is_target, x, source_layer(x, attend))  # (T, d); updates the source tokens
            x = torch.where(is_target, target_layer(x, attend), x)  # updates the target tokens
        return self.norm(x.index_select(0, packing.target_rows))

    def read_source(self, packing: Packing) -> list[tuple[Tensor, Tensor]]:
        attend = self.packed_attention(packing, window=None)
        x = self.embedding(packing.tokens, packing.sides, packing.positions)
        keys_and_values = []
        for source_layer, target_layer in zip(self.source_layers, self.layers, strict=True):
            x = source_layer.finish(x, attend(source_layer.project(x)))
            keys_and_values.append(pad_keys_and_values(target_layer.project(x), packing))
        return keys_and_values


class PackedSeparateAttention:
    """The two attentions within the packed stream: first of each token over its own side (the source, or the target so
    far), then of any queries over the source.

    Args:
        dropout: probability of dropping an attention weight.
        window: that of the layer, or None.
    """

    def __init__(self, packing: Packing, dropout: float, window: int | None):
        own_side, source = separate_attention_masks(packing, window)
        self._to_own_side = PaddedAttention(packing, own_side, dropout)
        self._to_source = PaddedAttention(packing, source, dropout)
        self.is_target = packing.sides.bool()[:, None]

    def __call__(self, qkv: Tensor) -> Tensor:
        """Map queries, keys and values (T, 3, H, d/H) to contexts (T, H, d/H)."""
        return self._to_own_side(qkv)

    def to_source(self, qkv: Tensor, below: Tensor) -> Tensor:
        """Compute the contexts of the queries in `qkv` over the source's keys and values in `below`."""
        return self._to_source(torch.stack([qkv[:, 0], below[:, 1], below[:, 2]], dim=1))

    def on_target(self, new: Tensor, old: Tensor) -> Tensor:
        """Return states (T, d): `new` for target tokens, `old` for source tokens."""
        return torch.where(self.is_target, new, old)


def separate_attention_masks(packing: Packing, window: int | None) -> tuple[Tensor, Tensor]:
    """Return the masks of self-attention and of source attention, for the sentences of a packed stream, padded on the
    right.

    Args:
        window: that of the layer, or None; it limits self-attention alone.

    Returns:
        Two tensors (B, length, length), True where token i (second axis) may attend to token j (third axis). Rows
        beyond a sentence's end are never used. They attend to some token, so that no softmax is empty.
    """
    sides, _ = packing.padded_sides_and_positions
    same_side = mixed_attention_mask(packing, window) & (sides[:, :, None] == sides[:, None])
    source = ((sides == SOURCE) | (packing.source_lengths == 0)[:, None])[:, None].expand_as(same_side)
    return same_side, source


class StepSeparateAttention(StepAttention):
    """The two attentions of m new target tokens in one layer. They use the same caches as mixed attention."""

    def __call__(self, qkv: Tensor) -> Tensor:
        """Map queries, keys and values (R, m, 3, H, d/H) to contexts (R, m, H, d/H) over the target so far."""
        mask = self.mask[..., self.source.padding_mask.size(1) :]
        keys, values = self.extended_target(qkv, mask.size(-1))
        scores = attention_scores(self.group_by_sentence(qkv[:, :, 0]), keys.flatten(0, 1))
        scores = self.masked(scores, mask)
        self._target_weights = scores.softmax(-1).type_as(scores)
        return self.ungroup(self.dropped(self._target_weights) @ values.flatten(0, 1))

    def to_source(self, qkv: Tensor, below: Tensor) -> Tensor:
        """Map queries in (R, m, 3, H, d/H) to contexts (R, m, H, d/H) over the cached source. `below` is unused."""
        keys, values = self.cached_source()
        scores = attention_scores(self.group_by_sentence(qkv[:, :, 0]), keys)
        scores = self.masked(scores, self.mask[..., : keys.size(1)])
        self._source_weights = scores.softmax(-1).type_as(scores)
        return self.ungroup(self.dropped(self._source_weights) @ values)

    def on_target(self, new: Tensor, old: Tensor) -> Tensor:
        return new


class SeparateAttentionLayer(CoordinatedLayer):
    """A layer in which a target token attends to the target so far, and then to the source.

        pre-norm   x ← x + Att(LN(x); target so far), x ← x + Att(LN(x); source), x ← x + FFN(LN(x))

    and accordingly in post-norm and DeepNorm. Both attentions share one set of weights and one layer norm, because the
    published number of parameters equals that of the full model. A source token attends only to the source. As in mixed
    attention, the keys and values of both sides come from the states below the layer.
    """

    def forward(  # type: ignore[override]
        self, x: Tensor, attend: PackedSeparateAttention | StepSeparateAttention, rows: Tensor | None = None
    ) -> Tensor:
        below = self.project(x)
        x = self.add_attention(x, attend(below))
        attended = self.add_attention(x, attend.to_source(self.project(x), below))
        x = attend.on_target(attended, x)
        return self.add_feed_forward(x if rows is None else x.index_select(0, rows))


class SeparateAttentionStack(CoordinatedStack):
    """A stack of :class:`SeparateAttentionLayer`.

    Over the source alone, such a layer computes self-attention, as in the full model, so `read_source` is inherited.
    """

    layer_type = SeparateAttentionLayer
    step_attention = StepSeparateAttention

    def packed_attention(self, packing: Packing, window: int | None) -> PackedSeparateAttention:
        return PackedSeparateAttention(packing, active_rate(self.attention_dropout), window)


class UnsharedSeparateAttentionStack(UnsharedStack, SeparateAttentionStack):
    """Both ablations combined."""


STACKS.update(
    {  # --unshared-weights, --separate-attention
        (True, False): UnsharedStack,
        (False, True): SeparateAttentionStack,
        (True, True): UnsharedSeparateAttentionStack,
    }
)
