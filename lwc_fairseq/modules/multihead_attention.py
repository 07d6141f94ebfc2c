"""Multi-head scaled dot-product attention of a recurrent decoder: Vaswani et al., *Attention Is All You Need* (2017).

    head_p = softmax(Q_p s (K_p h)ᵀ / √(d/H)) V_p h,   a = O [head_1; ...; head_H]

It replaces additive attention in the model MHeadNMT of Zhang et al., *Neural Machine Translation with Deep Attention*
(2018). The modules of the same name in fairseq and torch compute all steps at once. Here, the query is a state that
depends on the attention of the previous step, so the decoder attends step by step.

Letters: S sentences, R = S · beam rows (one state per hypothesis), n memory positions, D memory width, d width of the
state and of the attention, H heads.
"""

import math

import torch
from torch import Tensor, nn

from .attention_memory import Memory, ProjectedMemory


class MultiHeadAttention(nn.Module):
    """The equation above with the weights Q, K, V and O.

    Args:
        memory_dim: D.
        dim: d.
        heads: H, a divisor of d.
    """

    def __init__(self, memory_dim: int, dim: int, heads: int):
        super().__init__()
        self.context_dim = dim
        self.heads = heads
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(memory_dim, dim, bias=False)
        self.value = nn.Linear(memory_dim, dim, bias=False)
        self.output = nn.Linear(dim, dim, bias=False)

    def project(self, memory: Memory) -> ProjectedMemory:
        """Compute K h and V h once per sentence."""
        keys, values = (self._split(linear(memory.states)) for linear in (self.key, self.value))
        return ProjectedMemory(*memory, keys=keys, values=values)

    def _split(self, x: Tensor) -> Tensor:
        """Rearrange (S, n, d) to (S, H, n, d/H)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2).contiguous()

    def forward(self, state: Tensor, memory: ProjectedMemory) -> tuple[Tensor, Tensor]:
        """Attend from the states s (R, d) to the memory. Each `beam` consecutive rows share the memory of one sentence.

        Returns:
            The contexts a (R, d) and the weights (R, n), averaged over the heads.
        """
        query = self._split(self.query(state).unflatten(0, (len(memory.keys), -1)))  # (S, H, beam, d/H)
        scores = query @ memory.keys.transpose(2, 3) / math.sqrt(query.size(-1))  # (S, H, beam, n)
        scores = scores.masked_fill(memory.padding_mask[:, None, None], -torch.inf)
        weights = scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32)).type_as(scores)
        heads = (weights @ memory.values).transpose(1, 2).flatten(2).flatten(0, 1)  # (R, d)
        return self.output(heads), weights.mean(1).flatten(0, 1)
