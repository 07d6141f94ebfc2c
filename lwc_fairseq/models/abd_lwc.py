"""Asynchronous bidirectional decoding within the layer-wise coordinated Transformer. No paper describes this model; it
joins the ideas of two:

- In LWC (He et al., NeurIPS 2018; :mod:`~.lwc_transformer`), source and target pass through the same layers, and a
  target token attends, in one softmax a layer, to the source and to the target so far.
- In ABD (Zhang et al., AAAI 2018; :mod:`~.abd`), a backward decoder first translates from right to left, and the
  forward decoder attends to what it has written as it attends to the source.

Here the backward translation is one more segment of LWC's stream. Let x be the source, b_0 ... b_T the backward
translation from its start symbol to its end symbol, and y the target. All pass through the layers of LWC, with one set
of weights. In each layer, the token in the first column attends, in one softmax, to those in the second:

    x_i    x                                          the whole source
    b_j    x, b_0 ... b_j                             P(b_{j+1} | b_<=j, x)
    y_i    x, b_0 ... b_T, y_0 ... y_i                P(y_{i+1} | y_<=i, b, x)

:func:`~lwc_fairseq.modules.mixed_attention.who_sees_whom` says this as a mask. Windows limit how far a token sees in
its own segment, and nothing else. Positions restart in each segment, and an embedding of three rows marks the side. For
both directions, the table of token embeddings turns states into logits.

In generation, b is the result of a greedy search by the model itself. In training, too, it is searched for in every
update, without dropout and without gradients. The packed stream then has four segments:

    x, b, the reversed reference, y

The reversed reference attends as b does, and no other segment attends to it; it serves the backward term of the loss,
which the criterion `bidirectional_cross_entropy` weights with 1 - λ. Gradients of the forward term flow into the states
of b, but not through the choice of its tokens. With --reverse-context reference, training does not search: the reversed
reference is b. With translations, b is a translation that stands beside the data.

Letters: B sentences (S in decoding), n source and m target tokens, N width of the padded source, T + 1 tokens of the
backward translation, H heads, d width of the model, V types. True in a padding mask means padding.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from fairseq.models import register_model
from torch import Tensor

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.errors import flag

from ..data.packing import BACKWARD, REFERENCE, SOURCE, TARGET, Packing, pack_segments, pad_rows
from ..data.reverse import reverse_inputs
from ..modules.mixed_attention import (
    Attend,
    PaddedAttention,
    SourceCache,
    TargetCache,
    active_rate,
    mixed_attention_mask,
)
from ..modules.reverse_search import ReverseContextOption, choose_greedily
from .interface import BidirectionalModel, DecoderAttention, ReverseContextModel, register_preset
from .lwc_transformer import (
    SMALL,
    ConcatEmbedding,
    CoordinatedStack,
    LWCDecoder,
    LWCEncoder,
    LWCTransformerConfig,
    LWCTransformerModel,
)


@dataclass
class ABDLWCConfig(ReverseContextOption, LWCTransformerConfig):
    """The options: those of LWC, except for --unshared-weights and --separate-attention, and those of the backward
    translation."""

    def check(self) -> None:
        super().check()
        for name in ("unshared_weights", "separate_attention"):
            if getattr(self, name):
                raise UserError(f"{flag(name)}: abd_lwc has no such ablation; leave the option out")


class ThreeSidesEmbedding(ConcatEmbedding):
    """LWC's embedding of the input, with a third side, which the backward translation and the reversed reference
    share."""

    def __init__(self, cfg: ABDLWCConfig, types: int, padding_idx: int):
        super().__init__(cfg, types, padding_idx, sides=3)

    def forward(self, tokens: Tensor, sides: Tensor, positions: Tensor) -> Tensor:
        return super().forward(tokens, sides.where(sides != REFERENCE, BACKWARD), positions)


class ABDLWCStack(CoordinatedStack):
    """LWC's stack, and the search for the backward translation."""

    embedding_type = ThreeSidesEmbedding

    def __init__(self, cfg: ABDLWCConfig, types: int, padding_idx: int, eos: int):
        super().__init__(cfg, types, padding_idx)
        self.cfg, self.eos = cfg, eos

    def packed_attention(self, packing: Packing, window: int | None) -> Attend:
        if not packing.target_width:
            return super().packed_attention(packing, window)
        # The flash kernel runs the two sides of LWC alone.
        return PaddedAttention(packing, mixed_attention_mask(packing, window), active_rate(self.attention_dropout))

    def translate_backward(self, source: SourceCache) -> Tensor:
        """Search greedily for the backward translations (S, T), the end symbol last, and then padding."""
        limits = self.cfg.reverse_limits(source.padding_mask).clamp(max=self.cfg.max_target_positions - 1)
        cache = TargetCache(source, rows=len(limits))

        def next_logits(token: Tensor, sentences: Tensor) -> Tensor:
            states, _ = self.step(token, source, cache, BACKWARD)
            return self.logits(states)[:, -1]

        def keep(rows: Tensor) -> None:
            nonlocal source
            source = source.reorder(rows)
            cache.reorder(rows)

        tokens = choose_greedily(next_logits, keep, limits, self.eos, self.padding_idx)
        at_limit = torch.arange(1, tokens.size(1) + 1, device=tokens.device) == limits[:, None]
        return tokens.masked_fill(at_limit & tokens.ne(self.padding_idx), self.eos)

    def begun(self, reverse_tokens: Tensor) -> Tensor:
        """Return backward translations (S, T), the end symbol last, with the start symbol before them, (S, T + 1). What
        the table of positions is too short for is left out."""
        return F.pad(reverse_tokens, (1, 0), value=self.eos)[:, : self.cfg.max_target_positions]


@dataclass(frozen=True)
class BilingualCache(SourceCache):
    """The output of the encoder: each layer's keys and values of the source and then of the backward translation.

    So keys and values have N + T + 1 columns, all of which the forward decoder reads as LWC's decoder reads the source.
    """

    source_width: int = 0  # N


class ABDLWCEncoder(LWCEncoder):
    """The stack over the source, and over the backward translation, which it searches for unless it is given."""

    stack: ABDLWCStack

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor | None = None, reverse_tokens: Tensor | None = None, **unused
    ) -> BilingualCache:
        """Return each layer's keys and values for source tokens (S, N), padded on either side, and for their backward
        translations."""
        source = super().forward(src_tokens)
        tokens = self.stack.translate_backward(source) if reverse_tokens is None else reverse_tokens
        translation = self.stack.begun(tokens)
        cache = TargetCache(source, rows=len(translation))
        self.stack.step(translation, source, cache, BACKWARD)  # keys and values at padding mean nothing
        # (layers, 2, S, H, T + 1, d/H): a backward translation is the only hypothesis of its sentence
        backward = cache.memory[:, :, :, :, : translation.size(1), 0]
        keys = tuple(torch.cat(pair, dim=2) for pair in zip(source.keys, backward[:, 0], strict=True))
        values = tuple(torch.cat(pair, dim=2) for pair in zip(source.values, backward[:, 1], strict=True))
        padding_mask = torch.cat([source.padding_mask, translation.eq(self.stack.padding_idx)], dim=1)
        return BilingualCache(keys, values, padding_mask, source_width=src_tokens.size(1))


class ABDLWCDecoder(LWCDecoder):
    """The stack over new target tokens, which attend to the source, the backward translation and the target so far."""

    def forward(  # type: ignore[override]
        self, prev_output_tokens: Tensor, encoder_out: BilingualCache, incremental_state: dict | None = None, **unused
    ) -> tuple[Tensor, dict]:
        """Return what :meth:`LWCDecoder.forward` returns. Attention to the source and to the backward translation are
        separate; the weights of both and of the target so far sum to 1."""
        logits, extra = super().forward(prev_output_tokens, encoder_out, incremental_state)
        width, weights = encoder_out.source_width, extra["attentions"]
        if extra["attn"] is not None:
            extra["attn"] = [alignment[..., :width] for alignment in extra["attn"]]
        extra["attentions"] = DecoderAttention(
            [layer[..., :width] for layer in weights.source],
            weights.target,
            [layer[..., width:] for layer in weights.source],
        )
        return logits, extra


@register_model("abd_lwc", dataclass=ABDLWCConfig)
class ABDLWCModel(LWCTransformerModel, BidirectionalModel, ReverseContextModel):
    """LWC whose target reads the whole backward translation.

    The number of weights is that of LWC of the same size, and a third side embedding.

    With a criterion other than `bidirectional_cross_entropy`, the model trains as with λ = 1: it never learns to
    translate backward, except through what the forward term makes of it.
    """

    encoder_class = ABDLWCEncoder
    decoder_class = ABDLWCDecoder

    @classmethod
    def build_stack(cls, cfg: ABDLWCConfig, dictionary) -> ABDLWCStack:
        return ABDLWCStack(cfg, len(dictionary), dictionary.pad(), dictionary.eos())

    def forward(  # type: ignore[override]
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        features_only: bool = False,
        backward: bool = False,
        reverse_tokens: Tensor | None = None,
        over_translations: bool = False,
    ) -> tuple[Tensor, dict]:
        """Teacher forcing, as in :class:`~.interface.BidirectionalModel`, for src_tokens (B, N) and prev_output_tokens
        (B, m), the start symbol first, with padding on either side. The stack is the backward decoder, too."""
        self.require_translations(reverse_tokens)
        stack, pad = self.encoder.stack, self.encoder.stack.padding_idx
        reversed_inputs = reverse_inputs(prev_output_tokens, pad)
        segments = {SOURCE: src_tokens}
        if self.training and stack.cfg.reverse_context == "reference":
            segments[BACKWARD] = F.pad(reversed_inputs, (0, 1), value=stack.eos)
        else:
            is_given = reverse_tokens is not None
            segments[BACKWARD] = stack.begun(reverse_tokens) if is_given else self.reverse_translations(src_tokens)
            if backward and not over_translations:
                segments[REFERENCE] = reversed_inputs
        segments[TARGET] = prev_output_tokens

        packing = pack_segments(segments, pad)
        states = pad_rows(stack(packing), packing.target_slots, packing.sentences, packing.target_width)
        _, *sides = segments
        widths = [segments[side].size(1) for side in sides]
        by_side = dict(zip(sides, states.split(widths, dim=1), strict=True))
        out, extra = self.output(by_side[TARGET], features_only)
        if backward:
            read = by_side[REFERENCE] if REFERENCE in by_side else by_side[BACKWARD][:, :-1]
            extra["backward"] = self.output(read, features_only)
        return out, extra

    @property
    def reads_translations(self) -> bool:
        return self.encoder.stack.cfg.reverse_context == "translations"

    @torch.no_grad()
    def reverse_translations(self, src_tokens: Tensor) -> Tensor:
        """Return the backward translations (B, T + 1) of sources (B, N), without dropout: the start symbol first, the
        end symbol last, then padding."""
        stack, training = self.encoder.stack, self.training
        stack.eval()
        try:
            return stack.begun(stack.translate_backward(LWCEncoder.forward(self.encoder, src_tokens)))
        finally:
            stack.train(training)


for name, settings in {"abd_lwc_small": SMALL, "abd_lwc_base": {}}.items():
    register_preset(name, ABDLWCModel, ABDLWCConfig, **settings)
