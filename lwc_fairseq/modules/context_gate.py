"""A gate between source and target context, after Tu, Liu, Lu, Liu, Li, *Context Gates for NMT* (TACL 2017)."""

import torch
from torch import Tensor, nn


class ContextGate(nn.Module):
    """Weighs a decoder layer's target context against its source context:

        z = σ(w · [x; t; s] + b),   2 (1 - z) t + 2 z s

    Here x is the state, t the target context and s the source context of a position, and z is a scalar. w and b are
    initially 0, so that z is ½ and the result is t + s, as in a layer without the gate.

    Args:
        embed_dim: d.
    """

    def __init__(self, embed_dim: int):
        super().__init__()
        self.gate = nn.Linear(3 * embed_dim, 1)
        nn.init.zeros_(self.gate.weight)
        nn.init.zeros_(self.gate.bias)

    def forward(self, state: Tensor, target_context: Tensor, source_context: Tensor) -> Tensor:
        """Combine three tensors (..., d) into one."""
        z = self.gate(torch.cat([state, target_context, source_context], dim=-1)).sigmoid()
        return 2 * ((1 - z) * target_context + z * source_context)
