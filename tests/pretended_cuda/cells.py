"""The fused LSTM and GRU cells of CUDA, which have no kernels for a CPU.

Letters: B rows, h width of the state; input and hidden gates are (B, 4h) or (B, 3h), without their biases.
"""

import torch
from torch import Tensor


def lstm_cell(input_gates, hidden_gates, cell, input_bias=None, hidden_bias=None):
    """``aten::_thnn_fused_lstm_cell``: the new state, the new cell, and the gates (B, 4h) for the backward pass."""
    gates = input_gates + hidden_gates
    if input_bias is not None:
        gates = gates + input_bias + hidden_bias
    enter, forget, new, out = gates.chunk(4, 1)
    enter, forget, new, out = enter.sigmoid(), forget.sigmoid(), new.tanh(), out.sigmoid()
    new_cell = forget * cell + enter * new
    return out * new_cell.tanh(), new_cell, torch.cat([enter, forget, new, out], 1)


def lstm_cell_backward(of_state, of_cell, cell, new_cell, workspace, has_bias):
    """``aten::_thnn_fused_lstm_cell_backward_impl``: gradients of the gates (B, 4h), of the cell and of a bias."""
    enter, forget, new, out = workspace.chunk(4, 1)
    of_state = torch.zeros_like(new_cell) if of_state is None else of_state
    squashed = new_cell.tanh()
    total = of_state * out * (1 - squashed * squashed)
    total = total if of_cell is None else total + of_cell
    parts = (
        total * new * enter * (1 - enter),
        total * cell * forget * (1 - forget),
        total * enter * (1 - new * new),
        of_state * squashed * out * (1 - out),
    )
    gates = torch.cat(parts, 1)
    return gates, total * forget, gates.sum(0) if has_bias else None


def gru_cell(input_gates, hidden_gates, state, input_bias=None, hidden_bias=None):
    """``aten::_thnn_fused_gru_cell``: the new state, and (B, 5h) for the backward pass.

    r = σ(..), z = σ(..), n = tanh(i_n + r ∘ h_n), h' = n + z ∘ (h - n)
    """
    if input_bias is not None:
        input_gates, hidden_gates = input_gates + input_bias, hidden_gates + hidden_bias
    input_reset, input_update, input_new = input_gates.chunk(3, 1)
    hidden_reset, hidden_update, hidden_new = hidden_gates.chunk(3, 1)
    reset, update = (input_reset + hidden_reset).sigmoid(), (input_update + hidden_update).sigmoid()
    new = (input_new + reset * hidden_new).tanh()
    return new + update * (state - new), torch.cat([reset, update, new, state, hidden_new], 1)


def gru_cell_backward(grad: Tensor, workspace: Tensor, has_bias: bool):
    """``aten::_thnn_fused_gru_cell_backward``: gradients of both gates, of the state, and of both biases."""
    reset, update, new, state, hidden_new = workspace.chunk(5, 1)
    of_new = grad * (1 - update) * (1 - new * new)
    of_reset = of_new * hidden_new * reset * (1 - reset)
    of_update = grad * (state - new) * update * (1 - update)
    of_input = torch.cat([of_reset, of_update, of_new], 1)
    of_hidden = torch.cat([of_reset, of_update, of_new * reset], 1)
    biases = (of_input.sum(0), of_hidden.sum(0)) if has_bias else (None, None)
    return of_input, of_hidden, grad * update, *biases
