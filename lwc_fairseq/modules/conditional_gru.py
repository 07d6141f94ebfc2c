"""Conditional GRU: a recurrent decoder layer whose state attends to memories on its way through a step.

    s⁰_j = GRU(s_{j-1}, x_j)
    a^k_j = Att(s^{k-1}_j, H^k),  s^k_j = GRU(s^{k-1}_j, a^k_j)    for k = 1..K
    s_j = s^K_j

With K = 1 it is the decoder of the dl4mt tutorial (Cho, Firat and others, 2015), but for its reset gate; with more it
is the decoder of DeepAtt (Zhang, Xiong, Su, 2018, eq. 6-8), with none a plain GRU. A GRU may also take several contexts
side by side, as the second one does in asynchronous bidirectional decoding.

Letters: S sentences, R = S · beam rows, T steps, n tokens of a memory, D its width, d the width of the state.
"""

from itertools import islice

from torch import Tensor, nn

from .additive_attention import AdditiveAttention
from .attention_memory import InputMap, Memory, ProjectedMemory
from .gru import GRUCell, Link, run_chain
from .multihead_attention import MultiHeadAttention


class ConditionalGRU(nn.Module):
    """The first GRU, and for each group of memories the attentions to them and the GRU that takes the contexts.

    Args:
        input_dim: width of x.
        dim: d.
        memory_dims: D of the memories, in groups: those of a group are read by one state and enter one GRU.
        heads: of multi-head attention; 0 is additive attention.
    """

    def __init__(self, input_dim: int, dim: int, memory_dims: list[list[int]], heads: int = 0):
        super().__init__()
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
        """Widths of the contexts that it hands out."""
        return [attention.context_dim for attention in self.attentions]

    def _groups(self, items) -> list[list]:
        """One item for each attention, in their groups."""
        remaining = iter(items)
        return [list(islice(remaining, size)) for size in self.group_sizes]

    def _input_maps(self) -> list[InputMap]:
        """For each attention the part of a GRU's input weights that is for its context."""
        maps = []
        for cell, group in zip(self.cells[1:], self._groups(self.attentions), strict=True):
            weights = cell.input.weight.split([attention.context_dim for attention in group], dim=1)
            maps += [InputMap(weight, None if i else cell.input.bias) for i, weight in enumerate(weights)]
        return maps

    def project(self, memories: list[Memory]) -> list[ProjectedMemory]:
        """Memories, one for each attention, made ready to be read; once a sentence."""
        return [
            attention.project(memory, gates)
            for attention, memory, gates in zip(self.attentions, memories, self._input_maps(), strict=True)
        ]

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
            (R, T, n), averaged over heads.
        """
        readers = [
            attention.reader(memory, gates)
            for attention, memory, gates in zip(self.attentions, memories, self._input_maps(), strict=True)
        ]
        links = [Link(self.cells[0], inputs=self.cells[0].input(inputs))]
        links += [Link(cell, readers=tuple(g)) for cell, g in zip(self.cells[1:], self._groups(readers), strict=True)]
        states, weights = run_chain(links, len(inputs), state)
        read = list(zip(self.attentions, weights, memories, strict=True))
        contexts = [attention.contexts(alpha, memory) for attention, alpha, memory in read]
        return states, contexts, [attention.alignments(alpha) for attention, alpha, _ in read]
