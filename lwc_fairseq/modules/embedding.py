"""Token, side and position embedding of the layer-wise coordinated Transformer."""

import math

import torch
from fairseq.modules.fairseq_dropout import FairseqDropout
from fairseq.modules.sinusoidal_positional_embedding import SinusoidalPositionalEmbedding
from torch import Tensor, nn


class ConcatEmbedding(nn.Module):
    """Input of a concatenated sentence pair:

        x = √d (E[token] + S[side]) + P[position]

    E is one table for both languages, S holds a learned source and a learned target embedding (the paper's Figure 1),
    P is the sinusoid of Vaswani et al., restarting with the target:

        P[p, 2i] = sin(p / 10000^(2i/d)),  P[p, 2i+1] = cos(p / 10000^(2i/d))

    The factor √d, fairseq's, puts table entries of variance 1/d on the scale of the sinusoid; the paper is silent on
    it, and on whether it covers S. Here it does, so that side and token have one scale.

    Args:
        types: V.
        embed_dim: d, even.
        padding_idx: a token whose embedding stays zero.
        max_positions: tokens of the longest sentence, source or target.
        dropout: probability of dropping an entry of the sum.
        with_sides: False leaves S out, as in the paper's Table 3.
        positions: "paper" for P above; "fairseq" for fairseq's sinusoids; None leaves P out, as in the paper's Table 3.
            fairseq's have all sines before all cosines, and other frequencies. They begin at `padding_idx` + 1.
    """

    def __init__(
        self,
        types: int,
        embed_dim: int,
        padding_idx: int,
        max_positions: int,
        dropout: float,
        with_sides: bool = True,
        positions: str | None = "paper",
    ):
        super().__init__()
        self.scale = math.sqrt(embed_dim)
        self.tokens = nn.Embedding(types, embed_dim, padding_idx)
        self.sides = nn.Embedding(2, embed_dim) if with_sides else None
        self.dropout = FairseqDropout(dropout, module_name=type(self).__name__)
        if positions == "fairseq":
            first = padding_idx + 1
            table = SinusoidalPositionalEmbedding.get_embedding(first + max_positions, embed_dim)[first:]
        else:
            table = None if positions is None else sinusoids(max_positions, embed_dim)
        self.register_buffer("positions", table, persistent=False)
        for table in filter(None, (self.tokens, self.sides)):
            nn.init.normal_(table.weight, std=embed_dim**-0.5)
        nn.init.zeros_(self.tokens.weight[padding_idx])

    def forward(self, tokens: Tensor, sides: Tensor, positions: Tensor) -> Tensor:
        """Return the embeddings (..., d) of token ids, sides (0 source, 1 target) and positions, all of shape (...)."""
        x = self.tokens(tokens)
        if self.sides is not None:
            x = x + self.sides(sides)
        x = self.scale * x
        if self.positions is not None:
            x = x + self.positions[positions]
        return self.dropout(x)


def sinusoids(positions: int, embed_dim: int) -> Tensor:
    """P above, (positions, d), computed in double precision and rounded once."""
    position = torch.arange(positions, dtype=torch.float64)[:, None]
    pair = torch.arange(0, embed_dim, 2, dtype=torch.float64)
    angle = position / 10000 ** (pair / embed_dim)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).to(torch.get_default_dtype())
