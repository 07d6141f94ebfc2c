"""The readout: the last hidden layer of a recurrent decoder, before the output layer.

    t_j = tanh(W [E_{y_{j-1}}; s_j; contexts] + b)

This is the readout of the dl4mt tutorial, with its three linear maps merged into one.
"""

import torch
from torch import Tensor, nn


class Readout(nn.Module):
    """Computes t in the equation above.

    Args:
        input_dims: the widths of the previous word's embedding, the state and the contexts.
        dim: the width of t.
    """

    def __init__(self, input_dims: list[int], dim: int):
        super().__init__()
        self.hidden = nn.Linear(sum(input_dims), dim)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Map inputs, (..., input_dim) each, to (..., dim)."""
        return torch.tanh(self.hidden(torch.cat(inputs, dim=-1)))
