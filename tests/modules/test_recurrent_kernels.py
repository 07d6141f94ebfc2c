"""The kernels equal the plain equations, which autograd differentiates."""

import pytest
import torch

from lwc_fairseq.modules import recurrent_kernels
from lwc_fairseq.modules.recurrent import ConditionalGRU, GRULayer, Memory, run_together
from lwc_fairseq.modules.recurrent_kernels import AdditiveReader, Link, run_chain, tanh_, tanh_of_sum

DIM = 4
COLUMNS = torch.arange(3).expand(2, 3)
PADDING = torch.tensor([[False, False, False], [False, True, True]])


def twins(make):
    """The plain module and the one with the kernel, in double precision, with the same weights."""
    plain, kernel = (make(plain).double() for plain in (True, False))
    for i, parameter in enumerate(plain.parameters()):
        torch.nn.init.normal_(parameter, std=0.5, generator=torch.Generator().manual_seed(i))
    kernel.load_state_dict(plain.state_dict())
    return plain, kernel


def random(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_()


def assert_alike(run, plain, kernel, *inputs):
    """All results, and the gradients of a random combination of them for all inputs and weights."""
    gradients = []
    results = [run(module, *inputs) for module in (plain, kernel)]
    for module, found in zip((plain, kernel), results, strict=True):
        loss = sum((result * random(*result.shape, seed=7)).sum() for result in found)
        gradients.append(torch.autograd.grad(loss, [*inputs, *module.parameters()]))
    for one, other in (*zip(*results, strict=True), *zip(*gradients, strict=True)):
        assert one.abs().sum() > 0
        assert torch.allclose(one, other, rtol=0, atol=1e-11)


def test_layer():
    plain, kernel = twins(lambda plain: GRULayer([3, 2], DIM, plain))
    assert_alike(lambda m, x, y: [m([x, y])], plain, kernel, random(4, 2, 3), random(4, 2, 2, seed=1))


def test_layers_that_run_together():
    """As the two directions of an encoder do on CUDA: they share the operations of a step and nothing else."""
    plain, kernel = twins(lambda plain: torch.nn.ModuleList(GRULayer([3], DIM, plain) for _ in range(2)))

    def run(layers, *inputs):
        if layers[0].plain:
            return [layer([x]) for layer, x in zip(layers, inputs, strict=True)]
        return run_together(list(layers), list(inputs))

    assert_alike(run, plain, kernel, random(4, 2, 3), random(4, 2, 3, seed=1))


@pytest.mark.parametrize("largest", [recurrent_kernels.LARGEST, 1], ids=["at once", "sentence by sentence"])
@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("groups", [[[5], [2]], [[5, 2]], []], ids=["one after the other", "side by side", "none"])
def test_conditional_gru(groups, beam, largest, monkeypatch):
    """States, contexts and attention weights, through memories of different width, with padding."""
    monkeypatch.setattr(recurrent_kernels, "LARGEST", largest)
    plain, kernel = twins(lambda plain: ConditionalGRU(3, DIM, groups, plain=plain))
    memories = [random(2, 3, width, seed=width) for group in groups for width in group]

    def run(module, x, state, *memories):
        projected = module.project([Memory(memory, PADDING, COLUMNS) for memory in memories])
        states, contexts, weights = module(x, state, projected)
        return states, *contexts, *weights

    assert_alike(run, plain, kernel, random(3, 2 * beam, 3), random(2 * beam, DIM, seed=1), *memories)


def test_a_weight_changed_between_forward_and_backward_is_noticed():
    layer = GRULayer([3], DIM).double()
    states = layer([random(4, 2, 3)])
    with torch.no_grad():
        layer.cells[0].recurrent.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        states.sum().backward()


@pytest.mark.parametrize("result", [0, 1], ids=["states", "weights"])
def test_a_result_changed_between_forward_and_backward_is_noticed(result):
    """The backward pass reads the tensors that the forward pass returned."""
    results = chain_with_a_memory(torch.float64, PADDING)
    loss = sum(found.sum() for found in results)
    results[result].detach().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_sentence_without_words_gives_numbers(dtype):
    """A row that consists of padding alone gives no NaN, and the other row reads no padding."""
    padding = torch.tensor([[True, True, True], [False, False, True]])
    states, weights = chain_with_a_memory(dtype, padding)
    (states.float().sum() + weights.float().square().sum()).backward()
    assert states.isfinite().all() and weights.isfinite().all()
    assert not weights[:, 1, :, 2].any()


def chain_with_a_memory(dtype, padding):
    """States (T, R, d) and attention weights (T, S, 1, n) of a GRU that reads a memory."""
    layer = ConditionalGRU(3, DIM, [[2]]).to(dtype)
    (attention,) = layer.attentions
    (memory,) = layer.project([Memory(random(2, 3, 2).detach().to(dtype), padding, COLUMNS)])
    reader = AdditiveReader(attention.query.weight, attention.energy, memory.keys, memory.gates, padding)
    states, [weights] = run_chain([Link(layer.cells[1].recurrent, readers=(reader,))], 3, random(2, DIM).to(dtype))
    return states, weights


def test_the_graph_is_run_twice_for_two_losses():
    """A backward pass leaves nothing behind for the next one."""
    layer, x = GRULayer([3], DIM).double(), random(4, 2, 3)
    states = layer([x])
    first, again = (torch.autograd.grad(states.sum(), x, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, again)


@pytest.mark.parametrize(
    ("dtype", "error"), [(torch.float64, 1e-15), (torch.float32, 3e-7), (torch.bfloat16, 4e-3), (torch.float16, 5e-4)]
)
def test_tanh(dtype, error):
    """In place, at 0, at the ends and for small numbers, too."""
    x = torch.cat([torch.linspace(-12, 12, 4001), torch.tensor([0.0, 1e-3, -1e4, 1e4])]).to(dtype)
    expected = x.double().tanh()
    assert (tanh_of_sum(torch.zeros_like(x[:1]), x).double() - expected).abs().max() < error
    assert (tanh_of_sum(x, torch.zeros_like(x)).double() - expected).abs().max() < error
    assert tanh_(x) is x and (x.double() - expected).abs().max() < error
