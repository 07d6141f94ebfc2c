"""Additive attention: Bahdanau et al., *Neural Machine Translation by Jointly Learning to Align and Translate* (2015).

    α_i = softmax_i(v · tanh(W s + U h_i)),   a = Σ_i α_i h_i

is eq. 9 of Zhang et al., *Neural Machine Translation with Deep Attention* (2018), whose exp inside the softmax means
the usual softmax of the scores. U h is computed once a memory, and so is the product of h with the input weights of the
GRU that reads: what the loop sums up are contributions to its gates, of width 3d.

Letters: S sentences, R = S · beam rows that read, T steps, n tokens of the memory, D its width, d the width of the
state and of the attention. True in a padding mask means padding.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .activation import tanh_
from .attention_memory import InputMap, Memory, ProjectedMemory, sum_up

LARGEST = 2**22
"""Entries of a tensor on a CPU that is made in every step. Of more than 32 MiB, C libraries give the memory back to the
system and take it anew, page by page, which costs more than to compute what is in it."""


class AdditiveAttention(nn.Module):
    """The weights of additive attention: W (`query`), U (`key`) and v (`energy`).

    Args:
        memory_dim: D.
        dim: d.
    """

    def __init__(self, memory_dim: int, dim: int):
        super().__init__()
        self.context_dim = memory_dim
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(memory_dim, dim, bias=False)
        self.energy = nn.Parameter(torch.randn(dim) / dim**0.5)

    def project(self, memory: Memory, gates: InputMap) -> ProjectedMemory:
        """A memory made ready to be read; `gates` are the input weights of the GRU that reads."""
        return ProjectedMemory(*memory, keys=self.key(memory.states), values=F.linear(memory.states, *gates))

    def reader(self, memory: ProjectedMemory, gates: InputMap) -> "AdditiveReader":
        """For one loop in which states read from the memory. (`gates` is part of its values already.)"""
        dtype = memory.keys.dtype
        return AdditiveReader(self.query.weight.to(dtype), self.energy.to(dtype), memory)

    def contexts(self, weights: Tensor, memory: ProjectedMemory) -> Tensor:
        """a of all steps, (R, T, D), from the reader's weights."""
        return sum_up(weights, memory.states)

    @staticmethod
    def alignments(weights: Tensor) -> Tensor:
        """α of all steps, (R, T, n), from the reader's weights."""
        return weights.permute(1, 2, 0, 3).flatten(0, 1)


class AdditiveReader:
    """Additive attention within a loop, and its derivative; a :class:`~.gru.Reader`.

    `beam` consecutive rows read the memory of one sentence, which is not copied for them. The tanh, by far the largest
    tensor here, is not kept for the backward loop but computed anew.
    """

    def __init__(self, query: Tensor, energy: Tensor, memory: ProjectedMemory):
        self.query, self.energy, self.keys, self.values = query, energy, memory.keys, memory.values
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
