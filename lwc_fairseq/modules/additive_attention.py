"""Additive attention: Bahdanau et al., *Neural Machine Translation by Jointly Learning to Align and Translate* (2015).

    α_i = softmax_i(v · tanh(W s + U h_i)),   a = Σ_i α_i h_i

This is also eq. 9 of Zhang et al., *Neural Machine Translation with Deep Attention* (2018), where the score includes
the exp of the softmax.

Letters: S sentences, R = S · beam rows (one state per hypothesis), n memory positions, D memory width, d width of the
state and of the attention. True in a padding mask means padding.
"""

import torch
from torch import Tensor, nn

from .attention_memory import Memory, ProjectedMemory


class AdditiveAttention(nn.Module):
    """The equations above with the weights W (`query`), U (`key`) and v (`energy`).

    Args:
        memory_dim: D.
        dim: d.
    """

    def __init__(self, memory_dim: int, dim: int):
        super().__init__()
        self.context_dim = memory_dim
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(memory_dim, dim, bias=False)
        self.energy = nn.Parameter(torch.randn(dim) / dim**0.5)

    def project(self, memory: Memory) -> ProjectedMemory:
        """Compute U h once per sentence."""
        return ProjectedMemory(*memory, keys=self.key(memory.states), values=memory.states)

    def forward(self, state: Tensor, memory: ProjectedMemory) -> tuple[Tensor, Tensor]:
        """Attend from the states s (R, d) to the memory. Each `beam` consecutive rows share the memory of one sentence.

        Returns:
            The contexts a (R, D) and the weights α (R, n).
        """
        return self.read(state, memory.keys, memory.values, memory.padding_mask)

    def read(
        self, state: Tensor, keys: Tensor, values: Tensor, padding_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute a and α from the keys U h (S, n, d), the values h (S, n, D) and a padding mask (S, n)."""
        query = self.query(state).unflatten(0, (len(keys), -1))[:, :, None]  # (S, beam, 1, d)
        scores = torch.tanh(query + keys[:, None]) @ self.energy.to(keys.dtype)  # (S, beam, n)
        if padding_mask is not None:
            scores = scores.masked_fill(padding_mask[:, None], -torch.inf)
        weights = scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32)).type_as(values)
        return (weights @ values).flatten(0, 1), weights.flatten(0, 1)
