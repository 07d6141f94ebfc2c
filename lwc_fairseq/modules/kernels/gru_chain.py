"""A chain of GRUs over time, with a hand-written backward pass: the kernel of :mod:`~lwc_fairseq.modules.gru` and
:mod:`~lwc_fairseq.modules.conditional_gru`.

In each step, the state passes through a chain of GRUs. The input x of a GRU is either known before the loop (a word, a
state of the layer below) or a context that the state reads from a memory (attention). The loop contains no input
products: W x is computed for all time steps at once, and because W Σ_i α_i h_i = Σ_i α_i W h_i, W h is computed once
per memory.

The backward loop contains only pointwise operations and the products for the gradient of the state. The gradient of a
weight is one product over all steps, after the loop. Autograd would store each step's intermediate tensors and
accumulate each weight's gradient step by step.

Letters: T steps, R rows (sentences, or hypotheses in decoding), d state width.
"""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .additive_reader import AdditiveReader, AdditiveReaderGradients
from .tanh import tanh_


class Link:
    """One GRU of a chain, for one loop over time.

    Args:
        recurrent: U, (3d, d).
        inputs: W x + b of all steps, (T, R, 3d), or None if the GRU's whole input comes from memories.
        readers: attentions to memories. The gates add what they read.
    """

    def __init__(self, recurrent: Tensor, inputs: Tensor | None = None, readers: tuple[AdditiveReader, ...] = ()):
        self.inputs = inputs
        self.readers = readers
        # Under autocast the inputs have half precision and the weights single.
        dtype = readers[0].keys.dtype if inputs is None else inputs.dtype
        self.recurrent = recurrent.to(dtype)
        own = (self.recurrent,) if inputs is None else (self.recurrent, inputs)
        self.tensors = own + tuple(tensor for reader in readers for tensor in reader.tensors)
        """The tensors that get gradients."""

    def begin(self, steps: int, state: Tensor) -> None:
        """Allocate the tensors that the forward loop stores for the backward loop."""
        rows, dim = state.shape
        self.states = state.new_empty(steps, rows, dim)  # before each step
        self.reset_states = torch.empty_like(self.states)
        self.candidates = torch.empty_like(self.states)
        self.gates = state.new_empty(steps, rows, 2 * dim)

    def step(self, t: int, state: Tensor) -> Tensor:
        """Compute GRU(state, input of step t), (R, d)."""
        dim = state.size(1)
        self.states[t] = state
        contributions = [reader.read(state) for reader in self.readers]
        given = sum(contributions[1:], contributions[0]) if self.inputs is None else sum(contributions, self.inputs[t])
        gates, reset_state, candidate = self.gates[t], self.reset_states[t], self.candidates[t]
        torch.addmm(given[:, : 2 * dim], state, self.recurrent[: 2 * dim].T, out=gates).sigmoid_()
        update, reset = gates.chunk(2, dim=1)
        torch.mul(reset, state, out=reset_state)
        tanh_(torch.addmm(given[:, 2 * dim :], reset_state, self.recurrent[2 * dim :].T, out=candidate))
        return torch.lerp(state, candidate, update)


class LinkGradients:
    """The backward loop of a link, from the last step to the first.

    Args:
        grad_weights: the gradient of each reader's attention weights.
    """

    def __init__(self, link: Link, grad_weights: list[Tensor]):
        self.link = link
        steps, rows, dim = link.states.shape
        self.given = link.states.new_empty(steps, rows, 3 * dim)  # gradient of W x + b
        self.readers = [
            AdditiveReaderGradients(reader, grad, link.states)
            for reader, grad in zip(link.readers, grad_weights, strict=True)
        ]

    def step(self, t: int, grad: Tensor) -> Tensor:
        """Compute the gradient of the state before step t from the gradient of the step's result."""
        link, dim = self.link, grad.size(1)
        state, candidate, given = link.states[t], link.candidates[t], self.given[t]
        update, reset = link.gates[t].chunk(2, dim=1)
        grad_candidate = torch.ops.aten.tanh_backward(grad * update, candidate)
        grad_reset_state = grad_candidate @ link.recurrent[2 * dim :]
        given[:, 2 * dim :] = grad_candidate
        given[:, :dim] = torch.ops.aten.sigmoid_backward(grad * (candidate - state), update)
        given[:, dim : 2 * dim] = torch.ops.aten.sigmoid_backward(grad_reset_state * state, reset)
        grad_state = torch.addcmul(grad - grad * update, grad_reset_state, reset)
        grad_state.addmm_(given[:, : 2 * dim], link.recurrent[: 2 * dim])
        for reader in self.readers:
            grad_state += reader.read(t, given)
        return grad_state

    def of_tensors(self) -> tuple[Tensor, ...]:
        """Return the gradients of the link's `tensors`."""
        link, dim = self.link, self.link.states.size(2)
        given = self.given.flatten(0, 1)
        grad_recurrent = torch.empty_like(link.recurrent)
        torch.mm(given[:, : 2 * dim].T, link.states.flatten(0, 1), out=grad_recurrent[: 2 * dim])
        torch.mm(given[:, 2 * dim :].T, link.reset_states.flatten(0, 1), out=grad_recurrent[2 * dim :])
        own = (grad_recurrent,) if link.inputs is None else (grad_recurrent, self.given)
        return own + tuple(grad for reader in self.readers for grad in reader.of_tensors(self.given))


class _Chain(torch.autograd.Function):
    """The loop as one autograd operation. `tensors` are the tensors of all links."""

    @staticmethod
    def forward(ctx, links: list[Link], steps: int, state: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.links = links
        ctx.save_for_backward(*tensors)  # lets autograd detect in-place changes; the links hold the tensors
        results = state.new_empty(steps, *state.shape)
        for link in links:
            link.begin(steps, state)
        for t in range(steps):
            for link in links:
                state = link.step(t, state)
            results[t] = state
        return results, *(reader.weights() for link in links for reader in link.readers)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_results: Tensor, *grad_weights: Tensor) -> tuple[Tensor | None, ...]:
        _ = ctx.saved_tensors  # raises if a tensor has changed or the graph is freed
        remaining = iter(grad_weights)
        links = [LinkGradients(link, [next(remaining) for _ in link.readers]) for link in ctx.links]
        grad = torch.zeros_like(grad_results[0])
        for t in reversed(range(len(grad_results))):
            grad = grad + grad_results[t]
            for link in reversed(links):
                grad = link.step(t, grad)
        return None, None, grad, *(gradient for link in links for gradient in link.of_tensors())


def run_chain(links: list[Link], steps: int, state: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Run a chain of GRUs over time. In each step, the state passes through all links; the next step continues with it.

    Args:
        links: the GRUs in the order of the chain.
        steps: T.
        state: the state before the first step, (R, d).

    Returns:
        The state after the last link of each step (T, R, d), and the attention weights of all readers in the order of
        the chain.
    """
    state = state.to(links[0].recurrent.dtype)
    with torch.autocast(state.device.type, enabled=False):  # the links have one dtype
        results, *weights = _Chain.apply(links, steps, state, *(tensor for link in links for tensor in link.tensors))
    return results, weights
