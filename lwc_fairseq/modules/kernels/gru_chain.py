"""A chain of GRUs over time, differentiated by hand: the kernel of :mod:`~lwc_fairseq.modules.gru` and
:mod:`~lwc_fairseq.modules.conditional_gru`.

In each step the state passes through a chain of GRUs. What enters a GRU is known before the loop (a word, a state of
the layer below), or the state reads it from a memory (attention). Input products leave the loop: W x is computed for
all time steps at once, and W Σ_i α_i h_i = Σ_i α_i W h_i, so W h is computed once for a memory.

The backward loop holds only pointwise operations and the products that carry the gradient of the state. The gradient of
a weight is one product over all steps, after the loop. Autograd would keep each step's intermediate tensors and add up
each weight's gradient step by step.

Letters: T steps, R rows (sentences, or hypotheses in decoding), d width of the state.
"""

from typing import Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .tanh import tanh_


class Reader(Protocol):
    """Attention inside a chain: lets a state read from a memory. One object serves one loop."""

    tensors: tuple[Tensor, ...]  # what gradients flow to

    def begin(self, steps: int, states: Tensor) -> None:
        """Before the loop; `states` (T, R, d) is where the states that will query are being kept."""

    def read(self, step: int, state: Tensor) -> Tensor:
        """What the state (R, d) reads, as an input to the gates (R, 3d)."""

    def weights(self) -> Tensor:
        """The attention weights of all steps, T first."""

    def begin_backward(self, grad_weights: Tensor) -> None: ...

    def read_backward(self, step: int, grad_gates: Tensor) -> Tensor:
        """From the gradient of what was read (R, 3d) to that of the state (R, d)."""

    def gradients(self, grad_gates: Tensor) -> tuple[Tensor, ...]:
        """After the backward loop: the gradients of `tensors`, given those of all that was read (T, R, 3d)."""


class Link:
    """One GRU of a chain, for one loop over time.

    Args:
        recurrent: U, (3d, d).
        inputs: W x + b of all steps, (T, R, 3d); None if the GRU's whole input is read from memories.
        readers: attention to memories, whose contributions to the gates are added.
    """

    def __init__(self, recurrent: Tensor, inputs: Tensor | None = None, readers: tuple[Reader, ...] = ()):
        self.inputs = inputs
        self.readers = readers
        # Under autocast the inputs have half precision and the weights single.
        dtype = readers[0].tensors[0].dtype if inputs is None else inputs.dtype
        self.recurrent = recurrent.to(dtype)
        own = (self.recurrent,) if inputs is None else (self.recurrent, inputs)
        self.tensors = own + tuple(tensor for reader in readers for tensor in reader.tensors)

    def begin(self, steps: int, state: Tensor) -> None:
        rows, dim = state.shape
        self.states = state.new_empty(steps, rows, dim)
        self.reset_states = torch.empty_like(self.states)
        self.candidates = torch.empty_like(self.states)
        self.gates = state.new_empty(steps, rows, 2 * dim)
        for reader in self.readers:
            reader.begin(steps, self.states)

    def step(self, t: int, state: Tensor) -> Tensor:
        """GRU(state, input of step t), (R, d)."""
        dim = state.size(1)
        self.states[t] = state
        contributions = [reader.read(t, state) for reader in self.readers]
        given = sum(contributions[1:], contributions[0]) if self.inputs is None else sum(contributions, self.inputs[t])
        gates, reset_state, candidate = self.gates[t], self.reset_states[t], self.candidates[t]
        torch.addmm(given[:, : 2 * dim], state, self.recurrent[: 2 * dim].T, out=gates).sigmoid_()
        update, reset = gates.chunk(2, dim=1)
        torch.mul(reset, state, out=reset_state)
        tanh_(torch.addmm(given[:, 2 * dim :], reset_state, self.recurrent[2 * dim :].T, out=candidate))
        return torch.lerp(state, candidate, update)

    def begin_backward(self, grad_weights: tuple[Tensor, ...]) -> None:
        steps, rows, dim = self.states.shape
        self.grad_given = self.states.new_empty(steps, rows, 3 * dim)
        for reader, grad in zip(self.readers, grad_weights, strict=True):
            reader.begin_backward(grad)

    def step_backward(self, t: int, grad: Tensor) -> Tensor:
        """From the gradient of the step's result to that of the state it began with."""
        dim = grad.size(1)
        state, candidate, grad_given = self.states[t], self.candidates[t], self.grad_given[t]
        update, reset = self.gates[t].chunk(2, dim=1)
        grad_candidate = torch.ops.aten.tanh_backward(grad * update, candidate)
        grad_reset_state = grad_candidate @ self.recurrent[2 * dim :]
        grad_given[:, 2 * dim :] = grad_candidate
        grad_given[:, :dim] = torch.ops.aten.sigmoid_backward(grad * (candidate - state), update)
        grad_given[:, dim : 2 * dim] = torch.ops.aten.sigmoid_backward(grad_reset_state * state, reset)
        grad_state = torch.addcmul(grad - grad * update, grad_reset_state, reset)
        grad_state.addmm_(grad_given[:, : 2 * dim], self.recurrent[: 2 * dim])
        for reader in self.readers:
            grad_state += reader.read_backward(t, grad_given)
        return grad_state

    def gradients(self) -> tuple[Tensor, ...]:
        """The gradients of `tensors`."""
        dim = self.states.size(2)
        grad_given = self.grad_given.flatten(0, 1)
        grad_recurrent = torch.empty_like(self.recurrent)
        torch.mm(grad_given[:, : 2 * dim].T, self.states.flatten(0, 1), out=grad_recurrent[: 2 * dim])
        torch.mm(grad_given[:, 2 * dim :].T, self.reset_states.flatten(0, 1), out=grad_recurrent[2 * dim :])
        own = (grad_recurrent,) if self.inputs is None else (grad_recurrent, self.grad_given)
        return own + tuple(grad for reader in self.readers for grad in reader.gradients(self.grad_given))


class _Chain(torch.autograd.Function):
    """The loop, differentiated by hand. `tensors` are those of the links, named so that autograd knows of them."""

    @staticmethod
    def forward(ctx, links: list[Link], steps: int, state: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.links = links
        ctx.save_for_backward(*tensors)  # the links hold them; autograd should know that they must not change
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
        _ = ctx.saved_tensors  # raises if one of them has changed, or if the graph is gone
        remaining = iter(grad_weights)
        for link in ctx.links:
            link.begin_backward(tuple(next(remaining) for _ in link.readers))
        grad = torch.zeros_like(grad_results[0])
        for t in reversed(range(len(grad_results))):
            grad = grad + grad_results[t]
            for link in reversed(ctx.links):
                grad = link.step_backward(t, grad)
        gradients = [gradient for link in ctx.links for gradient in link.gradients()]
        for part in [*ctx.links, *(reader for link in ctx.links for reader in link.readers)]:
            _forget_gradients(part)
        return None, None, grad, *gradients


def _forget_gradients(part: Link | Reader) -> None:
    """Free what a backward pass has gathered, which would else stay until the loss is gone."""
    for name in [name for name in vars(part) if name.startswith("grad_")]:
        delattr(part, name)


def run_chain(links: list[Link], steps: int, state: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Run a chain of GRUs over time: the state goes through all links, and so on into the next step.

    Args:
        links: first to last within a step.
        steps: T.
        state: (R, d) before the first step.

    Returns:
        The state after the last link of each step (T, R, d), and the attention weights of all readers, in order.
    """
    state = state.to(links[0].recurrent.dtype)
    with torch.autocast(state.device.type, enabled=False):  # the links have made all dtypes one
        results, *weights = _Chain.apply(links, steps, state, *(tensor for link in links for tensor in link.tensors))
    return results, weights
