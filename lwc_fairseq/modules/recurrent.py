"""The parts of the recurrent models: GRUs, attention to memories, encoders, and the decoder that combines them.

A memory is a sequence of states that a decoder attends to. It is projected once per sentence, and all hypotheses of the
sentence share it: when fairseq's generator repeats sentences for a beam, only `beam` grows, and nothing is copied.

Letters: B sentences in training; in decoding, S sentences and R = S · beam hypotheses, one row each. n source tokens
or memory positions, m target tokens, T steps, E embedding width, d state width (`dim`), D memory width (`memory_dim`),
H heads, V types. True in a padding mask means padding. With `plain`, PyTorch's own operations and
autograd compute the equations. Otherwise the kernels do, which are faster.
"""

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from fairseq.models import FairseqEncoder, FairseqIncrementalDecoder
from fairseq.modules.fairseq_dropout import FairseqDropout
from torch import Tensor, nn

from lwc_fairseq_compat.loading import IS_LOADING

from .recurrent_kernels import AdditiveReader, Link, run_chain
from .row_groups import kept_sentences

Item = TypeVar("Item")


class GRUCell(nn.Module):
    """The GRU of the papers, after Chung et al., *Empirical Evaluation of Gated Recurrent Neural Networks* (2014):

        z  = σ(W_z x + U_z h + b_z)                 update gate
        r  = σ(W_r x + U_r h + b_r)                 reset gate
        h̃  = tanh(W_h x + U_h (r ∘ h) + b_h)        candidate
        h' = (1 - z) ∘ h + z ∘ h̃                    GRU(h, x)

    The reset gate multiplies the state before the recurrent product; torch.nn.GRU applies it after the product.
    """

    def __init__(self, input_dim: int, dim: int):
        super().__init__()
        self.input = nn.Linear(input_dim, 3 * dim)  # [W_z; W_r; W_h] and b
        self.recurrent = nn.Parameter(torch.empty(3 * dim, dim))  # [U_z; U_r; U_h]
        nn.init.xavier_uniform_(self.recurrent)

    def forward(self, state: Tensor, projected: Tensor) -> Tensor:
        """Compute GRU(h, x) from h (R, d) and W x + b (R, 3d).

        The caller computes W x + b with `input`. If it knows x beforehand, it does so for all time steps at once.
        """
        dim = state.size(1)
        gates = torch.sigmoid(projected[:, : 2 * dim] + F.linear(state, self.recurrent[: 2 * dim]))
        update, reset = gates[:, :dim], gates[:, dim:]
        candidate = torch.tanh(projected[:, 2 * dim :] + F.linear(reset * state, self.recurrent[2 * dim :]))
        return (1 - update) * state + update * candidate


class GRULayer(nn.Module):
    """A chain of GRUs over input sequences that are known beforehand. In each step, the state passes through all GRUs,
    in the order of `input_dims`, the widths of their inputs."""

    cells: Sequence[GRUCell]

    def __init__(self, input_dims: list[int], dim: int, plain: bool = False):
        super().__init__()
        self.dim = dim
        self.plain = plain
        self.add_module("cells", nn.ModuleList(GRUCell(input_dim, dim) for input_dim in input_dims))

    def forward(self, inputs: list[Tensor]) -> Tensor:
        """Map sequences (T, R, input_dim), one for each GRU, to states (T, R, d). The initial state is zero."""
        projected = [cell.input(x) for cell, x in zip(self.cells, inputs, strict=True)]
        steps, rows, _ = projected[0].shape
        state = projected[0].new_zeros(rows, self.dim)
        if not self.plain:
            links = [Link(cell.recurrent, x) for cell, x in zip(self.cells, projected, strict=True)]
            return run_chain(links, steps, state)[0]
        states = []
        for step in zip(*projected, strict=True):
            for cell, x in zip(self.cells, step, strict=True):
                state = cell(state, x)
            states.append(state)
        return torch.stack(states)


def run_together(layers: list[GRULayer], inputs: list[Tensor]) -> list[Tensor]:
    """Run layers of one GRU each, over sequences (T, R, input_dim) of one length, one sequence for each layer.

    The result is that of one layer after the other, but one operation computes a step of all layers. On a GPU, a step
    takes as long as the launch of its operations, so two layers take as long as one. On a CPU it saves nothing, and
    weights and inputs are copied.
    """
    cells = [layer.cells[0] for layer in layers]
    projected = torch.stack([cell.input(x) for cell, x in zip(cells, inputs, strict=True)])
    count, steps, rows, _ = projected.shape
    link = Link(torch.stack([cell.recurrent for cell in cells]), projected)
    return list(run_chain([link], steps, projected.new_zeros(count, rows, layers[0].dim))[0])


class Memory(NamedTuple):
    """A memory before projection. Without a padding mask, all positions are read."""

    states: Tensor  #: (S, n, D)
    padding_mask: Tensor | None = None  #: (S, n)
    columns: Tensor | None = None  #: (S, n): for each column of the tokens, the position of its state


class ProjectedMemory(NamedTuple):
    """A memory with the projections that one attention computes before the first step."""

    padding_mask: Tensor | None  #: as in :class:`Memory`
    columns: Tensor | None  #: as in :class:`Memory`
    keys: Tensor  #: (S, n, d), or (S, H, n, d/H) with several heads
    values: Tensor  #: (S, n, D), or (S, H, n, d/H) with several heads
    #: (S, n, 3d), for kernels: W h, the input product of the GRU that takes the context. In the first memory of a
    #: group, it includes the bias b.
    gates: Tensor | None = None


def select_sentences(memories: tuple, sentences: Tensor) -> tuple:
    """Return memories of one of the types above for some of the sentences, by index."""
    return tuple(
        type(memory)(*(None if tensor is None else tensor.index_select(0, sentences) for tensor in memory))
        for memory in memories
    )


class AdditiveAttention(nn.Module):
    """Additive attention of Bahdanau et al. (2015), with the weights W (`query`), U (`key`) and v (`energy`):

        α_i = softmax_i(v · tanh(W s + U h_i)),   a = Σ_i α_i h_i

    This is also eq. 9 of DeepAtt, where the score includes the exp of the softmax.
    """

    def __init__(self, memory_dim: int, dim: int):
        super().__init__()
        self.context_dim = memory_dim
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(memory_dim, dim, bias=False)
        self.energy = nn.Parameter(torch.randn(dim) / dim**0.5)

    def project(self, memory: Memory) -> ProjectedMemory:
        """Compute U h once per sentence."""
        return ProjectedMemory(memory.padding_mask, memory.columns, self.key(memory.states), memory.states)

    def forward(self, state: Tensor, memory: ProjectedMemory) -> tuple[Tensor, Tensor]:
        """Compute a (R, D) and α (R, n) from s (R, d). Each `beam` consecutive rows share the memory of a sentence."""
        keys, values = memory.keys, memory.values
        query = self.query(state).unflatten(0, (keys.size(0), -1))[:, :, None]  # (S, beam, 1, d)
        scores = torch.tanh(query + keys[:, None]) @ self.energy.to(keys.dtype)  # (S, beam, n)
        if memory.padding_mask is not None:
            scores = scores.masked_fill(memory.padding_mask[:, None], -torch.inf)
        weights = scores.softmax(-1).type_as(values)  # autocast would return single precision
        return (weights @ values).flatten(0, 1), weights.flatten(0, 1)


class MultiHeadAttention(nn.Module):
    """Scaled dot-product attention of Vaswani et al. (2017), with the weights Q, K, V and O:

        head_p = softmax(Q_p s (K_p h)ᵀ / √(d/H)) V_p h,   a = O [head_1; ...; head_H]

    The modules of the same name in fairseq and torch compute all steps at once. Here, the query is a state that depends
    on the attention of the previous step.
    """

    def __init__(self, memory_dim: int, dim: int, heads: int):
        super().__init__()
        self.context_dim = dim
        self.heads = heads
        self.query = nn.Linear(dim, dim, bias=False)
        self.key = nn.Linear(memory_dim, dim, bias=False)
        self.value = nn.Linear(memory_dim, dim, bias=False)
        self.output = nn.Linear(dim, dim, bias=False)

    def project(self, memory: Memory) -> ProjectedMemory:
        """Compute K h and V h once per sentence."""
        keys, values = (self._split(linear(memory.states)) for linear in (self.key, self.value))
        return ProjectedMemory(memory.padding_mask, memory.columns, keys, values)

    def _split(self, x: Tensor) -> Tensor:
        """Rearrange (S, n, d) to (S, H, n, d/H)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2).contiguous()

    def forward(self, state: Tensor, memory: ProjectedMemory) -> tuple[Tensor, Tensor]:
        """Compute a (R, d), and the weights (R, n), averaged over the heads, from s (R, d)."""
        query = self._split(self.query(state).unflatten(0, (memory.keys.size(0), -1)))  # (S, H, beam, d/H)
        scores = query @ memory.keys.transpose(2, 3) / math.sqrt(query.size(-1))  # (S, H, beam, n)
        if memory.padding_mask is not None:
            scores = scores.masked_fill(memory.padding_mask[:, None, None], -torch.inf)
        weights = scores.softmax(-1).type_as(scores)
        heads = (weights @ memory.values).transpose(1, 2).flatten(2).flatten(0, 1)  # (R, d)
        return self.output(heads), weights.mean(1).flatten(0, 1)


def divide(items: Sequence[Item], sizes: list[int]) -> list[list[Item]]:
    """Divide items into consecutive groups of the given sizes."""
    remaining = iter(items)
    return [list(islice(remaining, size)) for size in sizes]


class ConditionalGRU(nn.Module):
    """A decoder layer whose state attends to memories between the GRUs of a step:

        s⁰_j = GRU(s_{j-1}, x_j)
        a^k_j = Att(s^{k-1}_j, H^k),  s^k_j = GRU(s^{k-1}_j, a^k_j)    for k = 1..K
        s_j = s^K_j

    With K = 1, it is the decoder of the dl4mt tutorial (Cho, Firat and others, 2015), except for the place of the reset
    gate, and for the attention, which is 2d wide there and has biases. With K > 1, it is the decoder of DeepAtt (eq.
    6-8). With K = 0, it is a plain GRU. Instead of one memory, the state may attend to a group of memories, as in
    asynchronous bidirectional decoding. One GRU then takes the concatenation of their contexts.

    Args:
        memory_dims: D of each memory, in groups.
        heads: H of multi-head attention, a divisor of d; 0 is additive attention, which alone has a kernel.
    """

    attentions: Sequence[AdditiveAttention]  # or whatever else `make_attention` returns
    cells: Sequence[GRUCell]

    def __init__(self, input_dim: int, dim: int, memory_dims: list[list[int]], heads: int = 0, plain: bool = False):
        super().__init__()
        self.group_sizes = [len(group) for group in memory_dims]
        attentions = [self.make_attention(memory_dim, dim, heads) for group in memory_dims for memory_dim in group]
        self.add_module("attentions", nn.ModuleList(attentions))
        self._plain = plain
        context_dims = [sum(group) for group in divide(self.context_dims, self.group_sizes)]
        self.add_module("cells", nn.ModuleList(GRUCell(width, dim) for width in [input_dim, *context_dims]))

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
        """Whether the kernels are not used. An attention without a kernel may have been set after construction."""
        return self._plain or not all(isinstance(attention, AdditiveAttention) for attention in self.attentions)

    @property
    def context_dims(self) -> list[int]:
        """The width of each context that `forward` returns."""
        return [attention.context_dim for attention in self.attentions]

    def project(self, memories: list[Memory]) -> list[ProjectedMemory]:
        """Project the memories, one for each attention, once per sentence."""
        projected = [attention.project(memory) for attention, memory in zip(self.attentions, memories, strict=True)]
        if self.plain:
            return projected
        with_gates = []
        for cell, group in zip(self.cells[1:], divide(projected, self.group_sizes), strict=True):
            weights = cell.input.weight.split([memory.values.size(-1) for memory in group], dim=1)
            biases = [cell.input.bias] + [None] * (len(group) - 1)
            for memory, weight, bias in zip(group, weights, biases, strict=True):
                with_gates.append(memory._replace(gates=F.linear(memory.values, weight, bias)))
        return with_gates

    def forward(
        self, inputs: Tensor, state: Tensor, memories: list[ProjectedMemory]
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Run T steps over x (T, R, input_dim), from a state (R, d), with a projected memory for each attention.

        Returns:
            The states s (T, R, d); the contexts of each attention, (R, T, D), or (R, T, d) with multi-head attention;
            and the weights of each attention, (R, T, n), averaged over the heads.
        """
        # Without `contiguous`, linear would copy the inputs as well, and add b in a pass of its own.
        projected = self.cells[0].input(inputs.contiguous())
        state = state.to(projected.dtype)  # half precision under autocast
        if self.plain:
            return self._run_plain(projected, state, memories)
        readers = []
        for attention, memory in zip(self.attentions, memories, strict=True):
            gates, padding_mask = memory.gates, memory.padding_mask
            assert gates is not None and padding_mask is not None  # `project` sets gates; encoders set the mask
            readers.append(AdditiveReader(attention.query.weight, attention.energy, memory.keys, gates, padding_mask))
        links = [Link(self.cells[0].recurrent, projected)]
        for cell, group in zip(self.cells[1:], divide(readers, self.group_sizes), strict=True):
            links.append(Link(cell.recurrent, readers=tuple(group)))
        states, weights = run_chain(links, len(projected), state)
        alphas = [alpha.permute(1, 2, 0, 3).flatten(0, 1) for alpha in weights]  # (R, T, n)
        contexts = []
        for alpha, memory in zip(alphas, memories, strict=True):  # one product computes the contexts of all steps
            by_sentence = alpha.unflatten(0, (len(memory.values), -1)).flatten(1, 2)  # (S, beam · T, n)
            contexts.append(torch.bmm(by_sentence, memory.values).view(*alpha.shape[:2], -1))
        return states, contexts, alphas

    def _run_plain(
        self, projected: Tensor, state: Tensor, memories: list[ProjectedMemory]
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        states, contexts, weights = [], [], []
        for x in projected:
            state, read, alphas = self.step(state, x, memories)
            states.append(state)
            contexts.append(read)
            weights.append(alphas)
        by_attention = [[torch.stack(xs, dim=1) for xs in zip(*steps, strict=True)] for steps in (contexts, weights)]
        return torch.stack(states), by_attention[0], by_attention[1]

    def step(
        self, state: Tensor, projected: Tensor, memories: list[ProjectedMemory]
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Run one step without the kernels, from a state (R, d) and W x + b of the first GRU, (R, 3d).

        Where a memory has `gates`, the attention weights sum them up, as in the kernels. Otherwise, the GRU multiplies
        the context by its weights.

        Returns:
            The next state (R, d); the contexts (R, D) and the weights (R, n) of each attention.
        """
        state, contexts, weights = self.cells[0](state, projected), [], []
        groups = divide(list(zip(self.attentions, memories, strict=True)), self.group_sizes)
        for cell, group in zip(self.cells[1:], groups, strict=True):
            read = [attention(state, memory) for attention, memory in group]
            products = [
                (alpha.unflatten(0, (memory.gates.size(0), -1)) @ memory.gates).flatten(0, 1)
                for (_, memory), (_, alpha) in zip(group, read, strict=True)
                if memory.gates is not None
            ]
            contexts += [context for context, _ in read]
            weights += [alpha for _, alpha in read]
            given = sum(products[1:], products[0]) if products else cell.input(torch.cat([c for c, _ in read], dim=-1))
            state = cell(state, given)
        return state, contexts, weights


class SourceOrder:
    """The places of the tokens in a padded batch, and how to reorder them.

    GRUs process whole columns of a batch (B, n), whose rows have padding on either side. So each sentence moves to the
    front of its row, and is reversed within its columns for GRUs that read backward. Padding then always follows the
    sentence, no state of a word depends on it, and the loops need no mask.
    """

    def __init__(self, tokens: Tensor, padding_idx: int):
        real = tokens.ne(padding_idx)
        width = tokens.size(1)
        column = torch.arange(width, device=tokens.device).expand_as(tokens)
        first = real.int().argmax(1, keepdim=True)
        # Rotate each row until its first token comes first; `columns` rotates it back. ONNX cannot export `%` here.
        rotated, back = column + first, column - first
        self.tokens = tokens.gather(1, torch.where(rotated < width, rotated, rotated - width))
        self.columns = torch.where(back < 0, back + width, back)
        last = real.sum(1, keepdim=True) - 1
        self.padding_mask = column > last
        self._backward = torch.where(self.padding_mask, column, last - column).T  # (n, B)
        self._last = last.clamp(min=0).T

    def reverse(self, sequence: Tensor) -> Tensor:
        """Reverse each sentence of (n, B, width). Padding stays at the end, so a second call restores the order."""
        return sequence.gather(0, self._backward[:, :, None].expand_as(sequence))

    def last(self, sequence: Tensor) -> Tensor:
        """Return the entry at each sentence's last token, (B, width)."""
        return sequence.gather(0, self._last[:, :, None].expand(1, -1, sequence.size(-1))).squeeze(0)


class BidirectionalEncoder(nn.Module):
    """h_i = [GRU(h_{i-1}, x_i); GRU(h_{i+1}, x_i)], the encoder of Bahdanau et al. (2015)."""

    def __init__(self, input_dim: int, dim: int, plain: bool = False):
        super().__init__()
        self.plain = plain
        self.forward_layer = GRULayer([input_dim], dim, plain)
        self.backward_layer = GRULayer([input_dim], dim, plain)

    def forward(self, x: Tensor, order: SourceOrder) -> tuple[list[Tensor], Tensor]:
        """Map x (n, B, input_dim) to [h (n, B, 2d)] and the last state of the backward GRU, at the first word, (B,
        d)."""
        if x.is_cuda and not self.plain:
            forward, backward = run_together([self.forward_layer, self.backward_layer], [x, order.reverse(x)])
        else:
            forward, backward = self.forward_layer([x]), self.backward_layer([order.reverse(x)])
        return [torch.cat([forward, order.reverse(backward)], dim=-1)], order.last(backward)


@dataclass(frozen=True)
class SourceMemory:
    """The output of a recurrent encoder."""

    memories: tuple[Memory, ...]  # one for each attention of the decoder, in order
    final_state: Tensor  # (S, d); the decoder computes its initial state from it
    beam: int = 1  # consecutive rows that share a sentence
    reverse_tokens: Tensor | None = None  # (S, T), reverse translations that are given

    def __getitem__(self, index: int) -> Tensor:
        """Return the final state as the first item.

        fairseq finds the source of NaN gradients with torch's backward hooks. These look for a tensor in the first item
        of an output.
        """
        return (self.final_state,)[index]

    def reorder(self, order: Tensor) -> "SourceMemory":
        """Return the output for the rows order[0], order[1], … of this output, which has S · beam rows.

        Nothing is copied unless sentences are dropped or change places. Reading `order` synchronizes with the device
        once.
        """
        kept, beam = kept_sentences(order, len(self.final_state), self.beam)
        if kept is None:
            return replace(self, beam=beam)
        reverse = None if self.reverse_tokens is None else self.reverse_tokens.index_select(0, kept)
        states = self.final_state.index_select(0, kept)
        return SourceMemory(select_sentences(self.memories, kept), states, beam, reverse)


class RecurrentEncoder(FairseqEncoder):
    """Word embeddings and recurrent layers.

    Args:
        cfg: the model's :class:`~lwc_fairseq.models.rnnsearch.RecurrentConfig`.
        dictionary: the source dictionary.
        recurrent: a module that maps embeddings (n, B, E) and their :class:`SourceOrder` to the states of its layers,
            (n, B, width) each, and a final state (B, d). The default is a :class:`BidirectionalEncoder`: one layer of
            width 2d.
        embedding: the embedding of the source words, if it is shared with another encoder.
    """

    def __init__(self, cfg, dictionary, recurrent: nn.Module | None = None, embedding: nn.Embedding | None = None):
        super().__init__(dictionary)
        self.embedding = embedding or nn.Embedding(len(dictionary), cfg.embed_dim, dictionary.pad())
        self.recurrent = recurrent or BidirectionalEncoder(cfg.embed_dim, cfg.hidden_dim, cfg.plain_kernels)
        self.dropout = FairseqDropout(cfg.input_dropout, module_name=type(self).__name__)

    def memories(self, layers: list[Tensor]) -> list[Tensor]:
        """Choose, among the states (B, n, width) of each layer, those that the decoder attends to."""
        return layers

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor | None = None, reverse_tokens: Tensor | None = None, **unused
    ) -> SourceMemory:
        """Return the memories of source tokens (B, n), padded on either side, and the reverse translations (B, T) if
        they are given."""
        order = SourceOrder(src_tokens, self.dictionary.pad())
        layers, final_state = self.recurrent(self.dropout(self.embedding(order.tokens.T)), order)
        # attention reads (B, n, width)
        batch_major = [self.dropout(layer.transpose(0, 1)).contiguous() for layer in layers]
        memories = [Memory(states, order.padding_mask, order.columns) for states in self.memories(batch_major)]
        return SourceMemory(tuple(memories), final_state, reverse_tokens=reverse_tokens)

    def reorder_encoder_out(self, encoder_out: SourceMemory, new_order: Tensor) -> SourceMemory:
        return encoder_out.reorder(new_order)


@dataclass(frozen=True)
class DecodingState:
    """The state of a recurrent decoder between two steps. `memories` are the same in all steps."""

    states: Tensor  # (R, L · d), states of the L layers; (S, L · d) before the first step
    memories: tuple[ProjectedMemory, ...]  # one for each attention
    length: int = 0  # number of tokens read
    beam: int = 1  # consecutive rows that share a sentence

    def for_rows(self, rows: int) -> "DecodingState":
        """Return the state from which the next step of R rows begins. Before the first step, R may be a multiple of
        S."""
        if self.length:
            return self
        beam = rows // len(self.states)
        return replace(self, states=self.states.repeat_interleave(beam, dim=0), beam=beam)

    def reorder(self, order: Tensor) -> "DecodingState":
        """Return the state of the rows order[0], order[1], … See :meth:`SourceMemory.reorder`."""
        kept, beam = kept_sentences(order, len(self.states) // self.beam, self.beam)
        memories = self.memories if kept is None else select_sentences(self.memories, kept)
        return replace(self, states=self.states.index_select(0, order), memories=memories, beam=beam)


class Steps(NamedTuple):
    """The hidden values of a decoder for each of m words, from which the readout computes the next word."""

    words: Tensor  # (R, m, E)
    states: Tensor  # (R, m, d), states of the top layer
    contexts: list[Tensor]  # what attentions have read, (R, m, D), where the readout reads it, too
    weights: list[Tensor]  # weights of each attention over the positions of its memory, (R, m, n)


class SteppingDecoder(FairseqIncrementalDecoder):
    """The base class of decoders that go from one :class:`DecodingState` to the next, by any number of words.

    A subclass sets the output layer, `output`, and defines :meth:`begin`, :meth:`run` and :meth:`read_out`.

    Args:
        dictionary: the target dictionary.
        alignment_layer: the attention whose weights are the alignment.
    """

    output: nn.Linear

    def __init__(self, dictionary, alignment_layer: int):
        super().__init__(dictionary)
        self.alignment_layer = alignment_layer
        self.need_attn = True

    def begin(self, encoder_out: SourceMemory) -> DecodingState:
        """Compute, once per sentence, the state before the first step."""
        raise NotImplementedError

    def run(self, tokens: Tensor, state: DecodingState) -> tuple[Steps, DecodingState]:
        """Run the layers over the next tokens (R, m). If `state` comes from :meth:`begin`, R may be a multiple of S."""
        raise NotImplementedError

    def read_out(self, steps: Steps) -> Tensor:
        """Compute the input of the output layer, (R, m, E)."""
        raise NotImplementedError

    def output_layer(self, features: Tensor) -> Tensor:
        """Map what :meth:`read_out` returns, (..., E), to logits (..., V)."""
        return self.output(features)

    def decoder_out(
        self, steps: Steps, memories: Sequence[ProjectedMemory], features_only: bool = False
    ) -> tuple[Tensor, dict]:
        """What fairseq expects of a decoder: logits (R, m, V), and a dictionary.

        "attentions" are the weights of every attention over the columns of the tokens, (R, m, n) each, and "attn" is a
        list with the weights of the alignment layer. If generation does not need attention, or `steps` has no weights,
        "attentions" is empty and "attn" is None.

        With `features_only`: the input of the output layer, (R, m, E), and {"output_layer": (weight, bias)}. Both are
        views, because distributed training treats a parameter that a model returns directly as unused.
        """
        features = self.read_out(steps)
        if features_only:
            return features, {"output_layer": tuple(x.view_as(x) for x in (self.output.weight, self.output.bias))}
        attentions = []
        for memory, alpha in zip(memories, steps.weights, strict=True) if self.need_attn and steps.weights else ():
            assert memory.columns is not None
            columns = memory.columns.repeat_interleave(len(alpha) // len(memory.columns), dim=0)
            attentions.append(alpha.gather(2, columns[:, None].expand_as(alpha)))
        alignment = [attentions[self.alignment_layer]] if attentions else None
        return self.output_layer(features), {"attn": alignment, "attentions": attentions}

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: SourceMemory,
        incremental_state: dict | None = None,
        features_only: bool = False,
        **unused,
    ) -> tuple[Tensor, dict]:
        """Return :meth:`decoder_out` for the tokens that `incremental_state` has not seen; without a state, for all.

        Args:
            prev_output_tokens: (R, t + m) target input so far, the start symbol first, padding on the right.
            encoder_out: the encoder's output for S sentences; R is a multiple of S.
            incremental_state: stores the :class:`DecodingState` after the first t tokens.
        """
        state = self.get_incremental_state(incremental_state, "decoding") or self.begin(encoder_out)
        steps, state = self.run(prev_output_tokens[:, state.length :], state)
        self.set_incremental_state(incremental_state, "decoding", state)
        return self.decoder_out(steps, state.memories, features_only)

    def reorder_incremental_state(self, incremental_state: dict, new_order: Tensor) -> None:
        state = self.get_incremental_state(incremental_state, "decoding")
        if state is not None:
            self.set_incremental_state(incremental_state, "decoding", state.reorder(new_order))

    def reorder_hypotheses(self, incremental_state: dict, new_order: Tensor) -> None:
        """Do the same without waiting for the device. Each new row must continue an old row of its own sentence."""
        state = self.get_incremental_state(incremental_state, "decoding")
        reordered = replace(state, states=state.states.index_select(0, new_order))
        self.set_incremental_state(incremental_state, "decoding", reordered)

    def make_generation_fast_(self, need_attn: bool = False, **unused) -> None:
        """fairseq's hook before generation. It turns attention weights off unless they will be printed."""
        self.need_attn = bool(need_attn)


class RecurrentDecoder(SteppingDecoder):
    """L layers of conditional GRUs, and the readout of the dl4mt tutorial, with its three linear maps merged into one:

        t_j = tanh(W [E_{y_{j-1}}; s_j; contexts] + b)
        p(y_j) = softmax(O dropout(t_j) + c)

    s_j is the state of the top layer, and the contexts are those of all layers.

    Args:
        cfg: the model's :class:`~lwc_fairseq.models.rnnsearch.RecurrentConfig`. Its `embed_dim` is also the width of
            the readout.
        dictionary: the target dictionary.
        layers: for each layer, the widths of the memories it attends to, in the groups of :class:`ConditionalGRU`.
        heads: heads of multi-head attention; 0 is additive attention.
        embedding: the embedding of the target words, if it is shared with another decoder.
        alignment_layer: the attention whose weights are the alignment.
    """

    layers: Sequence[ConditionalGRU]

    def __init__(
        self,
        cfg,
        dictionary,
        layers: list[list[list[int]]],
        heads: int = 0,
        embedding: nn.Embedding | None = None,
        alignment_layer: int = 0,
    ):
        super().__init__(dictionary, alignment_layer)
        width, dim = cfg.embed_dim, cfg.hidden_dim
        self.embedding = embedding or nn.Embedding(len(dictionary), width, dictionary.pad())
        self.initial_state = nn.Linear(dim, len(layers) * dim)
        made = [
            self.make_layer(dim if depth else width, dim, groups, heads, cfg.plain_kernels)
            for depth, groups in enumerate(layers)
        ]
        self.add_module("layers", nn.ModuleList(made))
        readout_dim = width + dim + sum(sum(layer.context_dims) for layer in self.layers)
        self.readout = nn.Sequential(OrderedDict(hidden=nn.Linear(readout_dim, width), tanh=nn.Tanh()))
        self.dropout = FairseqDropout(cfg.dropout, module_name=type(self).__name__)
        self.input_dropout = FairseqDropout(cfg.input_dropout, module_name=type(self).__name__)
        self.output = nn.Linear(width, len(dictionary))

    def make_layer(self, input_dim: int, dim: int, groups: list[list[int]], heads: int, plain: bool) -> nn.Module:
        """Build a layer; the arguments are those of :class:`ConditionalGRU`."""
        return ConditionalGRU(input_dim, dim, groups, heads, plain)

    def by_layer(self, memories: Sequence) -> Iterator[tuple[ConditionalGRU, list]]:
        """Return each layer with the memories that its attentions read."""
        sizes = [len(layer.attentions) for layer in self.layers]
        return zip(self.layers, divide(memories, sizes), strict=True)

    def begin(self, encoder_out: SourceMemory) -> DecodingState:
        """Compute, once per sentence, the state before the first step: the projected memories, and the initial state of
        each layer, an affine map of the encoder's final state, followed by a tanh."""
        projected = [x for layer, memories in self.by_layer(encoder_out.memories) for x in layer.project(memories)]
        return DecodingState(torch.tanh(self.initial_state(encoder_out.final_state)), tuple(projected))

    def run(self, tokens: Tensor, state: DecodingState) -> tuple[Steps, DecodingState]:
        state = state.for_rows(len(tokens))
        words = self.input_dropout(self.embedding(tokens))
        x, last_states, contexts, weights = words.transpose(0, 1), [], [], []
        first_states = state.states.chunk(len(self.layers), dim=1)
        for (layer, memories), first_state in zip(self.by_layer(state.memories), first_states, strict=True):
            x, read, alphas = layer(x, first_state, memories)
            last_states.append(x[-1])
            contexts += read
            weights += alphas
        steps = Steps(words, x.transpose(0, 1), contexts, weights)
        return steps, replace(state, states=torch.cat(last_states, dim=1), length=state.length + tokens.size(1))

    def read_out(self, steps: Steps) -> Tensor:
        """Compute t after dropout, (R, m, E)."""
        return self.dropout(self.readout(torch.cat([steps.words, steps.states, *steps.contexts], dim=-1)))


@torch.no_grad()
def initialize_recurrent(model: nn.Module, std: float, uniform: float = 0.0) -> None:
    """Draw the initial weights as Zhang, Xiong, Su (2018), section 4.2, do: recurrent weights are random orthogonal
    matrices, and all other weights have mean zero and one standard deviation. The paper does not name their
    distribution; here, as in dl4mt, it is normal. Biases and the embedding of padding are zero. A model that gets its
    weights from a checkpoint draws none, because that takes longer than loading them.

    Args:
        std: the standard deviation of the normal distribution (paper: 0.01).
        uniform: if above 0, all weights and biases, except for the embedding of padding, come instead from the uniform
            distribution in ± this value, as in the program of Zhang et al. (AAAI 2018): 0.08.
    """
    if IS_LOADING.get():
        return
    for module in model.modules():
        if uniform:
            for parameter in module.parameters(recurse=False):
                nn.init.uniform_(parameter, -uniform, uniform)
            continue
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, AdditiveAttention):
            nn.init.normal_(module.energy, std=std)
        if isinstance(module, GRUCell):
            for block in module.recurrent.chunk(3):  # update gate, reset gate, candidate
                nn.init.orthogonal_(block)
    # This comes last, because an embedding may also be the weight of a linear layer.
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            module.weight[module.padding_idx].zero_()
