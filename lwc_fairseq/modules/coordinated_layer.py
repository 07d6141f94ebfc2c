"""One layer of the layer-wise coordinated Transformer, the same for source and target."""

from fairseq.modules.fairseq_dropout import FairseqDropout
from torch import Tensor, nn

from .mixed_attention import Attend, MixedAttention


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

    def _residual(self, x: Tensor, norm: nn.LayerNorm, sublayer) -> Tensor:
        if self.normalize_after:
            return norm(x + self.dropout(sublayer(x)))
        return x + self.dropout(sublayer(norm(x)))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.fc2(self.activation_dropout(self.fc1(x).relu()))
