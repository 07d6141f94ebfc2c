"""Conditional GRU: a recurrent decoder layer whose state attends to memories between the GRUs of a step.

    s⁰_j = GRU(s_{j-1}, x_j)
    a^k_j = Att(s^{k-1}_j, H^k),  s^k_j = GRU(s^{k-1}_j, a^k_j)    for k = 1..K
    s_j = s^K_j

With K = 1, it is the decoder of the dl4mt tutorial (Cho, Firat and others, 2015), except for the place of the reset
gate. With K > 1, it is the decoder of DeepAtt (Zhang, Xiong, Su, 2018, eq. 6-8). With K = 0, it is a plain GRU. A GRU
may also take the concatenation of several contexts, as the second GRU does in asynchronous bidirectional decoding.

Letters: S sentences, R = S · beam rows, T steps, n memory positions, D memory width, d state width.
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
    """A GRU over the input and, for each group of memories, an attention to each memory and a GRU over their contexts.

    Args:
        input_dim: width of x.
        dim: d.
        memory_dims: D of each memory, in groups. The same state attends to all memories of a group, and one GRU takes
            their contexts, concatenated.
        heads: heads of multi-head attention; 0 is additive attention.
        plain: compute the equations with autograd instead of the kernel, which is faster. Only additive attention has a
            kernel.
    """

    def __init__(self, input_dim: int, dim: int, memory_dims: list[list[int]], heads: int = 0, plain: bool = False):
        super().__init__()
        self.group_sizes = [len(group) for group in memory_dims]
        self.attentions = nn.ModuleList(
            self.make_attention(memory_dim, dim, heads) for group in memory_dims for memory_dim in group
        )
        self._plain = plain
        context_dims = [sum(attention.context_dim for attention in group) for group in self._groups(self.attentions)]
        self.cells = nn.ModuleList(GRUCell(width, dim) for width in [input_dim, *context_dims])

    def make_attention(self, memory_dim: int, dim: int, heads: int) -> nn.Module:
        """Build the attention to one memory of width D.

        Returns:
            A module with `context_dim`, the width of its contexts; `project`, which maps a :class:`Memory` to a
            :class:`ProjectedMemory`; and `forward`, which maps the states (R, d) and the projected memory to contexts
            (R, context_dim) and weights (R, n).
        """
        return MultiHeadAttention(memory_dim, dim, heads) if heads else AdditiveAttention(memory_dim, dim)

    @property
    def plain(self) -> bool:
        """Whether autograd computes the equations. Found on each call, because an attention may have been replaced."""
        return self._plain or any(type(attention) is not AdditiveAttention for attention in self.attentions)

    @property
    def context_dims(self) -> list[int]:
        """The width of each context that `forward` returns."""
        return [attention.context_dim for attention in self.attentions]

    def _groups(self, items: Sequence[Item]) -> list[list[Item]]:
        """Split items, one for each attention, into the groups of memories."""
        remaining = iter(items)
        return [list(islice(remaining, size)) for size in self.group_sizes]

    def project(self, memories: list[Memory]) -> list[ProjectedMemory]:
        """Project the memories, one for each attention, once per sentence."""
        projected = [attention.project(memory) for attention, memory in zip(self.attentions, memories, strict=True)]
        return projected if self.plain else self._with_gates(projected)

    def _with_gates(self, memories: list[ProjectedMemory]) -> list[ProjectedMemory]:
        """Add `gates` to the memories: the input product of the GRU that takes their contexts."""
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
            state: the state before the first step, (R, d).
            memories: one projected memory for each attention.

        Returns:
            The states s (T, R, d); the contexts of each attention, (R, T, D), or (R, T, d) with multi-head attention;
            and the weights of each attention, (R, T, n), averaged over the heads.
        """
        # Without `contiguous`, linear would copy the inputs as well, and add b in a pass of its own.
        projected = self.cells[0].input(inputs.contiguous())
        state = state.to(projected.dtype)  # half precision under autocast
        return (self._run if self.plain else self._run_kernel)(projected, state, memories)

    def _run(
        self, projected: Tensor, state: Tensor, memories: list[ProjectedMemory]
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Compute the equations step by step."""
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
        """Compute the same with the kernel. One product after the loop computes the contexts of all steps."""
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
    """Compute contexts (R, T, D) from weights (R, T, n) and values (S, n, D), which R / S rows share."""
    rows, steps, _ = weights.shape
    by_sentence = weights.unflatten(0, (len(values), -1)).flatten(1, 2)  # (S, beam · T, n)
    return torch.bmm(by_sentence, values).view(rows, steps, -1)
