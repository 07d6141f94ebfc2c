"""Multi-head scaled dot-product attention of a recurrent decoder: Vaswani et al., *Attention Is All You Need* (2017).

    head_p = softmax(Q_p s (K_p h)ᵀ / √(d/H)) V_p h,   a = O [head_1; ...; head_H]

in place of additive attention, for MHeadNMT of Zhang et al., *Neural Machine Translation with Deep Attention* (2018).
fairseq's and torch's modules of this name attend for all steps at once; here the query is a state that the attention
before it has made, so it has to happen step by step, within the chain of GRUs (:mod:`~.gru`).

Letters: S sentences, R = S · beam rows that read, T steps, n tokens of the memory, D its width, d the width of the
state and of the attention, H heads.
"""

import math

import torch
from torch import Tensor, nn

from .attention_memory import InputMap, Memory, ProjectedMemory, sum_up


class MultiHeadAttention(nn.Module):
    """The weights Q, K, V and O.

    Args:
        memory_dim: D.
        dim: d.
        heads: H, a divisor of d.
    """

    def __init__(self, memory_dim: int, dim: int, heads: int):
        super().__init__()
        self.context_dim = dim
        self.heads = heads
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(memory_dim, dim, bias=False)
        self.value = nn.Linear(memory_dim, dim, bias=False)
        self.output = nn.Linear(dim, dim, bias=False)

    def project(self, memory: Memory, gates: InputMap) -> ProjectedMemory:
        """A memory made ready to be read. (`gates`, of the GRU that reads, is for the reader.)"""
        keys, values = (self._split(linear(memory.states)) for linear in (self.key, self.value))
        return ProjectedMemory(*memory, keys=keys, values=values)

    def _split(self, x: Tensor) -> Tensor:
        """(S, n, d) to (S, H, n, d/H)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2).contiguous()

    def reader(self, memory: ProjectedMemory, gates: InputMap) -> "MultiHeadReader":
        """For one loop in which states read from the memory, for a GRU with the input weights `gates`."""
        bias = gates.weight.new_zeros(len(gates.weight)) if gates.bias is None else gates.bias
        weights = self.query.weight, self.output.weight, gates.weight, bias
        return MultiHeadReader(*(weight.to(memory.keys.dtype) for weight in weights), memory)

    def contexts(self, weights: Tensor, memory: ProjectedMemory) -> Tensor:
        """a of all steps, (R, T, d), from the reader's weights."""
        heads = [sum_up(weights[:, :, p], memory.values[:, p]) for p in range(self.heads)]
        return self.output(torch.cat(heads, dim=-1))

    @staticmethod
    def alignments(weights: Tensor) -> Tensor:
        """The weights of all steps, averaged over the heads, (R, T, n)."""
        return weights.mean(2).permute(1, 2, 0, 3).flatten(0, 1)


class MultiHeadReader:
    """Multi-head attention within a loop, and its derivative; a :class:`~.gru.Reader`.

    `beam` consecutive rows read the memory of one sentence, which is not copied for them.

    Args:
        query: Q, (d, d).
        output: O, (d, d).
        gates: from contexts to the gates, (3d, d).
        bias: of the gates, (3d).
    """

    def __init__(self, query: Tensor, output: Tensor, gates: Tensor, bias: Tensor, memory: ProjectedMemory):
        self.query, self.output, self.gates, self.bias = query, output, gates, bias
        self.keys, self.values = memory.keys, memory.values
        self.padding_mask = memory.padding_mask[:, None, None]
        self.scale = 1 / math.sqrt(self.keys.size(-1))
        self.tensors = (self.query, self.output, self.gates, self.bias, self.keys, self.values)

    def begin(self, steps: int, states: Tensor) -> None:
        self.states = states
        self.queries = [None] * steps
        self.alphas = [None] * steps
        self.heads = torch.empty_like(states)  # results of the heads, concatenated
        self.contexts = torch.empty_like(states)

    def _split(self, rows: Tensor) -> Tensor:
        """(R, d) to (S, H, beam, d/H)."""
        sentences, heads, _, head_dim = self.keys.shape
        return rows.view(sentences, -1, heads, head_dim).transpose(1, 2)

    @staticmethod
    def _join(split: Tensor) -> Tensor:
        """(S, H, beam, d/H) to (R, d)."""
        return split.transpose(1, 2).flatten(2).flatten(0, 1)

    def read(self, step: int, state: Tensor) -> Tensor:
        self.queries[step] = query = self._split(state @ self.query.T) * self.scale
        scores = (query @ self.keys.transpose(2, 3)).masked_fill_(self.padding_mask, torch.finfo(state.dtype).min)
        self.alphas[step] = alpha = scores.softmax(-1)  # (S, H, beam, n)
        self.heads[step] = self._join(alpha @ self.values)
        torch.mm(self.heads[step], self.output.T, out=self.contexts[step])
        return torch.addmm(self.bias, self.contexts[step], self.gates.T)

    def weights(self) -> Tensor:
        """(T, S, H, beam, n)."""
        return torch.stack(self.alphas)

    def begin_backward(self, grad_weights: Tensor) -> None:
        self.grad_weights = grad_weights
        self.grad_queries = torch.empty_like(self.states)
        self.grad_contexts = torch.empty_like(self.states)
        self.grad_keys = torch.zeros_like(self.keys)
        self.grad_values = torch.zeros_like(self.values)

    def read_backward(self, step: int, grad_gates: Tensor) -> Tensor:
        alpha = self.alphas[step]
        torch.mm(grad_gates, self.gates, out=self.grad_contexts[step])
        grad_heads = self._split(self.grad_contexts[step] @ self.output)
        grad_alpha = grad_heads @ self.values.transpose(2, 3) + self.grad_weights[step]
        grad_scores = alpha * (grad_alpha - (alpha * grad_alpha).sum(-1, keepdim=True))
        self.grad_keys += grad_scores.transpose(2, 3) @ self.queries[step]
        self.grad_values += alpha.transpose(2, 3) @ grad_heads
        self.grad_queries[step] = self._join(grad_scores @ self.keys) * self.scale
        return self.grad_queries[step] @ self.query

    def gradients(self, grad_gates: Tensor) -> tuple[Tensor, ...]:
        grad_gates = grad_gates.flatten(0, 1)
        grad_query = self.grad_queries.flatten(0, 1).T @ self.states.flatten(0, 1)
        grad_output = self.grad_contexts.flatten(0, 1).T @ self.heads.flatten(0, 1)
        grad_weight = grad_gates.T @ self.contexts.flatten(0, 1)
        return grad_query, grad_output, grad_weight, grad_gates.sum(0), self.grad_keys, self.grad_values
