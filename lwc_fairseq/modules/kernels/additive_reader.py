"""Additive attention inside a chain of GRUs, with a hand-written backward pass: the kernel of
:mod:`~lwc_fairseq.modules.additive_attention`.

    α_i = softmax_i(v · tanh(W s + U h_i)),   read = Σ_i α_i (V h_i)

V h_i (`gates` of the memory) is the contribution of h_i to the gates of the GRU that takes the context. Because V Σ_i
α_i h_i = Σ_i α_i (V h_i), the loop needs no product with V.

Letters: S sentences, R = S · beam rows (one state per hypothesis), T steps, n memory positions, d width of the state
and of the attention.
"""

import torch
from torch import Tensor

from ..attention_memory import ProjectedMemory
from .tanh import tanh_

LARGEST = 2**22
"""Maximum number of elements of a temporary tensor on the CPU. glibc returns blocks of more than 32 MiB to the system
and requests them again, page by page, which takes longer than the computation itself."""


class AdditiveReader:
    """Attends from the states of one loop over time to a memory.

    Each `beam` consecutive rows share the memory of one sentence, without copies.

    Args:
        query: W, (d, d).
        energy: v, (d,).
        memory: a projected memory with `gates`.
    """

    def __init__(self, query: Tensor, energy: Tensor, memory: ProjectedMemory):
        self.keys, self.values = memory.keys, memory.gates
        self.query, self.energy = query.to(self.keys.dtype), energy.to(self.keys.dtype)
        self.padding_mask = memory.padding_mask[:, None]
        self.tensors = (self.query, self.energy, self.keys, self.values)
        """The tensors that get gradients."""
        self.queries: list[Tensor] = []  # one per step, (S, beam, 1, d)
        self.alphas: list[Tensor] = []  # one per step, (S, beam, n)

    def read(self, state: Tensor) -> Tensor:
        """Return what the states (R, d) of the next step read, (R, 3d)."""
        sentences, _, dim = self.keys.shape
        query = (state @ self.query.T).view(sentences, -1, 1, dim)
        scores = self._scores(query).masked_fill_(self.padding_mask, torch.finfo(state.dtype).min)
        alpha = scores.softmax(-1)
        self.queries.append(query)
        self.alphas.append(alpha)
        return torch.bmm(alpha, self.values).flatten(0, 1)

    def _scores(self, query: Tensor) -> Tensor:
        """Compute the scores (S, beam, n) of queries (S, beam, 1, d), a few sentences at a time."""
        sentences = len(query)
        if not query.is_cuda:
            sentences = max(1, LARGEST * sentences // (query.size(1) * self.keys.numel()))
        parts = zip(query.split(sentences), self.keys.split(sentences), strict=True)
        return torch.cat([additive_tanh(*part) @ self.energy for part in parts])

    def weights(self) -> Tensor:
        """Return α of all steps, (T, S, beam, n)."""
        return torch.stack(self.alphas)


class AdditiveReaderGradients:
    """The backward loop of a reader, from the last step to the first.

    It recomputes the tanh instead of storing it, because a tensor (S, beam, n, d) per step would be by far the largest.

    Args:
        grad_weights: the gradient of the reader's `weights()`.
        states: the states that attend, (T, R, d).
    """

    def __init__(self, reader: AdditiveReader, grad_weights: Tensor, states: Tensor):
        self.reader = reader
        self.grad_weights = grad_weights
        self.states = states
        self.queries = torch.empty_like(states)
        self.energy = torch.zeros_like(reader.energy)
        # The gradient of the keys without the factor v is Σ_t ds · (1 - tanh²). Its two terms are summed separately.
        self.scores = torch.zeros_like(reader.keys[..., 0])
        self.scores_tanh2 = torch.zeros_like(reader.keys)

    def read(self, step: int, grad_read: Tensor) -> Tensor:
        """Compute the gradient of the states (R, d) from the gradient of what they read (R, 3d)."""
        reader = self.reader
        sentences, tokens, dim = reader.keys.shape
        alpha, query = reader.alphas[step], reader.queries[step]
        by_sentence = grad_read.view(sentences, -1, grad_read.size(-1))
        grad_alpha = torch.baddbmm(self.grad_weights[step], by_sentence, reader.values.transpose(1, 2))
        grad_alpha -= (alpha * grad_alpha).sum(-1, keepdim=True)
        grad_score = grad_alpha.mul_(alpha)  # (S, beam, n)

        tanh = additive_tanh(query, reader.keys)
        self.energy += grad_score.view(-1) @ tanh.view(-1, dim)
        tanh2 = tanh.square_()
        self.scores += grad_score.sum(1)
        for row in range(grad_score.size(1)):
            self.scores_tanh2.addcmul_(grad_score[:, row, :, None], tanh2[:, row])
        # v ∘ Σ_i ds_i (1 - tanh_i²) = -v ∘ Σ_i ds_i tanh_i², because the ds_i of a softmax sum to zero
        summed = torch.bmm(grad_score.view(-1, 1, tokens), tanh2.view(-1, tokens, dim)).squeeze(1)
        torch.mul(summed, -reader.energy, out=self.queries[step])
        return self.queries[step] @ reader.query

    def of_tensors(self, grad_reads: Tensor) -> tuple[Tensor, ...]:
        """Return the gradients of the reader's `tensors`, given the gradient of what all steps read, (T, R, 3d)."""
        steps, sentences, beam, _ = self.grad_weights.shape
        grad_query = self.queries.flatten(0, 1).T @ self.states.flatten(0, 1)
        grad_keys = (self.scores[..., None] - self.scores_tanh2) * self.reader.energy
        alphas = self.reader.weights().permute(1, 3, 0, 2).reshape(sentences, -1, steps * beam)
        reads = grad_reads.view(steps, sentences, beam, -1).transpose(0, 1).reshape(sentences, steps * beam, -1)
        return grad_query, self.energy, grad_keys, torch.bmm(alphas, reads)


def additive_tanh(query: Tensor, keys: Tensor) -> Tensor:
    """Compute tanh(W s + U h_i), (S, beam, n, d), from queries (S, beam, 1, d) and keys (S, n, d)."""
    return tanh_(query + keys[:, None])
