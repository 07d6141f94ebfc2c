"""A recurrent decoder with attention: conditional GRUs over the target words, and a readout.

    p(y_j) = softmax(O dropout(t_j) + c)

:mod:`~.readout` computes t_j from the previous word, the state of the top layer and all contexts.

Letters: S sentences, R = S · beam hypotheses (in training R = S), m target tokens, n memory positions, D memory width,
E embedding width, d state width, L layers, V types.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import torch
from fairseq.models import FairseqIncrementalDecoder
from fairseq.modules.fairseq_dropout import FairseqDropout
from fairseq.utils import get_incremental_state, set_incremental_state
from torch import Tensor, nn

from .attention_memory import ProjectedMemory
from .conditional_gru import ConditionalGRU
from .output_features import OutputFeatures
from .readout import Readout
from .source_memory import DecodingState, SourceMemory


class Steps(NamedTuple):
    """The hidden values of a decoder for each of m words, from which the readout computes the next word."""

    words: Tensor  # (R, m, E)
    states: Tensor  # (R, m, d), states of the top layer
    contexts: list[Tensor]  # one for each attention, (R, m, D)
    weights: list[Tensor]  # weights of each attention over the positions of its memory, (R, m, n)


class RecurrentDecoder(FairseqIncrementalDecoder):
    """L layers of conditional GRUs.

    Args:
        dictionary: the target dictionary.
        embed_dim: E, which is also the width of the readout.
        dim: d.
        layers: for each layer, the widths of the memories it attends to, in the groups of
            :class:`~.conditional_gru.ConditionalGRU`.
        dropout: probability of dropping an entry of the readout.
        heads: heads of multi-head attention; 0 is additive attention.
        embedding: the embedding of the target words, if it is shared with another decoder.
        alignment_layer: the attention whose weights are the alignment.
        plain: compute the equations with autograd instead of the kernels.
        input_dropout: probability of dropping an entry of a word embedding.
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
        plain: bool = False,
        input_dropout: float = 0.0,
    ):
        super().__init__(dictionary)
        self.alignment_layer = alignment_layer
        input_dims = [embed_dim] + [dim] * (len(layers) - 1)
        self.embedding = embedding or nn.Embedding(len(dictionary), embed_dim, dictionary.pad())
        self.initial_state = nn.Linear(dim, len(layers) * dim)
        self.layers = nn.ModuleList(
            self.make_layer(input_dim, dim, groups, heads, plain)
            for input_dim, groups in zip(input_dims, layers, strict=True)
        )
        context_dims = [width for layer in self.layers for width in layer.context_dims]
        self.readout = Readout([embed_dim, dim, *context_dims], embed_dim)
        self.dropout = FairseqDropout(dropout, module_name=type(self).__name__)
        self.input_dropout = FairseqDropout(input_dropout, module_name=type(self).__name__)
        self.output = nn.Linear(embed_dim, len(dictionary))
        self.need_attn = True

    def make_layer(self, input_dim: int, dim: int, groups: list[list[int]], heads: int, plain: bool) -> nn.Module:
        return ConditionalGRU(input_dim, dim, groups, heads, plain)

    def _by_layer(self, memories: Sequence) -> Iterator[tuple[nn.Module, list]]:
        """Yield each layer with the memories that its attentions read."""
        remaining = iter(memories)
        for layer in self.layers:
            yield layer, list(islice(remaining, len(layer.attentions)))

    def begin(self, encoder_out: SourceMemory) -> DecodingState:
        """Compute, once per sentence, the state before the first step: the projected memories, and the initial state of
        each layer from the encoder's final state."""
        projected = [memory for layer, own in self._by_layer(encoder_out.memories) for memory in layer.project(own)]
        return DecodingState(torch.tanh(self.initial_state(encoder_out.final_state)), tuple(projected))

    def run(self, tokens: Tensor, state: DecodingState) -> tuple[Steps, DecodingState]:
        """Run the layers over the next tokens (R, m). If `state` comes from :meth:`begin`, R may be a multiple of S."""
        if state.length == 0:
            state = state.for_rows(len(tokens))
        words = self.embedding(tokens)
        # A search in training has no gradients, and drops nothing. --retain-dropout drops in generation.
        if torch.is_grad_enabled() or self.input_dropout.apply_during_inference:
            words = self.input_dropout(words)
        x, last_states, contexts, weights = words.transpose(0, 1), [], [], []
        first_states = state.states.chunk(len(self.layers), dim=1)
        for (layer, memories), first_state in zip(self._by_layer(state.memories), first_states, strict=True):
            x, read, alphas = layer(x, first_state, memories)
            last_states.append(x[-1])
            contexts += read
            weights += alphas
        steps = Steps(words, x.transpose(0, 1), contexts, weights)
        return steps, replace(state, states=torch.cat(last_states, dim=1), length=state.length + tokens.size(1))

    def read_out(self, steps: Steps) -> Tensor:
        """Compute t, (R, m, E)."""
        return self.readout(steps.words, steps.states, *steps.contexts)

    def logits(self, steps: Steps) -> Tensor:
        """Compute the logits (R, m, V)."""
        return self.output(self.dropout(self.read_out(steps)))

    def decoder_out(self, steps: Steps, memories: Sequence[ProjectedMemory]) -> tuple[Tensor, dict]:
        """What fairseq expects of a decoder: logits (R, m, V), and the weights of its attentions to the memories."""
        attentions = []
        if self.need_attn:
            attentions = [memory.in_columns(alpha) for memory, alpha in zip(memories, steps.weights, strict=True)]
        alignment = attentions[self.alignment_layer] if attentions else None
        return self.logits(steps), {"attn": [alignment], "attentions": attentions, "inner_states": None}

    def features(self, steps: Steps, target_slots: Tensor) -> OutputFeatures:
        """Return t after dropout at some positions, flat indices into (R, m), with O and c.

        The weights are returned as views, because distributed training treats a parameter that a model returns directly
        as unused.
        """
        hidden = self.dropout(self.read_out(steps)).flatten(0, 1).index_select(0, target_slots)
        weight, bias = self.output.weight, self.output.bias
        return OutputFeatures(hidden, weight.view_as(weight), bias.view_as(bias))

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: SourceMemory,
        incremental_state: dict | None = None,
        target_slots: Tensor | None = None,
        **unused,
    ) -> tuple[Tensor, dict] | OutputFeatures:
        """Return logits for the tokens that `incremental_state` has not seen; without a state, for all tokens.

        Args:
            prev_output_tokens: (R, t + m) target input so far, the start symbol first, padding on the right.
            encoder_out: the encoder's output for S sentences; R is a multiple of S.
            incremental_state: fairseq's incremental state, which stores the :class:`DecodingState` after the first t
                tokens.
            target_slots: return :meth:`features` at these positions instead.

        Returns:
            Logits (R, m, V), and a dictionary: "attentions" are the weights of every attention, (R, m, n) each, and
            "attn" is [the weights of the alignment layer]. If generation does not need attention, "attentions" is empty
            and "attn" is [None].
        """
        state = get_incremental_state(self, incremental_state, "decoding") or self.begin(encoder_out)
        new_tokens = prev_output_tokens[:, state.length :]
        steps, state = self.run(new_tokens, state)
        set_incremental_state(self, incremental_state, "decoding", state)
        return self.decoder_out(steps, state.memories) if target_slots is None else self.features(steps, target_slots)

    def reorder_incremental_state(self, incremental_state: dict, new_order: Tensor) -> None:
        state = get_incremental_state(self, incremental_state, "decoding")
        if state is not None:
            set_incremental_state(self, incremental_state, "decoding", state.reorder(new_order))

    def reorder_hypotheses(self, incremental_state: dict, new_order: Tensor) -> None:
        """Reorder as above, where each row continues one of the same sentence. This does not wait for the device."""
        state = get_incremental_state(self, incremental_state, "decoding")
        set_incremental_state(self, incremental_state, "decoding", state.reorder_hypotheses(new_order))

    def make_generation_fast_(self, need_attn: bool = False, **unused) -> None:
        """fairseq's hook before generation. It turns attention weights off unless they will be printed."""
        self.need_attn = bool(need_attn)
