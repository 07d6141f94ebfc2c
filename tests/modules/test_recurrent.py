"""The recurrent modules equal their equations, computed for one row at a time."""

import pytest
import torch

from conftest import PAD
from lwc_fairseq.modules.recurrent import (
    AdditiveAttention,
    ConditionalGRU,
    GRUCell,
    GRULayer,
    Memory,
    MultiHeadAttention,
    SourceOrder,
)

DIM = 4
COLUMNS = torch.arange(3).expand(2, 3)
PADDING = torch.tensor([[False, False, True], [False, True, True]])


def doubles(module):
    """The module in double precision, with weights so large that gradients are not negligible."""
    module = module.double()
    for i, parameter in enumerate(module.parameters()):
        torch.nn.init.normal_(parameter, std=0.5, generator=torch.Generator().manual_seed(i))
    return module


def random(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_()


def test_cell_is_the_papers_gru():
    """The reset gate acts before the recurrent product: z, r, candidate, one row at a time."""
    cell, x, h = doubles(GRUCell(3, DIM)), random(5, 3), random(5, DIM, seed=1)
    w_z, w_r, w_h = cell.input.weight.chunk(3)
    b_z, b_r, b_h = cell.input.bias.chunk(3)
    u_z, u_r, u_h = cell.recurrent.chunk(3)
    for row, before, after in zip(x, h, cell(h, cell.input(x)), strict=True):
        z = torch.sigmoid(w_z @ row + u_z @ before + b_z)
        r = torch.sigmoid(w_r @ row + u_r @ before + b_r)
        candidate = torch.tanh(w_h @ row + u_h @ (r * before) + b_h)
        assert torch.allclose(after, (1 - z) * before + z * candidate, rtol=0, atol=1e-12)


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "kernel"])
def test_a_layer_passes_its_state_through_all_cells_in_each_step(plain):
    layer, x, y = doubles(GRULayer([3, 2], DIM, plain)), random(4, 2, 3), random(4, 2, 2, seed=1)
    lower, higher = layer.cells
    state = torch.zeros(2, DIM, dtype=torch.float64)
    for step, found in enumerate(layer([x, y])):
        state = lower(state, lower.input(x[step]))
        state = higher(state, higher.input(y[step]))
        assert torch.allclose(found, state, rtol=0, atol=1e-12)


def test_additive_attention_is_eq_9():
    attention, states, h = doubles(AdditiveAttention(5, DIM)), random(4, DIM), random(2, 3, 5, seed=1)
    contexts, weights = attention(states, attention.project(Memory(h, PADDING, COLUMNS)))
    for row, s in enumerate(states):
        words = h[row // 2][~PADDING[row // 2]]  # two rows read each memory
        scores = [attention.energy @ torch.tanh(attention.query.weight @ s + attention.key.weight @ w) for w in words]
        expected = torch.stack(scores).softmax(0)
        assert torch.allclose(weights[row][: len(words)], expected, rtol=0, atol=1e-12)
        assert not weights[row][len(words) :].any()
        assert torch.allclose(contexts[row], expected @ words, rtol=0, atol=1e-12)


def test_multi_head_attention_head_by_head():
    attention, states, h = doubles(MultiHeadAttention(5, DIM, 2)), random(4, DIM), random(2, 3, 5, seed=1)
    contexts, weights = attention(states, attention.project(Memory(h, PADDING, COLUMNS)))
    for row, s in enumerate(states):
        words = h[row // 2][~PADDING[row // 2]]
        heads, alphas = [], []
        for query, key, value in zip(
            *(linear.weight.chunk(2) for linear in (attention.query, attention.key, attention.value)), strict=True
        ):
            alphas.append(((words @ key.T) @ (query @ s) / (DIM / 2) ** 0.5).softmax(0))
            heads.append(alphas[-1] @ (words @ value.T))
        assert torch.allclose(contexts[row], attention.output.weight @ torch.cat(heads), rtol=0, atol=1e-12)
        assert torch.allclose(weights[row][: len(words)], sum(alphas) / 2, rtol=0, atol=1e-12)


@pytest.mark.parametrize("heads", [0, 2], ids=["additive", "multi-head"])
def test_contexts_side_by_side_enter_one_gru(heads):
    """With two memories in a group, the second GRU takes [a¹; a²]."""
    layer = doubles(ConditionalGRU(3, DIM, [[5, 2]], heads))
    memories = layer.project([Memory(random(2, 3, width, seed=width), PADDING, COLUMNS) for width in (5, 2)])
    x, before = random(1, 2, 3), random(2, DIM, seed=1)
    states, contexts, weights = layer(x, before, memories)
    first, second = layer.cells
    between = first(before, first.input(x[0]))
    for attention, memory, context, alpha in zip(layer.attentions, memories, contexts, weights, strict=True):
        expected, expected_alpha = attention(between, memory)
        assert torch.allclose(context[:, 0], expected, rtol=0, atol=1e-12)
        assert torch.allclose(alpha[:, 0], expected_alpha, rtol=0, atol=1e-12)
    after = second(between, second.input(torch.cat(contexts, dim=-1)[:, 0]))
    assert torch.allclose(states[0], after, rtol=0, atol=1e-12)


LEFT = torch.tensor([[PAD, PAD, 5, 6], [7, 8, 9, 2], [PAD, PAD, PAD, 3]])
RIGHT = torch.tensor([[5, 6, PAD, PAD], [7, 8, 9, 2], [3, PAD, PAD, PAD]])


@pytest.mark.parametrize("tokens", [LEFT, RIGHT], ids=["left", "right"])
def test_order_of_a_padded_batch(tokens):
    order = SourceOrder(tokens, PAD)
    assert order.tokens.tolist() == RIGHT.tolist()
    assert order.tokens.gather(1, order.columns).tolist() == tokens.tolist()
    assert order.padding_mask.tolist() == RIGHT.eq(PAD).tolist()
    sequence = order.tokens.T[:, :, None].float()
    assert order.last(sequence)[:, 0].tolist() == [6, 2, 3]
    backward = order.reverse(sequence)
    assert backward[:, :, 0].T.tolist() == [[6, 5, PAD, PAD], [2, 9, 8, 7], [3, PAD, PAD, PAD]]
    assert torch.equal(order.reverse(backward), sequence)
