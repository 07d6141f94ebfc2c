"""Additive attention inside a chain of GRUs, differentiated by hand: the kernel of
:mod:`~lwc_fairseq.modules.additive_attention`.

    α_i = softmax_i(v · tanh(W s + U h_i)),   a = Σ_i α_i h_i

Letters: S sentences, R = S · beam rows that read, T steps, n tokens of the memory, d width of the state and of the
attention.
"""

import torch
from torch import Tensor

from ..attention_memory import ProjectedMemory
from .tanh import tanh_

LARGEST = 2**22
"""Maximum number of elements of a temporary tensor on the CPU. glibc returns blocks of more than 32 MiB to the system
and requests them again, page by page, which takes longer than computing what they hold."""


class AdditiveReader:
    """A :class:`~.gru_chain.Reader`: what a state reads is the context's contribution to the gates of a GRU.

    `beam` consecutive rows read the memory of one sentence without a copy for each. The backward loop computes the
    tanh again instead of keeping it, since it is by far the largest tensor: (S, beam, n, d) in each step.

    Args:
        query: W, (d, d).
        energy: v, (d,).
        memory: with `gates`.
    """

    def __init__(self, query: Tensor, energy: Tensor, memory: ProjectedMemory):
        self.keys, self.values = memory.keys, memory.gates
        self.query, self.energy = query.to(self.keys.dtype), energy.to(self.keys.dtype)
        self.padding_mask = memory.padding_mask[:, None]
        self.tensors = (self.query, self.energy, self.keys, self.values)

    def begin(self, steps: int, states: Tensor) -> None:
        self.states = states
        self.queries = [None] * steps
        self.alphas = [None] * steps

    def _scores(self, query: Tensor) -> Tensor:
        """(S, beam, n) of queries (S, beam, 1, d), some sentences at a time."""
        sentences = len(query)
        if not query.is_cuda:
            sentences = max(1, LARGEST * sentences // (query.size(1) * self.keys.numel()))
        parts = zip(query.split(sentences), self.keys.split(sentences), strict=True)
        return torch.cat([additive_tanh(*part) @ self.energy for part in parts])

    def read(self, step: int, state: Tensor) -> Tensor:
        sentences, _, dim = self.keys.shape
        self.queries[step] = query = (state @ self.query.T).view(sentences, -1, 1, dim)
        scores = self._scores(query).masked_fill_(self.padding_mask, torch.finfo(state.dtype).min)
        self.alphas[step] = alpha = scores.softmax(-1)
        return torch.bmm(alpha, self.values).flatten(0, 1)

    def weights(self) -> Tensor:
        """(T, S, beam, n)."""
        return torch.stack(self.alphas)

    def begin_backward(self, grad_weights: Tensor) -> None:
        self.grad_weights = grad_weights
        self.grad_queries = torch.empty_like(self.states)
        self.grad_energy = torch.zeros_like(self.energy)
        # of Σ_t ds · (1 - tanh²), the gradient of the keys without the factor v, both terms apart
        self.grad_scores = torch.zeros_like(self.keys[..., 0])
        self.grad_scores_tanh2 = torch.zeros_like(self.keys)

    def read_backward(self, step: int, grad_gates: Tensor) -> Tensor:
        sentences, tokens, dim = self.keys.shape
        alpha, query = self.alphas[step], self.queries[step]
        grad_read = grad_gates.view(sentences, -1, grad_gates.size(-1))
        grad_alpha = torch.baddbmm(self.grad_weights[step], grad_read, self.values.transpose(1, 2))
        grad_alpha -= (alpha * grad_alpha).sum(-1, keepdim=True)
        grad_score = grad_alpha.mul_(alpha)  # (S, beam, n)

        tanh = additive_tanh(query, self.keys)
        self.grad_energy += grad_score.view(-1) @ tanh.view(-1, dim)
        tanh2 = tanh.square_()
        self.grad_scores += grad_score.sum(1)
        for row in range(grad_score.size(1)):
            self.grad_scores_tanh2.addcmul_(grad_score[:, row, :, None], tanh2[:, row])
        # v ∘ Σ_i ds_i (1 - tanh_i²), where the ds of a softmax sum to zero
        summed = torch.bmm(grad_score.view(-1, 1, tokens), tanh2.view(-1, tokens, dim)).squeeze(1)
        torch.mul(summed, -self.energy, out=self.grad_queries[step])
        return self.grad_queries[step] @ self.query

    def gradients(self, grad_gates: Tensor) -> tuple[Tensor, ...]:
        steps, sentences, beam, _ = self.grad_weights.shape
        grad_query = self.grad_queries.flatten(0, 1).T @ self.states.flatten(0, 1)
        grad_keys = (self.grad_scores[..., None] - self.grad_scores_tanh2) * self.energy
        alphas = self.weights().permute(1, 3, 0, 2).reshape(sentences, -1, steps * beam)
        reads = grad_gates.view(steps, sentences, beam, -1).transpose(0, 1).reshape(sentences, steps * beam, -1)
        return grad_query, self.grad_energy, grad_keys, torch.bmm(alphas, reads)


def additive_tanh(query: Tensor, keys: Tensor) -> Tensor:
    """tanh(W s + U h_i), (S, beam, n, d), of queries (S, beam, 1, d) and keys (S, n, d)."""
    return tanh_(query + keys[:, None])
