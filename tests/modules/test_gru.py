import pytest
import torch

from lwc_fairseq.modules.additive_attention import AdditiveAttention
from lwc_fairseq.modules.attention_memory import InputMap, Memory
from lwc_fairseq.modules.conditional_gru import ConditionalGRU
from lwc_fairseq.modules.gru import GRUCell, GRULayer, Link, run_chain

DIM = 4
COLUMNS = torch.arange(3).expand(2, 3)


def doubles(module):
    """The module in double precision, with weights large enough for gradients to be seen."""
    module = module.double()
    for i, parameter in enumerate(module.parameters()):
        torch.nn.init.normal_(parameter, std=0.5, generator=torch.Generator().manual_seed(i))
    return module


def random(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_()


def check_gradients(module, function, *inputs):
    """Finite differences for the inputs and for every weight."""
    names, weights = zip(*module.named_parameters(), strict=True)

    def call(*tensors):
        given, parameters = tensors[: len(inputs)], dict(zip(names, tensors[len(inputs) :], strict=True))
        return torch.func.functional_call(module, parameters, (function, *given))

    assert torch.autograd.gradcheck(call, (*inputs, *weights))


class Calls(torch.nn.Module):
    """So that functional_call runs any function of a module."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, function, *inputs):
        return function(self.module, *inputs)


def test_cell_is_the_papers_gru():
    """The reset gate acts before the recurrent product: z, r, candidate, one row at a time."""
    cell, x, h = doubles(GRUCell(3, DIM)), random(5, 3), random(5, DIM, seed=1)
    state, _ = run_chain([Link(cell, cell.input(x)[None])], 1, h)
    w_z, w_r, w_h = cell.input.weight.chunk(3)
    b_z, b_r, b_h = cell.input.bias.chunk(3)
    u_z, u_r, u_h = cell.recurrent.chunk(3)
    for row, before, after in zip(x, h, state[0], strict=True):
        z = torch.sigmoid(w_z @ row + u_z @ before + b_z)
        r = torch.sigmoid(w_r @ row + u_r @ before + b_r)
        candidate = torch.tanh(w_h @ row + u_h @ (r * before) + b_h)
        assert torch.allclose(after, (1 - z) * before + z * candidate, rtol=0, atol=1e-12)


def test_layer_by_finite_differences():
    layer = Calls(doubles(GRULayer([3, 2], DIM)))
    check_gradients(layer, lambda m, x, y, h: m([x, y], h), random(4, 2, 3), random(4, 2, 2, seed=1), random(2, DIM))


@pytest.mark.parametrize("heads", [0, 2], ids=["additive", "multi-head"])
@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("groups", [[[5], [2]], [[5, 2]]], ids=["one after the other", "side by side"])
def test_conditional_gru_by_finite_differences(heads, beam, groups):
    """States, contexts and attention weights, through two memories of different width, with padding."""
    layer = Calls(doubles(ConditionalGRU(3, DIM, groups, heads)))
    padding = torch.tensor([[False, False, False], [False, True, True]])

    def run(module, x, state, first, second):
        states, contexts, weights = module(
            x, state, module.project([Memory(first, padding, COLUMNS), Memory(second, padding, COLUMNS)])
        )
        return states, *contexts, *weights

    memories = random(2, 3, 5, seed=2), random(2, 3, 2, seed=3)
    check_gradients(layer, run, random(3, 2 * beam, 3), random(2 * beam, DIM, seed=1), *memories)


@pytest.mark.parametrize("heads", [0, 2], ids=["additive", "multi-head"])
def test_contexts_side_by_side_enter_one_gru(heads):
    """With two memories in a group, the second GRU takes [a¹; a²]: one step, row by row, from the contexts it names."""
    layer = doubles(ConditionalGRU(3, DIM, [[5, 2]], heads))
    padding = torch.tensor([[False, False, True], [False, True, True]])
    memories = [Memory(random(2, 3, width, seed=width), padding, COLUMNS) for width in (5, 2)]
    x, before = random(1, 2, 3), random(2, DIM, seed=1)
    states, contexts, _ = layer(x, before, layer.project(memories))
    first, second = layer.cells
    between, _ = run_chain([Link(first, first.input(x))], 1, before)
    taken = second.input(torch.cat(contexts, dim=-1)).transpose(0, 1)
    after, _ = run_chain([Link(second, taken)], 1, between[0])
    assert torch.allclose(states, after, rtol=0, atol=1e-12)


def test_a_weight_changed_between_forward_and_backward_is_noticed():
    layer = doubles(GRULayer([3], DIM))
    states = layer([random(4, 2, 3)])
    with torch.no_grad():
        layer.cells[0].recurrent.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        states.sum().backward()


def test_attention_is_a_distribution_over_what_is_not_padding():
    attention = doubles(AdditiveAttention(5, DIM))
    cell = doubles(GRUCell(5, DIM))
    padding = torch.tensor([[False, False, True], [False, True, True]])
    gates = InputMap(cell.input.weight, cell.input.bias)
    memory = attention.project(Memory(random(2, 3, 5), padding, COLUMNS), gates)
    _, (weights,) = run_chain([Link(cell, readers=(attention.reader(memory, gates),))], 4, random(2, DIM))
    alphas = attention.alignments(weights)
    assert alphas.shape == (2, 4, 3)
    assert torch.allclose(alphas.sum(-1), torch.ones(2, 4, dtype=torch.float64), rtol=0, atol=1e-12)
    assert not alphas[padding[:, None].expand_as(alphas)].any()


def test_the_graph_is_run_twice_for_two_losses():
    """Nothing of a backward pass is left for the next."""
    layer, x = doubles(GRULayer([3], DIM)), random(4, 2, 3)
    states = layer([x])
    first, again = (torch.autograd.grad(states.sum(), x, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, again)
