"""A conditional GRU that weighs what it reads in several memories against each other: the decoder of neural system
combination (Zhou, Hu, Zhang, Zong, *Neural System Combination for Machine Translation*, ACL 2017).

    s̃_j = GRU(s_{j-1}, x_j)
    a^k_j = Att_k(s̃_j, H^k)                  for each memory, all of one width
    a_j = Att(s̃_j, [a^1_j; ...; a^K_j])      the same additive attention, over the K contexts
    s_j = GRU(s̃_j, a_j)

Letters: S sentences, R = S · beam rows, T steps, n tokens of a memory, D its width, d width of the state.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .additive_attention import AdditiveAttention
from .attention_memory import Memory, ProjectedMemory
from .gru import GRUCell
from .recurrent_decoder import RecurrentDecoder


class CombiningGRU(nn.Module):
    """The equations above, a step at a time, with autograd's derivatives.

    Args:
        input_dim: width of x.
        dim: d.
        memory_dims: D of each memory.

    Raises:
        ValueError: memories of several widths.
    """

    def __init__(self, input_dim: int, dim: int, memory_dims: list[int]):
        super().__init__()
        if len(set(memory_dims)) != 1:
            raise ValueError(f"memories of widths {memory_dims}: contexts are combined where all have one width")
        self.attentions = nn.ModuleList(AdditiveAttention(memory_dim, dim) for memory_dim in memory_dims)
        self.combination = AdditiveAttention(memory_dims[0], dim)
        self.cells = nn.ModuleList(GRUCell(width, dim) for width in (input_dim, memory_dims[0]))

    @property
    def context_dims(self) -> list[int]:
        """The width of the combined context, which is all that it hands out."""
        return [self.combination.context_dim]

    def project(self, memories: list[Memory]) -> list[ProjectedMemory]:
        """Memories, one for each attention, made ready to be read; once a sentence."""
        return [
            ProjectedMemory(*memory, keys=attention.key(memory.states), values=memory.states)
            for attention, memory in zip(self.attentions, memories, strict=True)
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
            States s (T, R, d); the combined contexts [(R, T, D)]; the weights of each attention (R, T, n).
        """
        read_words, read_context = self.cells
        given = read_words.input(inputs)
        state = state.to(given.dtype)  # under autocast, half precision
        states, contexts, weights = [], [], []
        for given_now in given:
            query = gru_step(read_words, given_now, state)
            read = [
                attend(attention, query, memory.keys, memory.values, memory.padding_mask)
                for attention, memory in zip(self.attentions, memories, strict=True)
            ]
            found = torch.stack([context for context, _ in read], dim=1)  # (R, K, D)
            context, _ = attend(self.combination, query, self.combination.key(found), found)
            state = gru_step(read_context, read_context.input(context), query)
            states.append(state)
            contexts.append(context)
            weights.append([alpha for _, alpha in read])
        by_attention = zip(*weights, strict=True)
        return torch.stack(states), [torch.stack(contexts, dim=1)], [torch.stack(x, dim=1) for x in by_attention]


def gru_step(cell: GRUCell, given: Tensor, state: Tensor) -> Tensor:
    """GRU(state, x) of :mod:`~.gru`, where `given` is W x + b (R, 3d) and the state is (R, d)."""
    dim = state.size(-1)
    update, reset = torch.sigmoid(given[:, : 2 * dim] + F.linear(state, cell.recurrent[: 2 * dim])).chunk(2, dim=-1)
    candidate = torch.tanh(given[:, 2 * dim :] + F.linear(reset * state, cell.recurrent[2 * dim :]))
    return (1 - update) * state + update * candidate


def attend(
    attention: AdditiveAttention, state: Tensor, keys: Tensor, values: Tensor, padding_mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """α_i = softmax_i(v · tanh(W s + U h_i)) and Σ_i α_i h_i.

    Args:
        state: s, (R, d).
        keys: U h, (S, n, d), of which each serves R / S rows.
        values: h, (S, n, D).
        padding_mask: (S, n), True at padding.

    Returns:
        The contexts (R, D) and the weights (R, n).
    """
    query = attention.query(state).unflatten(0, (len(keys), -1))[:, :, None]  # (S, beam, 1, d)
    scores = torch.tanh(query + keys[:, None]) @ attention.energy.to(keys.dtype)  # (S, beam, n)
    if padding_mask is not None:
        scores = scores.masked_fill(padding_mask[:, None], -torch.inf)
    weights = scores.softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32)).type_as(values)
    return (weights @ values).flatten(0, 1), weights.flatten(0, 1)


class CombiningDecoder(RecurrentDecoder):
    """A recurrent decoder of one combining GRU, with one group of memories."""

    def make_layer(self, input_dim: int, dim: int, groups: list[list[int]], heads: int) -> CombiningGRU:
        (memory_dims,) = groups
        return CombiningGRU(input_dim, dim, memory_dims)
