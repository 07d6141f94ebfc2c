"""Conditional GRU: a recurrent decoder layer whose state attends to memories on its way through a step.

    s⁰_j = GRU(s_{j-1}, x_j)
    a^k_j = Att(s^{k-1}_j, H^k),  s^k_j = GRU(s^{k-1}_j, a^k_j)    for k = 1..K
    s_j = s^K_j

With K = 1 it is the decoder of the dl4mt tutorial (Cho, Firat and others, 2015), except for the place of the reset
gate. With more it is the decoder of DeepAtt (Zhang, Xiong, Su, 2018, eq. 6-8), with none a plain GRU. A GRU may also
take several contexts side by side, as the second one does in asynchronous bidirectional decoding.

Letters: S sentences, R = S · beam rows, T steps, n tokens of a memory, D its width, d the width of the state.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .additive_attention import AdditiveAttention
from .attention_memory import Memory, ProjectedMemory
from .gru import GRUCell
from .kernels.additive_reader import AdditiveReader
from .kernels.gru_chain import Link, run_chain
from .multihead_attention import MultiHeadAttention

Item = TypeVar("Item")


class ConditionalGRU(nn.Module):
    """The first GRU, and for each group of memories the attentions to them and the GRU that takes the contexts.

    Args:
        input_dim: width of x.
        dim: d.
        memory_dims: D of the memories, in groups: one state reads the memories of a group, and one GRU takes the
            contexts.
        heads: heads of multi-head attention; 0 is additive attention.
        plain: run the equations with autograd instead of the kernel, which computes the same faster. With several
            heads there is no kernel.
    """

    def __init__(self, input_dim: int, dim: int, memory_dims: list[list[int]], heads: int = 0, plain: bool = False):
        super().__init__()
        self.plain = plain or heads > 0
        self.group_sizes = [len(group) for group in memory_dims]
        self.attentions = nn.ModuleList(
            MultiHeadAttention(memory_dim, dim, heads) if heads else AdditiveAttention(memory_dim, dim)
            for group in memory_dims
            for memory_dim in group
        )
        context_dims = [sum(attention.context_dim for attention in group) for group in self._groups(self.attentions)]
        self.cells = nn.ModuleList(GRUCell(width, dim) for width in [input_dim, *context_dims])

    @property
    def context_dims(self) -> list[int]:
        """Widths of the contexts that it returns."""
        return [attention.context_dim for attention in self.attentions]

    def _groups(self, items: Sequence[Item]) -> list[list[Item]]:
        """One item for each attention, in their groups."""
        remaining = iter(items)
        return [list(islice(remaining, size)) for size in self.group_sizes]

    def project(self, memories: list[Memory]) -> list[ProjectedMemory]:
        """Prepare the memories, one for each attention; once a sentence."""
        projected = [attention.project(memory) for attention, memory in zip(self.attentions, memories, strict=True)]
        return projected if self.plain else self._with_gates(projected)

    def _with_gates(self, memories: list[ProjectedMemory]) -> list[ProjectedMemory]:
        """Add what the memories contribute to the gates: the input product of the GRU that reads them."""
        found = []
        for cell, group in zip(self.cells[1:], self._groups(memories), strict=True):
            weights = cell.input.weight.split([memory.values.size(-1) for memory in group], dim=1)
            biases = [cell.input.bias] + [None] * (len(group) - 1)
            for memory, weight, bias in zip(group, weights, biases, strict=True):
                found.append(replace(memory, gates=F.linear(memory.values, weight, bias)))
        return found

    def forward(
        self, inputs: Tensor, state: Tensor, memories: list[ProjectedMemory]
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Run T steps.

        Args:
            inputs: x, (T, R, input_dim).
            state: (R, d) before the first step.
            memories: one for each attention.

        Returns:
            States s (T, R, d); for each attention its contexts (R, T, D) (d with several heads) and its weights
            (R, T, n), averaged over the heads.
        """
        projected = self.cells[0].input(inputs)
        state = state.to(projected.dtype)  # half precision under autocast
        return (self._run if self.plain else self._run_kernel)(projected, state, memories)

    def _run(
        self, projected: Tensor, state: Tensor, memories: list[ProjectedMemory]
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """The equations, step by step."""
        reads = self._groups(list(zip(self.attentions, memories, strict=True)))
        states, contexts, weights = [], [], []
        for x in projected:
            state = self.cells[0](state, x)
            for cell, group in zip(self.cells[1:], reads, strict=True):
                found = [attention(state, memory) for attention, memory in group]
                state = cell(state, cell.input(torch.cat([context for context, _ in found], dim=-1)))
                contexts += [context for context, _ in found]
                weights += [alpha for _, alpha in found]
            states.append(state)
        count = len(self.attentions)
        by_attention = [[torch.stack(xs[k::count], dim=1) for k in range(count)] for xs in (contexts, weights)]
        return torch.stack(states), *by_attention

    def _run_kernel(
        self, projected: Tensor, state: Tensor, memories: list[ProjectedMemory]
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """The same by the kernel. The contexts of all steps are summed up at once, after the loop."""
        readers = [
            AdditiveReader(attention.query.weight, attention.energy, memory)
            for attention, memory in zip(self.attentions, memories, strict=True)
        ]
        links = [Link(self.cells[0].recurrent, projected)]
        links += [
            Link(cell.recurrent, readers=tuple(group))
            for cell, group in zip(self.cells[1:], self._groups(readers), strict=True)
        ]
        states, weights = run_chain(links, len(projected), state)
        alphas = [alpha.permute(1, 2, 0, 3).flatten(0, 1) for alpha in weights]  # (R, T, n)
        contexts = [sum_up(alpha, memory.values) for alpha, memory in zip(alphas, memories, strict=True)]
        return states, contexts, alphas


def sum_up(weights: Tensor, values: Tensor) -> Tensor:
    """Contexts (R, T, D) from weights (R, T, n) over the values (S, n, D) of memories that R / S rows share."""
    rows, steps, _ = weights.shape
    by_sentence = weights.unflatten(0, (len(values), -1)).flatten(1, 2)  # (S, beam · T, n)
    return torch.bmm(by_sentence, values).view(rows, steps, -1)
