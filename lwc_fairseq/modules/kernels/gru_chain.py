"""A chain of GRUs over time, with a hand-written backward pass: the kernel of :mod:`~lwc_fairseq.modules.gru` and
:mod:`~lwc_fairseq.modules.conditional_gru`.

In each step, the state passes through a chain of GRUs. The input x of a GRU is either known before the loop (a word, a
state of the layer below) or a context that the state reads from a memory (attention). The loop contains no input
products: W x is computed for all time steps at once, and because W Σ_i α_i h_i = Σ_i α_i W h_i, W h is computed once
per memory.

The backward loop contains only what depends on the gradient of the state. All derivatives of gates and candidates are
computed for all time steps at once before the loop, and the gradients of the weights after it, as one product over all
steps. Autograd would store each step's intermediate tensors and accumulate each weight's gradient step by step.

On a GPU, a step takes as long as it takes to launch its operations. So the loops write their results where they are
needed next, without copies, and products add to what is already there.

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

    def begin(self, states: Tensor) -> None:
        """Allocate the tensors that the forward loop stores for the backward loop.

        Args:
            states: where the loop stores the state before each step, (T, R, d).
        """
        steps, rows, dim = states.shape
        self.states = states
        self.reset_states = torch.empty_like(states)
        # At first the input of each step, then [z; r; h̃].
        self.activations = states.new_empty(steps, rows, 3 * dim) if self.inputs is None else self.inputs.clone()
        self.gates, self.candidates = self.activations.split([2 * dim, dim], dim=-1)

    def step(self, t: int, out: Tensor) -> None:
        """Write GRU(state before step t, input of step t), (R, d), to `out`."""
        state, gates, candidate = self.states[t], self.gates[t], self.candidates[t]
        dim = state.size(1)
        for number, reader in enumerate(self.readers):
            reader.read(state, self.activations[t], beta=0 if number == 0 and self.inputs is None else 1)
        gates.addmm_(state, self.recurrent[: 2 * dim].T).sigmoid_()
        update, reset = gates.chunk(2, dim=1)
        torch.mul(reset, state, out=self.reset_states[t])
        tanh_(candidate.addmm_(self.reset_states[t], self.recurrent[2 * dim :].T))
        torch.lerp(state, candidate, update, out=out)


class LinkGradients:
    """The backward loop of a link, from the last step to the first.

    With δ, the gradient of h', the gradients of the inputs of a GRU's gates and candidate are

        δ_z = δ ∘ (h̃ - h) ∘ z (1 - z),   δ_h = δ ∘ z ∘ (1 - h̃²),   δ_r = (U_hᵀ δ_h) ∘ h ∘ r (1 - r)

    and that of h is δ ∘ (1 - z) + (U_hᵀ δ_h) ∘ r + U_zᵀ δ_z + U_rᵀ δ_r.

    Args:
        grad_weights: the gradient of each reader's attention weights.
    """

    def __init__(self, link: Link, grad_weights: list[Tensor]):
        self.link = link
        states, candidates = link.states, link.candidates
        steps, rows, dim = states.shape
        update, self.reset = link.gates.chunk(2, dim=-1)
        self.given = states.new_empty(steps, rows, 3, dim)  # gradient of W x + b: δ_z, δ_r, δ_h
        of_update = torch.ops.aten.sigmoid_backward(candidates - states, update)
        of_candidate = torch.ops.aten.tanh_backward(update, candidates)
        self.factors = torch.stack([of_update, of_candidate], dim=2)
        self.reset_factors = torch.ops.aten.sigmoid_backward(states, self.reset)
        self.kept = 1 - update
        self.readers = [
            AdditiveReaderGradients(reader, grad, states)
            for reader, grad in zip(link.readers, grad_weights, strict=True)
        ]

    def step(self, t: int, grad: Tensor, other: Tensor | None) -> Tensor:
        """Compute the gradient of the state before step t from the gradient of the step's result.

        Args:
            other: a gradient of the same state from elsewhere, which is added.
        """
        recurrent, dim, given = self.link.recurrent, grad.size(1), self.given[t]
        torch.mul(grad[:, None], self.factors[t], out=given[:, ::2])
        grad_reset_state = given[:, 2] @ recurrent[2 * dim :]
        torch.mul(grad_reset_state, self.reset_factors[t], out=given[:, 1])
        grad_state = grad * self.kept[t] if other is None else torch.addcmul(other, grad, self.kept[t])
        grad_state.addcmul_(grad_reset_state, self.reset[t])
        grad_state.addmm_(given[:, :2].flatten(1), recurrent[: 2 * dim])
        for reader in self.readers:
            reader.read(t, given.flatten(1), grad_state)
        return grad_state

    def of_tensors(self) -> tuple[Tensor, ...]:
        """Return the gradients of the link's `tensors`."""
        link, dim = self.link, self.link.states.size(2)
        by_step = self.given.flatten(2)
        given = by_step.flatten(0, 1)
        grad_recurrent = torch.empty_like(link.recurrent)
        torch.mm(given[:, : 2 * dim].T, link.states.flatten(0, 1), out=grad_recurrent[: 2 * dim])
        torch.mm(given[:, 2 * dim :].T, link.reset_states.flatten(0, 1), out=grad_recurrent[2 * dim :])
        own = (grad_recurrent,) if link.inputs is None else (grad_recurrent, by_step)
        return own + tuple(grad for reader in self.readers for grad in reader.of_tensors(by_step))


class _Chain(torch.autograd.Function):
    """The loop as one autograd operation. `tensors` are the tensors of all links."""

    @staticmethod
    def forward(ctx, links: list[Link], steps: int, state: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.links = links
        ctx.save_for_backward(*tensors)  # lets autograd detect in-place changes; the links hold the tensors
        buffers = [state.new_empty(steps, *state.shape) for _ in links[1:]]
        states = state.new_empty(steps + 1, *state.shape)  # before each step, and after the last one
        states[0] = state
        for link, before in zip(links, [states[:-1], *buffers], strict=True):
            link.begin(before)
        for t in range(steps):
            for link, out in zip(links, [*(before[t] for before in buffers), states[t + 1]], strict=True):
                link.step(t, out)
        return states[1:].clone(), *(reader.weights() for link in links for reader in link.readers)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_results: Tensor, *grad_weights: Tensor) -> tuple[Tensor | None, ...]:
        _ = ctx.saved_tensors  # raises if a tensor has changed or the graph is freed
        remaining = iter(grad_weights)
        links = [LinkGradients(link, [next(remaining) for _ in link.readers]) for link in ctx.links]
        grad = grad_results[-1]
        for t in reversed(range(len(grad_results))):
            for link in reversed(links[1:]):
                grad = link.step(t, grad, None)
            grad = links[0].step(t, grad, grad_results[t - 1] if t else None)
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
