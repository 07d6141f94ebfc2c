"""The kernels that the pretended CUDA device computes itself equal PyTorch's on a CPU; no device is needed here."""

import pytest
import torch

from pretended_cuda.cells import gru_cell, gru_cell_backward, lstm_cell, lstm_cell_backward
from pretended_cuda.flash import flash_backward, flash_forward
from pretended_cuda.softmax import backward_of, forward_of

ROWS, WIDTH = 3, 5


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True)


def assert_equal(ours, theirs) -> None:
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


def gates(cell: torch.nn.Module, x: torch.Tensor, state: torch.Tensor) -> tuple:
    """Gates without their biases, and the biases, each a leaf."""
    parts = (x @ cell.weight_ih.T, state @ cell.weight_hh.T, cell.bias_ih, cell.bias_hh)
    return tuple(part.detach().requires_grad_() for part in parts)


def test_lstm_cell():
    cell = torch.nn.LSTMCell(WIDTH, WIDTH, dtype=torch.float64)
    x, state, memory = randn(ROWS, WIDTH), randn(ROWS, WIDTH, seed=1), randn(ROWS, WIDTH, seed=2)
    of_input, of_state, *biases = gates(cell, x, state)
    new_state, new_memory, workspace = lstm_cell(of_input, of_state, memory, *biases)
    assert_equal((new_state, new_memory), cell(x, (state, memory)))
    above = torch.ones_like(new_state), 2 * torch.ones_like(new_memory)
    expected = torch.autograd.grad((new_state, new_memory), (of_input, memory, biases[0]), above)
    assert_equal(lstm_cell_backward(*above, memory, new_memory, workspace, True), expected)
    only_state = torch.autograd.grad(lstm_cell(of_input, of_state, memory, *biases)[0], memory, above[0])
    assert_equal(lstm_cell_backward(above[0], None, memory, new_memory, workspace, True)[1:2], only_state)


def test_gru_cell():
    cell = torch.nn.GRUCell(WIDTH, WIDTH, dtype=torch.float64)
    x, state = randn(ROWS, WIDTH), randn(ROWS, WIDTH, seed=1)
    of_input, of_state, *biases = gates(cell, x, state)
    new_state, workspace = gru_cell(of_input, of_state, state, *biases)
    assert_equal([new_state], [cell(x, state)])
    expected = torch.autograd.grad(new_state, (of_input, of_state, state, *biases), torch.ones_like(new_state))
    assert_equal(gru_cell_backward(torch.ones_like(new_state), workspace, True), expected)


@pytest.mark.parametrize("is_causal", [False, True])
def test_flash_attention(is_causal):
    """Two sentences in a row, as one attention each; the backward pass as autograd derives it."""
    lengths, heads, size = (3, 4), 2, 8
    query, key, value = (randn(sum(lengths), heads, size, seed=seed).half().detach() for seed in range(3))
    offsets = torch.tensor([0, 3, 7], dtype=torch.int32)
    window = (-1, 0) if is_causal else (-1, -1)
    packed = offsets, offsets, max(lengths), max(lengths), is_causal
    context, log_sums, random = flash_forward(query, key, value, *packed, None, window)
    singles = [x.float().requires_grad_() for x in (query, key, value)]
    parts = zip(*(x.split(lengths) for x in singles), strict=True)
    expected = torch.cat([attention(*(x.transpose(0, 1) for x in part), is_causal).transpose(0, 1) for part in parts])
    torch.testing.assert_close(context.float(), expected, rtol=0, atol=2e-3)
    above = randn(*context.shape, seed=3).half().detach()
    found = flash_backward(above, query, key, value, context, log_sums, *packed, random, None, window)
    for ours, theirs in zip(found, torch.autograd.grad(expected, singles, above.float()), strict=True):
        torch.testing.assert_close(ours.float(), theirs, rtol=0, atol=5e-3)


def attention(query, key, value, is_causal):
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=is_causal)


@pytest.mark.parametrize("operation", ["_softmax", "_log_softmax"])
def test_softmax_of_half_precision_is_single(operation):
    scores = randn(ROWS, WIDTH).half().detach()
    out = forward_of(operation)(scores, 1, True)
    compute = torch.softmax if operation == "_softmax" else torch.log_softmax
    single = scores.float().requires_grad_()
    expected = compute(single, 1)
    assert_equal([out], [expected.detach()])
    above = randn(ROWS, WIDTH, seed=1).float().detach()
    grad = backward_of(operation)(above, out, 1, torch.float16)
    (theirs,) = torch.autograd.grad(expected, single, above)
    assert grad.dtype == torch.float16
    torch.testing.assert_close(grad.float(), theirs, rtol=0, atol=2e-3)
