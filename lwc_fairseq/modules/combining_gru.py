"""A conditional GRU that combines the contexts of several memories by a second attention: the decoder of neural system
combination (Zhou, Hu, Zhang, Zong, *Neural System Combination for Machine Translation*, ACL 2017).

    s̃_j = GRU(s_{j-1}, x_j)
    a^k_j = Att_k(s̃_j, H^k)                  for each memory, all of one width
    a_j = Att(s̃_j, [a^1_j; ...; a^K_j])      the same additive attention, over the K contexts
    s_j = GRU(s̃_j, a_j)

Letters: S sentences, R = S · beam rows, T steps, n memory positions, D memory width, K memories, d state width.
"""

import torch
from torch import Tensor, nn

from .additive_attention import AdditiveAttention
from .attention_memory import Memory, ProjectedMemory
from .gru import GRUCell
from .recurrent_decoder import RecurrentDecoder


class CombiningGRU(nn.Module):
    """The equations above, step by step.

    Args:
        input_dim: width of x.
        dim: d.
        memory_dims: D of each memory.

    Raises:
        ValueError: the memories differ in width.
    """

    def __init__(self, input_dim: int, dim: int, memory_dims: list[int]):
        super().__init__()
        if len(set(memory_dims)) != 1:
            raise ValueError(f"memories of widths {memory_dims}: contexts can only be combined if all widths are equal")
        self.attentions = nn.ModuleList(AdditiveAttention(memory_dim, dim) for memory_dim in memory_dims)
        self.combination = AdditiveAttention(memory_dims[0], dim)
        self.cells = nn.ModuleList(GRUCell(width, dim) for width in (input_dim, memory_dims[0]))

    @property
    def context_dims(self) -> list[int]:
        """The width of the only context that `forward` returns, the combined one."""
        return [self.combination.context_dim]

    def project(self, memories: list[Memory]) -> list[ProjectedMemory]:
        """Project the memories, one for each attention, once per sentence."""
        return [attention.project(memory) for attention, memory in zip(self.attentions, memories, strict=True)]

    def forward(
        self, inputs: Tensor, state: Tensor, memories: list[ProjectedMemory]
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Run T steps.

        Args:
            inputs: x, (T, R, input_dim).
            state: the state before the first step, (R, d).
            memories: one projected memory for each attention.

        Returns:
            The states s (T, R, d), the combined contexts [(R, T, D)], and the weights of each attention (R, T, n).
        """
        read_word, read_context = self.cells
        projected = read_word.input(inputs)
        state = state.to(projected.dtype)  # half precision under autocast
        states, contexts, weights = [], [], []
        for x in projected:
            query = read_word(state, x)
            read = [attention(query, memory) for attention, memory in zip(self.attentions, memories, strict=True)]
            found = torch.stack([context for context, _ in read], dim=1)  # (R, K, D)
            context, _ = self.combination.read(query, self.combination.key(found), found)
            state = read_context(query, read_context.input(context))
            states.append(state)
            contexts.append(context)
            weights.append([alpha for _, alpha in read])
        by_attention = zip(*weights, strict=True)
        return torch.stack(states), [torch.stack(contexts, dim=1)], [torch.stack(x, dim=1) for x in by_attention]


class CombiningDecoder(RecurrentDecoder):
    """A recurrent decoder with one layer, a combining GRU over one group of memories."""

    def make_layer(self, input_dim: int, dim: int, groups: list[list[int]], heads: int, plain: bool) -> CombiningGRU:
        (memory_dims,) = groups
        return CombiningGRU(input_dim, dim, memory_dims)
