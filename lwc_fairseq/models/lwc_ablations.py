"""Ablations of the layer-wise coordinated Transformer: the rows of Table 3 of He et al. (NeurIPS 2018).

| Table 3 | option | here |
|---|---|---|
| no weight sharing | --unshared-weights | :class:`UnsharedStack` |
| no mixed attention | --separate-attention | :class:`SeparateAttentionStack` |
| no source/target embedding | --no-side-embedding | `with_sides` of :class:`~..modules.embedding.ConcatEmbedding` |
| no position embedding | --no-position-embedding | `positions` of the same class |

The options can be combined. The letters for shapes are those of :mod:`~.lwc_transformer`.
"""

import torch
from torch import Tensor

from ..data.packing import Packing
from ..modules.coordinated_layer import CoordinatedLayer
from ..modules.separate_attention import PackedSeparateAttention, SeparateAttend, StepSeparateAttention
from ..modules.source_cache import pad_keys_and_values
from .lwc_config import LWCTransformerConfig
from .lwc_transformer import STACKS, CoordinatedStack


class UnsharedStack(CoordinatedStack):
    """A stack with separate layers for source and target, half as many for each, so that the number of parameters stays
    the same.

    Layer i of the target attends to the output of layer i of the source, projected with the target layer's weights.
    (With shared weights, it attends to the output of layer i - 1. With separate weights, the top layer of the source
    would then have no effect.)
    """

    def __init__(self, cfg: LWCTransformerConfig, types: int, padding_idx: int):
        super().__init__(cfg, types, padding_idx)
        self.source_layers = self.make_layers(cfg)

    def forward(self, packing: Packing) -> Tensor:
        attend, is_target = self.packed_attention(packing, window=None), packing.sides.bool()[:, None]
        x = self.embedding(packing.tokens, packing.sides, packing.positions)
        source_layers, target_layers = self.recomputable(self.source_layers), self.recomputable(self.layers)
        for source_layer, target_layer in zip(source_layers, target_layers, strict=True):
            x = torch.where(is_target, x, source_layer(x, attend))  # (T, d); updates the source tokens
            x = torch.where(is_target, target_layer(x, attend), x)  # updates the target tokens
        return self.norm(x)

    def read_source(self, packing: Packing) -> list[tuple[Tensor, Tensor]]:
        attend = self.packed_attention(packing, window=None)
        x = self.embedding(packing.tokens, packing.sides, packing.positions)
        kept = []
        for source_layer, target_layer in zip(self.source_layers, self.layers, strict=True):
            x = source_layer.finish(x, attend(source_layer.project(x)))
            kept.append(pad_keys_and_values(target_layer.project(x), packing))
        return kept


class SeparateAttentionLayer(CoordinatedLayer):
    """A layer in which a target token attends to the target so far, and then to the source.

        pre-norm   x ← x + Att(LN(x); target so far), x ← x + Att(LN(x); source), x ← x + FFN(LN(x))

    and accordingly in post-norm and DeepNorm. Both attentions share one set of weights and one layer norm, because the
    published number of parameters equals that of the full model. A source token attends only to the source. As in mixed
    attention, the keys and values of both sides come from the states below the layer.
    """

    def forward(self, x: Tensor, attend: SeparateAttend) -> Tensor:
        below = self.project(x)
        x = self.add_attention(x, attend(below))
        attended = self.add_attention(x, attend.to_source(self.project(x), below))
        x = attend.on_target(attended, x)
        return self.add_feed_forward(x)


class SeparateAttentionStack(CoordinatedStack):
    """A stack of :class:`SeparateAttentionLayer`.

    Over the source alone, such a layer computes self-attention, as in the full model, so `read_source` is inherited.
    """

    layer_type = SeparateAttentionLayer
    step_attention = StepSeparateAttention

    def packed_attention(self, packing: Packing, window: int | None) -> SeparateAttend:
        return PackedSeparateAttention(packing, self.attention_dropout if self.training else 0.0, window)


class UnsharedSeparateAttentionStack(UnsharedStack, SeparateAttentionStack):
    """Both ablations combined."""


STACKS.update(
    {  # --unshared-weights, --separate-attention
        (True, False): UnsharedStack,
        (False, True): SeparateAttentionStack,
        (True, True): UnsharedSeparateAttentionStack,
    }
)
