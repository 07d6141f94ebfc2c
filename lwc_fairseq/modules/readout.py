"""From the state of a recurrent decoder to the next word.

    t_j = tanh(W [E_{y_{j-1}}; s_j; contexts] + b)

This is the readout of the dl4mt tutorial, with its three linear maps joined into one.
"""

import torch
from torch import Tensor, nn


class Readout(nn.Module):
    """t above.

    Args:
        input_dims: widths of the previous word, the state and the contexts.
        dim: width of t.
    """

    def __init__(self, input_dims: list[int], dim: int):
        super().__init__()
        self.hidden = nn.Linear(sum(input_dims), dim)

    def forward(self, *inputs: Tensor) -> Tensor:
        """(..., input_dim) each, to (..., dim)."""
        return torch.tanh(self.hidden(torch.cat(inputs, dim=-1)))
