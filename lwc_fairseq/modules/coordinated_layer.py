"""One layer of the layer-wise coordinated Transformer, the same for source and target, and its ablation."""

from collections.abc import Callable

from fairseq.modules.fairseq_dropout import FairseqDropout
from torch import Tensor, nn

from .mixed_attention import Attend, MixedAttention
from .separate_attention import SeparateAttend


class CoordinatedLayer(nn.Module):
    """Mixed attention and a feed-forward network, with one set of weights for both sides.

    Normalising before each sub-layer:  x + f(LN(x));  after it:  LN(x + f(x)).
    The feed-forward network is eq. 2:  FFN(x) = max(0, x W₁ + b₁) W₂ + b₂.

    Args:
        embed_dim: d.
        ffn_embed_dim: width of the feed-forward network.
        heads: H.
        dropout: probability of dropping an entry of a sub-layer's output before it is added.
        activation_dropout: the same inside the feed-forward network, after the ReLU.
        normalize_after: normalise after the sub-layers instead of before.
    """

    def __init__(
        self,
        embed_dim: int,
        ffn_embed_dim: int,
        heads: int,
        dropout: float,
        activation_dropout: float,
        normalize_after: bool,
    ):
        super().__init__()
        self.normalize_after = normalize_after
        self.attention = MixedAttention(embed_dim, heads)
        self.attention_norm = nn.LayerNorm(embed_dim)
        self.fc1 = nn.Linear(embed_dim, ffn_embed_dim)
        self.fc2 = nn.Linear(ffn_embed_dim, embed_dim)
        self.ffn_norm = nn.LayerNorm(embed_dim)
        self.dropout = FairseqDropout(dropout, module_name=type(self).__name__)
        self.activation_dropout = FairseqDropout(activation_dropout, module_name=type(self).__name__)
        for linear in (self.fc1, self.fc2):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor, attend: Attend) -> Tensor:
        """(..., d) to (..., d); `attend` says which tokens see which."""
        x = self._residual(x, self.attention_norm, lambda x: self.attention(x, attend))
        return self._residual(x, self.ffn_norm, self._feed_forward)

    def project(self, x: Tensor) -> Tensor:
        """Queries, keys and values (..., 3, H, d/H) that the layer makes of its input (..., d)."""
        return self.attention.project(x if self.normalize_after else self.attention_norm(x))

    def _residual(self, x: Tensor, norm: nn.LayerNorm, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.normalize_after:
            return norm(x + self.dropout(sublayer(x)))
        return x + self.dropout(sublayer(norm(x)))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.fc2(self.activation_dropout(self.fc1(x).relu()))


class SeparateAttentionLayer(CoordinatedLayer):
    """The ablation without mixed attention: a target token attends to the target so far, then to the source.

        x' = x + Att(Q(LN(x)); K, V of the target so far),  x'' = x' + Att(Q(LN(x')); K, V of the source)

    and analogously when normalising after. The published parameter count, that of the full model, leaves one set of
    attention weights and one layer norm for both. Source tokens have their self-attention alone, and what the target
    sees of them is the same as in mixed attention: what they are below this layer.
    """

    def forward(self, x: Tensor, attend: SeparateAttend) -> Tensor:
        """(..., d) to (..., d); `attend` says which tokens see which."""
        below = self.project(x)
        x = self._residual(x, self.attention_norm, lambda _: self.attention.combine(attend.to_own_side(below)))
        attended = self._residual(
            x,
            self.attention_norm,
            lambda x: self.attention.combine(attend.to_source(self.attention.project(x), below)),
        )
        x = attend.on_target(attended, x)
        return self._residual(x, self.ffn_norm, self._feed_forward)
