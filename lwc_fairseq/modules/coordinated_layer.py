"""The layer of the layer-wise coordinated Transformer, which source and target share."""

import torch
from fairseq.modules.fairseq_dropout import FairseqDropout
from torch import Tensor, nn

from .mixed_attention import Attend, MixedAttention


class CoordinatedLayer(nn.Module):
    """Mixed attention and a feed-forward network, with one set of weights for both sides.

    The two sub-layers f are first the attention (eq. 3) and then the feed-forward network (eq. 2):

        pre-norm            x ← x + f(LN(x))
        post-norm, DeepNorm x ← LN(α x + f(x)), where α = 1 is post-norm
        FFN(x) = max(0, x W₁ + b₁) W₂ + b₂

    Args:
        embed_dim: d.
        ffn_embed_dim: width of the feed-forward network.
        heads: H.
        dropout: probability of dropping an entry of a sub-layer's output, before the sum.
        activation_dropout: probability of dropping an entry inside the feed-forward network, after the ReLU.
        normalize_after: whether the layer norm follows the sum, as in post-norm and DeepNorm.
        residual_weight: α; with pre-norm it must be 1.
    """

    def __init__(
        self,
        embed_dim: int,
        ffn_embed_dim: int,
        heads: int,
        dropout: float,
        activation_dropout: float,
        normalize_after: bool,
        residual_weight: float = 1.0,
    ):
        super().__init__()
        self.normalize_after = normalize_after
        self.residual_weight = residual_weight
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

    @torch.no_grad()
    def scale_last_weights(self, factor: float) -> None:
        """Multiply the weights of the last projection of both sub-layers by a factor."""
        self.attention.out.weight.mul_(factor)
        self.fc2.weight.mul_(factor)

    def forward(self, x: Tensor, attend: Attend) -> Tensor:
        """Map the layer's input, (..., d), to its output, (..., d). `attend` knows the mask."""
        return self.finish(x, attend(self.project(x)))

    def project(self, x: Tensor) -> Tensor:
        """Project the layer's input, (..., d), to queries, keys and values, (..., 3, H, d/H)."""
        return self.attention.project(x if self.normalize_after else self.attention_norm(x))

    def finish(self, x: Tensor, context: Tensor) -> Tensor:
        """Compute the layer's output, (..., d), from its input, (..., d), and the heads' contexts, (..., H, d/H)."""
        return self.add_feed_forward(self.add_attention(x, context))

    def add_attention(self, x: Tensor, context: Tensor) -> Tensor:
        x = torch.add(self.dropout(self.attention.combine(context)), x, alpha=self.residual_weight)
        return self.attention_norm(x) if self.normalize_after else x

    def add_feed_forward(self, x: Tensor) -> Tensor:
        y = x if self.normalize_after else self.ffn_norm(x)
        y = self.fc2(self.activation_dropout(self.fc1(y).relu()))
        x = torch.add(self.dropout(y), x, alpha=self.residual_weight)
        return self.ffn_norm(x) if self.normalize_after else x
