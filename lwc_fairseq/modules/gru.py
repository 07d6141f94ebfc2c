"""Gated recurrent units.

    z  = σ(W_z x + U_z h + b_z)                 update gate
    r  = σ(W_r x + U_r h + b_r)                 reset gate
    h̃  = tanh(W_h x + U_h (r ∘ h) + b_h)        candidate
    h' = (1 - z) ∘ h + z ∘ h̃                    GRU(h, x)

This is the GRU of the papers that this package implements, after Chung et al., *Empirical Evaluation of Gated Recurrent
Neural Networks on Sequence Modeling* (2014): the reset gate multiplies the state before the recurrent product.
torch.nn.GRU applies the reset gate after the product.

Letters: T steps, R rows (sentences, or hypotheses in decoding), d state width.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .kernels.gru_chain import Link, run_chain


class GRUCell(nn.Module):
    """A single GRU.

    Args:
        input_dim: width of x.
        dim: d, width of the state.
    """

    def __init__(self, input_dim: int, dim: int):
        super().__init__()
        self.input = nn.Linear(input_dim, 3 * dim)  # [W_z; W_r; W_h] and b
        self.recurrent = nn.Parameter(torch.empty(3 * dim, dim))  # [U_z; U_r; U_h]
        nn.init.xavier_uniform_(self.recurrent)

    def forward(self, state: Tensor, projected: Tensor) -> Tensor:
        """Compute GRU(h, x).

        Args:
            state: h, (R, d).
            projected: W x + b, (R, 3d). Callers compute it with `input`, for all time steps at once if x is known
                beforehand.
        """
        dim = state.size(1)
        gates = torch.sigmoid(projected[:, : 2 * dim] + F.linear(state, self.recurrent[: 2 * dim]))
        update, reset = gates.chunk(2, dim=1)
        candidate = torch.tanh(projected[:, 2 * dim :] + F.linear(reset * state, self.recurrent[2 * dim :]))
        return (1 - update) * state + update * candidate


class GRULayer(nn.Module):
    """A chain of GRUs over input sequences that are known beforehand. In each step, the state passes through all GRUs.

    Args:
        input_dims: width of each GRU's input, in the order of the chain.
        dim: d.
        plain: compute the equations with autograd instead of the kernel, which is faster.
    """

    def __init__(self, input_dims: list[int], dim: int, plain: bool = False):
        super().__init__()
        self.dim = dim
        self.plain = plain
        self.cells = nn.ModuleList(GRUCell(input_dim, dim) for input_dim in input_dims)

    def forward(self, inputs: list[Tensor]) -> Tensor:
        """Map sequences (T, R, input_dim), one for each GRU, to states (T, R, d). The initial state is zero."""
        projected = [cell.input(x) for cell, x in zip(self.cells, inputs, strict=True)]
        steps, rows, _ = projected[0].shape
        state = projected[0].new_zeros(rows, self.dim)
        if not self.plain:
            links = [Link(cell.recurrent, x) for cell, x in zip(self.cells, projected, strict=True)]
            return run_chain(links, steps, state)[0]
        states = []
        for now in zip(*projected, strict=True):
            for cell, x in zip(self.cells, now, strict=True):
                state = cell(state, x)
            states.append(state)
        return torch.stack(states)


def run_together(layers: list[GRULayer], inputs: list[Tensor]) -> list[Tensor]:
    """Run layers of one GRU each, over sequences (T, R, input_dim) of one length, one sequence for each layer. The
    result is that of one layer after the other, but one operation computes a step of all layers: on a GPU, where a step
    takes as long as it takes to launch its operations, two layers take as long as one. On a CPU it saves nothing, and
    weights and inputs are copied."""
    cells = [layer.cells[0] for layer in layers]
    projected = torch.stack([cell.input(x) for cell, x in zip(cells, inputs, strict=True)])
    count, steps, rows, _ = projected.shape
    link = Link(torch.stack([cell.recurrent for cell in cells]), projected)
    return list(run_chain([link], steps, projected.new_zeros(count, rows, layers[0].dim))[0])
