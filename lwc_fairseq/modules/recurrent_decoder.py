"""A recurrent decoder with attention: conditional GRUs over the target words, and the readout.

    p(y_j) = softmax(O dropout(t_j) + c)

with t_j of :mod:`~.readout`, from the word before, the top state and all contexts.

Letters: S sentences, R = S · beam hypotheses (in training R = S), m target tokens, n tokens of a memory, D its width,
E width of embeddings, d of states, L layers, V types.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import torch
from fairseq.models import FairseqIncrementalDecoder
from fairseq.modules.fairseq_dropout import FairseqDropout
from fairseq.utils import get_incremental_state, set_incremental_state
from torch import Tensor, nn

from .attention_memory import Memory
from .conditional_gru import ConditionalGRU
from .output_features import OutputFeatures
from .readout import Readout
from .source_memory import SourceMemory


class Seen(NamedTuple):
    """What decoding remembers of the target."""

    length: int  # t, tokens seen
    states: Tensor  # (R, L · d), of the layers


class Steps(NamedTuple):
    """What a decoder knows after each of m words."""

    words: Tensor  # (R, m, E)
    states: Tensor  # (R, m, d), of the top layer
    contexts: list[Tensor]  # of each attention, (R, m, D)
    attentions: list[Tensor]  # the weights of each, over the columns of its memory's tokens, (R, m, n)


class RecurrentDecoder(FairseqIncrementalDecoder):
    """L layers of conditional GRUs.

    Args:
        dictionary: of the target.
        embed_dim: E, also the width of the readout.
        dim: d.
        layers: for each layer, the widths of the memories it attends to, in the groups of
            :class:`~.conditional_gru.ConditionalGRU`.
        dropout: probability of dropping an entry of the readout.
        heads: of multi-head attention; 0 is additive attention.
        embedding: of the target words, if it is shared with another decoder.
        alignment_layer: the attention whose weights are the alignment.
    """

    def __init__(
        self,
        dictionary,
        embed_dim: int,
        dim: int,
        layers: list[list[list[int]]],
        dropout: float,
        heads: int = 0,
        embedding: nn.Embedding | None = None,
        alignment_layer: int = 0,
    ):
        super().__init__(dictionary)
        self.alignment_layer = alignment_layer
        input_dims = [embed_dim] + [dim] * (len(layers) - 1)
        self.embedding = embedding or nn.Embedding(len(dictionary), embed_dim, dictionary.pad())
        self.initial_state = nn.Linear(dim, len(layers) * dim)
        self.layers = nn.ModuleList(
            self.make_layer(input_dim, dim, groups, heads) for input_dim, groups in zip(input_dims, layers, strict=True)
        )
        context_dims = [width for layer in self.layers for width in layer.context_dims]
        self.readout = Readout([embed_dim, dim, *context_dims], embed_dim)
        self.dropout = FairseqDropout(dropout, module_name=type(self).__name__)
        self.output = nn.Linear(embed_dim, len(dictionary))
        self.need_attn = True

    def make_layer(self, input_dim: int, dim: int, groups: list[list[int]], heads: int) -> ConditionalGRU:
        return ConditionalGRU(input_dim, dim, groups, heads)

    def _by_layer(self, memories: Sequence) -> Iterator[tuple[ConditionalGRU, list]]:
        """Each layer with the memories that its own attentions read."""
        remaining = iter(memories)
        for layer in self.layers:
            yield layer, list(islice(remaining, len(layer.attentions)))

    def start(self, memories: list[Memory], final_state: Tensor) -> SourceMemory:
        """All that decoding starts from, computed once a sentence.

        Args:
            memories: one for each attention, in their order.
            final_state: (S, d), of the encoder. A tanh map of it is the first state.
        """
        projected = [memory for layer, own in self._by_layer(memories) for memory in layer.project(own)]
        return SourceMemory(torch.tanh(self.initial_state(final_state)), tuple(projected))

    def run(
        self, prev_output_tokens: Tensor, encoder_out: SourceMemory, incremental_state: dict | None = None
    ) -> Steps:
        """Run the layers over the tokens (R, t + m) that `incremental_state` has not seen, or over all without one."""
        seen = get_incremental_state(self, incremental_state, "seen")
        if seen is None:
            seen = Seen(0, encoder_out.first_states(len(prev_output_tokens)))
        words = self.embedding(prev_output_tokens[:, seen.length :])
        x, states, contexts, weights = words.transpose(0, 1), [], [], []
        before = seen.states.chunk(len(self.layers), dim=1)
        for (layer, own), state in zip(self._by_layer(encoder_out.memories), before, strict=True):
            x, read, alphas = layer(x, state, own)
            states.append(x[-1])
            contexts += read
            weights += alphas
        now_seen = Seen(prev_output_tokens.size(1), torch.cat(states, dim=1))
        set_incremental_state(self, incremental_state, "seen", now_seen)
        memories = encoder_out.memories if self.need_attn else ()
        attentions = [memory.in_columns(alpha) for memory, alpha in zip(memories, weights, strict=False)]
        return Steps(words, x.transpose(0, 1), contexts, attentions)

    def read_out(self, steps: Steps) -> Tensor:
        """t, (R, m, E), of all that was run."""
        return self.readout(steps.words, steps.states, *steps.contexts)

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: SourceMemory,
        incremental_state: dict | None = None,
        features_only: bool = False,
        **unused,
    ) -> tuple[Tensor, dict] | OutputFeatures:
        """Logits for the tokens that `incremental_state` has not seen, or for all without one.

        Args:
            prev_output_tokens: (R, t + m) target input so far, the start symbol first, padding on the right.
            encoder_out: of S sentences, of which R is a multiple.
            incremental_state: fairseq's; remembers the states after the first t tokens.
            features_only: return :meth:`features` instead.

        Returns:
            Logits (R, m, V); "attentions": the weights of every
            attention, (R, m, n) each; "attn": [those of the alignment layer]. Both are empty ([None] for "attn") where
            generation did not ask for them.
        """
        steps = self.run(prev_output_tokens, encoder_out, incremental_state)
        attn = steps.attentions[self.alignment_layer] if steps.attentions else None
        extra = {"attn": [attn], "attentions": steps.attentions, "inner_states": None}
        if features_only:
            return self.features(steps, prev_output_tokens)
        return self.output(self.dropout(self.read_out(steps))), extra

    def features(self, steps: Steps, tokens: Tensor) -> OutputFeatures:
        """t after dropout of the real ones among the tokens (R, m) that were run, with O and c.

        The weights are views, because distributed training treats a parameter that is returned bare as unused.
        """
        hidden = self.dropout(self.read_out(steps))[tokens.ne(self.dictionary.pad())]
        weight, bias = self.output.weight, self.output.bias
        return OutputFeatures(hidden, weight.view_as(weight), bias.view_as(bias))

    def reorder_incremental_state(self, incremental_state: dict, new_order: Tensor) -> None:
        seen = get_incremental_state(self, incremental_state, "seen")
        if seen is not None:
            reordered = Seen(seen.length, seen.states.index_select(0, new_order))
            set_incremental_state(self, incremental_state, "seen", reordered)

    def make_generation_fast_(self, need_attn: bool = False, **unused) -> None:
        """fairseq's hook before generation: attention weights are handed out only if they are printed."""
        self.need_attn = bool(need_attn)
