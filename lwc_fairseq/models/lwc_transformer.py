"""Layer-wise coordinated Transformer: He, Tan, Xia, He, Qin, Chen, Liu,
*Layer-Wise Coordination between Encoder and Decoder for Neural Machine Translation*, NeurIPS 2018.

Source and target pass through the same layers. Layer i of the source attends to layer i - 1 of the source. Layer i of
the target attends, in one softmax, to layer i - 1 of the source and of the target so far (mixed attention, eq. 3).
Both sides share the attention, feed-forward and layer-norm weights of a layer, so the model is one stack of layers. In
training, the stack runs over source and target together, as one packed stream of tokens. In decoding, the encoder runs
the stack over the source and returns each layer's keys and values. The decoder runs the stack over the new target
tokens, which attend to these keys and values.

Letters: B sentences, n source and m target tokens, N width of the padded source, T packed tokens, H heads, d width of
the model, V types. In decoding, S sentences, R = S · beam hypotheses, t target tokens decoded before and m new ones.
True in a padding mask means padding.
"""

from collections.abc import Callable, Iterable
from functools import partial

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder, FairseqIncrementalDecoder, register_model
from fairseq.utils import get_incremental_state, set_incremental_state
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lwc_fairseq_compat import UserError

from ..data.packing import Packing, pack, pad_rows, repack
from ..modules.borrowed import Borrowed
from ..modules.coordinated_layer import CoordinatedLayer
from ..modules.embedding import ConcatEmbedding
from ..modules.mixed_attention import Attend, StepAttention, attend_packed, step_mask
from ..modules.output_features import OutputFeatures
from ..modules.source_cache import SourceCache, pad_keys_and_values
from ..modules.target_cache import TargetCache
from .interface import DecoderAttention, TranslationModel
from .lwc_config import LWCTransformerConfig
from .presets import register_preset


class CoordinatedStack(nn.Module):
    """The paper's Figure 1: an embedding, layers and, with pre-norm, a final layer norm.

    Three methods loop over the layers: :meth:`forward` in training, :meth:`read_source` in the encoder and :meth:`step`
    in the decoder.
    """

    layer_type = CoordinatedLayer
    step_attention = StepAttention

    def __init__(self, cfg: LWCTransformerConfig, types: int, padding_idx: int):
        super().__init__()
        self.padding_idx = padding_idx
        self.head_dim = cfg.embed_dim // cfg.attention_heads
        self.attention_dropout = cfg.attention_dropout
        self.windows = cfg.layer_windows
        self.checkpoint_activations = cfg.checkpoint_activations
        self.embedding = ConcatEmbedding(
            types,
            cfg.embed_dim,
            padding_idx,
            max_positions=max(cfg.max_source_positions, cfg.max_target_positions),
            dropout=cfg.dropout,
            with_sides=not cfg.no_side_embedding,
            positions=None if cfg.no_position_embedding else str(cfg.positions),
        )
        self.layers = self.make_layers(cfg)
        self.norm = nn.LayerNorm(cfg.embed_dim) if cfg.norm_place == "before" else nn.Identity()

    def make_layers(self, cfg: LWCTransformerConfig) -> nn.ModuleList:
        sizes = cfg.embed_dim, cfg.ffn_embed_dim, cfg.attention_heads
        settings = cfg.dropout, cfg.activation_dropout, cfg.norm_place != "before", cfg.residual_weight
        layers = nn.ModuleList(self.layer_type(*sizes, *settings) for _ in range(cfg.target_layers))
        for layer in layers:
            layer.scale_last_weights(cfg.initial_gain)
        return layers

    def forward(self, packing: Packing) -> Tensor:
        """Return the states (T, d) of a packed stream of sources and targets."""
        attentions = self.packed_attentions(packing)
        x = self.embedding(packing.tokens, packing.sides, packing.positions)
        for layer, attend in zip(self.recomputable(self.layers), attentions, strict=True):
            x = layer(x, attend)
        return self.norm(x)

    def read_source(self, packing: Packing) -> list[tuple[Tensor, Tensor]]:
        """Return each layer's keys and values, (B, H, N, d/H) each, of a packed stream of sources without targets."""
        attentions = self.packed_attentions(packing)
        x = self.embedding(packing.tokens, packing.sides, packing.positions)
        kept = []
        for layer, attend in zip(self.layers, attentions, strict=True):
            qkv = layer.project(x)
            kept.append(pad_keys_and_values(qkv, packing))
            if layer is not self.layers[-1]:  # nothing reads the output of the last layer
                x = layer.finish(x, attend(qkv))
        return kept

    def step(
        self, tokens: Tensor, positions: Tensor, source: SourceCache, target: TargetCache
    ) -> tuple[Tensor, list[StepAttention]]:
        """Return the states (R, m, d) of new target tokens (R, m) at positions (R, m), and each layer's attention."""
        masks = {window: step_mask(source, target, window) for window in set(self.windows)}
        attentions = [self.step_attention(source, target, masks[width], i) for i, width in enumerate(self.windows)]
        x = self.embedding(tokens, torch.ones_like(tokens), positions)
        for layer, attend in zip(self.layers, attentions, strict=True):
            x = layer(x, attend)
        return self.norm(x), attentions

    def packed_attentions(self, packing: Packing) -> list[Attend]:
        """Return the attention of each layer. Layers with the same window share one, and with it their mask."""
        by_window = {window: self.packed_attention(packing, window) for window in set(self.windows)}
        return [by_window[window] for window in self.windows]

    def packed_attention(self, packing: Packing, window: int | None) -> Attend:
        dropout = self.attention_dropout if self.training else 0.0
        return attend_packed(packing, self.embedding.tokens.weight, self.head_dim, dropout, window)

    def recomputable(self, layers: Iterable[nn.Module]) -> Iterable[Callable]:
        """Return the layers. With --checkpoint-activations, the backward pass recomputes their activations."""
        if self.checkpoint_activations and self.training and torch.is_grad_enabled():
            return [partial(checkpoint, layer, use_reentrant=False) for layer in layers]
        return layers


STACKS: dict[tuple[bool, bool], type[CoordinatedStack]] = {(False, False): CoordinatedStack}
"""The stack for each value of (--unshared-weights, --separate-attention); `lwc_ablations.py` adds its own."""


class LWCEncoder(FairseqEncoder):
    """The stack over the source. It runs once per sentence, because no source state depends on the target."""

    def __init__(self, cfg: LWCTransformerConfig, dictionary, stack: CoordinatedStack):
        super().__init__(dictionary)
        self.stack = stack
        self.max_source_positions = cfg.max_source_positions

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **unused) -> SourceCache:
        """Return each layer's keys and values for source tokens (B, N), padded on either side."""
        packing = pack(src_tokens, src_tokens[:, :0], self.stack.padding_idx)
        keys, values = zip(*self.stack.read_source(packing), strict=True)
        return SourceCache(keys, values, src_tokens.eq(self.stack.padding_idx))

    def reorder_encoder_out(self, encoder_out: SourceCache, new_order: Tensor) -> SourceCache:
        return encoder_out.reorder(new_order)

    def max_positions(self) -> int:
        return self.max_source_positions


class LWCDecoder(FairseqIncrementalDecoder):
    """The stack over new target tokens, which attend to the source and the target so far through caches."""

    def __init__(self, cfg: LWCTransformerConfig, dictionary, stack: CoordinatedStack):
        super().__init__(dictionary)
        self.borrowed = Borrowed(stack)  # the encoder owns it
        self.alignment_layer = cfg.alignment_layer % cfg.target_layers
        self.max_target_positions = cfg.max_target_positions
        self.need_attn = True

    def forward(
        self, prev_output_tokens: Tensor, encoder_out: SourceCache, incremental_state: dict | None = None, **unused
    ) -> tuple[Tensor, dict]:
        """Return logits for the tokens that `incremental_state` does not hold yet; without a state, for all tokens.

        Only decoding calls this method: gradients do not pass through the cache. Training calls
        :meth:`LWCTransformerModel.forward`.

        Args:
            prev_output_tokens: (R, t + m) target input so far, the start symbol first, padding on the right.
            encoder_out: the encoder's output for S sentences; R is a multiple of S.
            incremental_state: fairseq's incremental state, which holds the first t tokens.

        Returns:
            Logits (R, m, V); "attn": [(R, m, N)], the alignment layer's attention to the source, averaged over heads;
            "attentions": each layer's :class:`DecoderAttention`. If generation does not print attention, "attn" is
            [None] and "attentions" is empty.
        """
        cache = get_incremental_state(self, incremental_state, "target")
        if cache is None:
            cache = TargetCache.beside(encoder_out, rows=len(prev_output_tokens))
            set_incremental_state(self, incremental_state, "target", cache)
        new_tokens = prev_output_tokens[:, cache.length :]
        new = new_tokens.size(1)
        positions = torch.arange(cache.length, cache.length + new, device=new_tokens.device).expand_as(new_tokens)

        cache.reserve(new)
        x, attentions = self.borrowed.module.step(new_tokens, positions, encoder_out, cache)
        cache.advance(new)

        shown = attentions if self.need_attn else []
        weights = DecoderAttention([layer.source_weights for layer in shown], [layer.target_weights for layer in shown])
        alignment = weights.source[self.alignment_layer].mean(1) if shown else None
        return self.output_layer(x), {"attn": [alignment], "attentions": weights, "inner_states": None}

    def output_layer(self, features: Tensor) -> Tensor:
        """Map states (..., d) to logits (..., V) with the token embeddings as weights."""
        return nn.functional.linear(features, self.borrowed.module.embedding.tokens.weight)

    def reorder_incremental_state(self, incremental_state: dict, new_order: Tensor) -> None:
        cache = get_incremental_state(self, incremental_state, "target")
        if cache is not None:
            cache.reorder(new_order)

    def reorder_hypotheses(self, incremental_state: dict, new_order: Tensor) -> None:
        """Reorder as above, where each row continues one of the same sentence. This does not wait for the device."""
        get_incremental_state(self, incremental_state, "target").reorder_hypotheses(new_order)

    def make_generation_fast_(self, need_attn: bool = False, **unused) -> None:
        """fairseq's hook before generation. It turns attention weights off unless they will be printed."""
        self.need_attn = bool(need_attn)

    def max_positions(self) -> int:
        return self.max_target_positions


@register_model("lwc_transformer", dataclass=LWCTransformerConfig)
class LWCTransformerModel(TranslationModel):
    """The layer-wise coordinated Transformer.

    One table over a joint vocabulary serves as the embedding of both languages and as the output layer. With 31,300
    types, the small preset has 19.07M parameters, as in the paper's Table 3.

    The paper specifies neither the place of the layer norms nor the initial weights. Here, layer norms and residuals
    are those of DeepNorm (Wang et al., *DeepNet*, 2022), and the weights are Xavier's, with the last projection of each
    sub-layer multiplied by (8N)^-¼ for N layers. Experiments that led to this, with one seed unless stated
    otherwise:

    - Multi30k, 10 layers of width 128, learning rate 3e-3 falling to zero over 6 epochs. The loss on the validation set
      and, in parentheses, on the training set is 4.15 (3.98) with DeepNorm. It is 4.24 (4.11) with --layer-norm before
      (pre-norm, as in tensor2tensor of 2018), and 4.19 (4.09) with fairseq's Transformer of 4 + 4 layers, pre-norm.
    - The same over 20 epochs: 3.83 (3.16) with DeepNorm, and 3.83 (3.24) with the Transformer. Over 40 epochs, with
      dropout 0.3, the mean of three seeds: 3.77 (3.20) and 3.75 (3.28). The mean of the last five checkpoints has 42.6
      and 43.2 BLEU.
    - The same model with pre-norm, learning rate 2e-3, 13 epochs: 3.98 (3.53) if the last projections are divided by
      √(2N), the default of --layer-norm before, and 4.03 (3.65) with --residual-gain 1.
    - The first 7,000 pairs of Multi30k, 20 epochs, dropout 0.3: 5.23 (3.25) with DeepNorm, 5.30 (3.43) with pre-norm.
    - Demo corpus, 22 layers of width 64, learning rate 2e-3 after 200 updates of warm-up, 2,000 tokens a batch: the
      training perplexity after 350 updates is 9.0 with DeepNorm and 9.4 with pre-norm. With --layer-norm after, it
      stays at 240 from update 200 to update 250, where that run was stopped.

    The task `concat_translation` packs its batches in advance. The model packs the batches of other tasks itself, with
    the same results. (Only `concat_translation` translates an empty line to an empty line.)
    """

    reads_packing = True

    @classmethod
    def build_model(cls, cfg, task) -> "LWCTransformerModel":
        cfg = cls.read_config(cfg)
        source, target = task.source_dictionary, task.target_dictionary
        if source != target:
            raise UserError(
                f"lwc_transformer has one vocabulary for both languages, but the dictionaries differ ({len(source)} "
                f"and {len(target)} types): run fairseq-preprocess with --joined-dictionary"
            )
        stack = cls.build_stack(cfg, source)
        return cls(LWCEncoder(cfg, source, stack), LWCDecoder(cfg, target, stack))

    @classmethod
    def build_stack(cls, cfg: LWCTransformerConfig, dictionary: Dictionary) -> CoordinatedStack:
        """Build the layers that encoder and decoder share."""
        return STACKS[cfg.unshared_weights, cfg.separate_attention](cfg, len(dictionary), dictionary.pad())

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        packing: dict | None = None,
        target_slots: Tensor | None = None,
    ) -> tuple[Tensor, dict] | OutputFeatures:
        """Teacher forcing. Returns logits (B, m, V) for the token after each of prev_output_tokens (B, m).

        `packing` holds the fields of this batch's :class:`Packing`. Without it, this method packs the batch. With
        `target_slots`, it returns the states of these target tokens.
        """
        stack = self.encoder.stack
        tokens = src_tokens, prev_output_tokens, stack.padding_idx
        batch = repack(packing, *tokens) if packing else pack(*tokens)
        states = stack(batch)
        if target_slots is not None:
            rows = torch.zeros_like(prev_output_tokens).flatten().index_copy(0, batch.target_slots, batch.target_rows)
            return OutputFeatures(states.index_select(0, rows[target_slots]), stack.embedding.tokens.weight, None)
        features = pad_rows(
            states.index_select(0, batch.target_rows), batch.target_slots, batch.sentences, batch.target_width
        )
        return self.decoder.output_layer(features), {"attn": [None], "inner_states": None}

    def attention(self, src_tokens: Tensor, prev_output_tokens: Tensor) -> DecoderAttention:
        _, extra = self.decoder(prev_output_tokens, self.encoder(src_tokens))
        return extra["attentions"]


SMALL = {"embed_dim": 256, "ffn_embed_dim": 1024, "attention_heads": 4}
BIG = {"embed_dim": 1024, "attention_heads": 16}
PRESETS = {
    "lwc_transformer_small": SMALL,
    "lwc_transformer_base": {},
    "lwc_transformer_big": BIG,
    "lwc_local_small": {**SMALL, "windows": "3,5,7,9,11,13,15,17,21,25,29,33,37,41"},
    "lwc_local_big": {**BIG, "windows": "7,15,31,63,63,63,63,63,63,63,63,63,63,63"},
}
for name, settings in PRESETS.items():
    register_preset(name, LWCTransformerModel, LWCTransformerConfig, **settings)
