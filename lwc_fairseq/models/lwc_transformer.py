"""Layer-wise coordinated Transformer: He, Tan, Xia, He, Qin, Chen, Liu,
*Layer-Wise Coordination between Encoder and Decoder for Neural Machine Translation*, NeurIPS 2018.

Source and target go through the same N layers side by side. Layer i of the source reads layer i-1 of the source;
layer i of the target reads, in one softmax, layer i-1 of the source and of the target so far (mixed attention,
eq. 3). Attention, feed-forward and layer-norm weights of a layer serve both sides. So the model is one stack over one
packed stream of tokens, and its encoder and decoder are two ways to run that stack: the source alone, keeping its
keys and values, and the target token by token on top of them.

Letters: B sentences, n source and m target tokens, T packed tokens, H heads, d width, V types; in decoding S sentences
and R = S · beam hypotheses. True in a padding mask means padding.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqEncoder, FairseqIncrementalDecoder, register_model
from fairseq.utils import get_incremental_state, set_incremental_state
from omegaconf import II
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lwc_fairseq_compat import UserError

from ..data.packing import Packing, pack, pad_rows
from ..modules.coordinated_layer import CoordinatedLayer, SeparateAttentionLayer
from ..modules.decoding_cache import SourceCache, TargetCache, TargetLayer
from ..modules.embedding import ConcatEmbedding
from ..modules.mixed_attention import Attend, StepAttention, attend_packed
from ..modules.output_features import OutputFeatures
from ..modules.separate_attention import PackedSeparateAttention, SeparateAttend, StepSeparateAttention
from .interface import DecoderAttention, TranslationModel
from .presets import register_preset


@dataclass
class LWCTransformerConfig(FairseqDataclass):
    """Sizes of the paper's base model."""

    layers: int = field(default=14, metadata={"help": "layers; each serves source and target (paper: 10 to 22)"})
    embed_dim: int = field(default=512, metadata={"help": "width of the model, d"})
    ffn_embed_dim: int = field(default=2048, metadata={"help": "width of the feed-forward network"})
    attention_heads: int = field(default=8, metadata={"help": "attention heads, a divisor of --embed-dim"})
    dropout: float = field(default=0.1, metadata={"help": "dropout of embeddings and sub-layer outputs"})
    activation_dropout: float = field(default=0.0, metadata={"help": "dropout after the feed-forward network's ReLU"})
    attention_dropout: float = field(
        default=0.0, metadata={"help": "dropout of attention weights; above 0 the slower masked kernel trains"}
    )
    normalize_after: bool = field(
        default=False, metadata={"help": "layer norm after each sub-layer (post-norm) instead of before (pre-norm)"}
    )
    alignment_layer: int = field(
        default=-1, metadata={"help": "layer, from 0, whose attention --print-alignment shows; -1 is the last"}
    )
    unshared_weights: bool = field(
        default=False,
        metadata={"help": "ablation: half of --layers serve the source, the other half the target"},
    )
    separate_attention: bool = field(
        default=False,
        metadata={"help": "ablation: attention to the target so far, then to the source, instead of mixed attention"},
    )
    no_side_embedding: bool = field(
        default=False, metadata={"help": "ablation: no source and target embedding beside that of the word"}
    )
    no_position_embedding: bool = field(default=False, metadata={"help": "ablation: no positions"})
    checkpoint_activations: bool = field(
        default=False,
        metadata={
            "help": "keep only what goes into each layer, and run it again for its gradients: less memory, slower"
        },
    )
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")

    def check(self) -> None:
        """Raises UserError, a ValueError, that names the setting which cannot be."""
        for name in ("layers", "embed_dim", "ffn_embed_dim", "attention_heads"):
            if getattr(self, name) < 1:
                raise UserError(f"--{name.replace('_', '-')} {getattr(self, name)}: must be at least 1")
        if self.embed_dim % self.attention_heads:
            raise UserError(
                f"--embed-dim {self.embed_dim} is not divisible by --attention-heads {self.attention_heads}: "
                "choose a number of heads that divides it"
            )
        if self.embed_dim % 2:
            raise UserError(f"--embed-dim {self.embed_dim} is odd: sinusoidal positions need an even width")
        for name in ("dropout", "activation_dropout", "attention_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"--{name.replace('_', '-')} {getattr(self, name)}: must be in [0, 1)")
        if self.unshared_weights and self.layers % 2:
            raise UserError(
                f"--layers {self.layers} --unshared-weights: half of the layers serve the source; give an even number"
            )
        depth = self.target_layers
        if not -depth <= self.alignment_layer < depth:
            raise UserError(
                f"--alignment-layer {self.alignment_layer}: with {depth} layers on the target side it must be from "
                f"{-depth} to {depth - 1}"
            )

    @property
    def target_layers(self) -> int:
        """Layers that a target token goes through."""
        return self.layers // 2 if self.unshared_weights else self.layers


class CoordinatedStack(nn.Module):
    """Embedding, N coordinated layers and, with pre-norm, the final layer norm."""

    def __init__(self, cfg: LWCTransformerConfig, types: int, padding_idx: int):
        super().__init__()
        self.padding_idx = padding_idx
        self.attention_dropout = cfg.attention_dropout
        self.separate_attention = cfg.separate_attention
        self.checkpoint_activations = cfg.checkpoint_activations
        self.embedding = ConcatEmbedding(
            types,
            cfg.embed_dim,
            padding_idx,
            max_positions=max(cfg.max_source_positions, cfg.max_target_positions),
            dropout=cfg.dropout,
            with_sides=not cfg.no_side_embedding,
            with_positions=not cfg.no_position_embedding,
        )
        self.layers = make_layers(cfg)
        self.norm = None if cfg.normalize_after else nn.LayerNorm(cfg.embed_dim)

    def forward(
        self, tokens: Tensor, sides: Tensor, positions: Tensor, attend: Callable[[int], Attend | SeparateAttend]
    ) -> Tensor:
        """Token ids, sides and positions, one shape (...), to states (..., d); attend(i) is layer i's attention."""
        x = self.embedding(tokens, sides, positions)
        for i, layer in enumerate(self.layers):
            x = self.run_layer(layer, x, attend(i))
        return x if self.norm is None else self.norm(x)

    def run_layer(self, layer: nn.Module, x: Tensor, attend: Attend | SeparateAttend) -> Tensor:
        if self.checkpoint_activations and self.training and torch.is_grad_enabled():
            return checkpoint(layer, x, attend, use_reentrant=False)
        return layer(x, attend)

    def run_packed(self, packing: Packing, record: Callable[[Tensor], None] | None = None) -> Tensor:
        """States (T, d) of the packed stream; `record` is shown each layer's queries, keys, values (T, 3, H, d/H)."""
        attend = self.attend_packed(packing)
        if record is not None and self.separate_attention:
            attend.to_own_side = recorded(attend.to_own_side, record)
        elif record is not None:
            attend = recorded(attend, record)
        return self(packing.tokens, packing.sides, packing.positions, lambda layer: attend)

    def attend_packed(self, packing: Packing) -> Attend | PackedSeparateAttention:
        """Which token of the packed stream sees which."""
        dropout = self.attention_dropout if self.training else 0.0
        if self.separate_attention:
            return PackedSeparateAttention(packing, dropout)
        return attend_packed(packing, self.embedding.tokens.weight, dropout)

    def attend_step(self, *args) -> StepAttention | StepSeparateAttention:
        """The same for new target tokens in one layer; arguments are those of :class:`StepAttention`."""
        return (StepSeparateAttention if self.separate_attention else StepAttention)(*args)


class UnsharedStack(CoordinatedStack):
    """The ablation without shared weights: layers of their own for source and target, half as many of each.

    Layer i of the target attends to the source as layer i of the source leaves it, which the target's layer projects
    with its own weights. (If it read the source below that layer, as with shared weights, the top layer of the source
    would serve nothing.)
    """

    def __init__(self, cfg: LWCTransformerConfig, types: int, padding_idx: int):
        super().__init__(cfg, types, padding_idx)
        self.source_layers = make_layers(cfg)

    def run_packed(self, packing: Packing, record: Callable[[Tensor], None] | None = None) -> Tensor:
        attend, is_target = self.attend_packed(packing), packing.sides.bool()[:, None]
        x = self.embedding(packing.tokens, packing.sides, packing.positions)
        for source_layer, layer in zip(self.source_layers, self.layers, strict=True):
            x = torch.where(is_target, x, self.run_layer(source_layer, x, attend))
            if record is not None:
                record(layer.project(x))
            if packing.target_width:
                x = torch.where(is_target, self.run_layer(layer, x, attend), x)
        return x if self.norm is None else self.norm(x)


def recorded(attend: Attend, record: Callable[[Tensor], None]) -> Attend:
    """The same attention, whose queries, keys and values `record` is shown."""

    def attend_and_record(qkv: Tensor) -> Tensor:
        record(qkv)
        return attend(qkv)

    return attend_and_record


def make_layers(cfg: LWCTransformerConfig) -> nn.ModuleList:
    """The layers that a target token goes through, or as many for the source."""
    layer = SeparateAttentionLayer if cfg.separate_attention else CoordinatedLayer
    sizes = cfg.embed_dim, cfg.ffn_embed_dim, cfg.attention_heads
    settings = cfg.dropout, cfg.activation_dropout, cfg.normalize_after
    return nn.ModuleList(layer(*sizes, *settings) for _ in range(cfg.target_layers))


class LWCEncoder(FairseqEncoder):
    """The stack over the source alone. No source state depends on the target, so it runs once a sentence."""

    def __init__(self, cfg: LWCTransformerConfig, dictionary, stack: CoordinatedStack):
        super().__init__(dictionary)
        self.stack = stack
        self.max_source_positions = cfg.max_source_positions

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **unused) -> SourceCache:
        """Source tokens (B, N), padded on either side, to each layer's keys and values for them."""
        packing = pack(src_tokens, src_tokens[:, :0], self.stack.padding_idx)
        keys, values = [], []

        def record(qkv: Tensor) -> None:
            padded = pad_rows(qkv[:, 1:], packing.source_slots, packing.sentences, packing.source_width)
            key, value = padded.permute(2, 0, 3, 1, 4).unbind()  # (B, H, N, d/H), the layout of matrix products
            keys.append(key.contiguous())
            values.append(value.contiguous())

        self.stack.run_packed(packing, record)
        return SourceCache(tuple(keys), tuple(values), src_tokens.eq(self.stack.padding_idx))

    def reorder_encoder_out(self, encoder_out: SourceCache, new_order: Tensor) -> SourceCache:
        return encoder_out.reorder(new_order)

    def max_positions(self) -> int:
        return self.max_source_positions


class LWCDecoder(FairseqIncrementalDecoder):
    """The stack over new target tokens, on top of cached source and target keys and values."""

    def __init__(self, cfg: LWCTransformerConfig, dictionary, stack: CoordinatedStack):
        super().__init__(dictionary)
        # The encoder owns the shared stack. Held here past nn.Module's registration, it stays one set of parameters
        # under one name, in checkpoints too.
        self.__dict__["stack"] = stack
        self.alignment_layer = cfg.alignment_layer % cfg.target_layers
        self.max_target_positions = cfg.max_target_positions
        self.need_attn = True

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: SourceCache,
        incremental_state: dict | None = None,
        **unused,
    ) -> tuple[Tensor, dict]:
        """Logits for the tokens that `incremental_state` has not seen, or for all without one.

        For decoding: keys and values are written into one memory, so gradients do not pass. Training is
        :meth:`LWCTransformerModel.forward`.

        Args:
            prev_output_tokens: (R, t + m) target input so far, the start symbol first, padding on the right.
            encoder_out: of S sentences, of which R is a multiple.
            incremental_state: fairseq's; remembers the first t tokens.

        Returns:
            Logits (R, m, V); "attn": [(R, m, N)] the alignment layer's attention to the source, averaged over heads;
            "attentions": each layer's to source and target, (R, m, H, N + t + m), or with --separate-attention to the
            source alone. [None] and none where generation did not ask for them.
        """
        cache = self._cache(incremental_state, prev_output_tokens, encoder_out)
        past, new_tokens = cache.length, prev_output_tokens[:, cache.length :]
        positions = torch.arange(past, past + new_tokens.size(1), device=new_tokens.device).expand_as(new_tokens)

        cache.reserve(new_tokens.size(1))
        attentions = [
            self.stack.attend_step(keys, values, encoder_out.padding_mask, TargetLayer(cache, i))
            for i, (keys, values) in enumerate(zip(encoder_out.keys, encoder_out.values, strict=True))
        ]
        x = self.stack(new_tokens, torch.ones_like(new_tokens), positions, attentions.__getitem__)
        cache.advance(new_tokens.size(1))

        weights = [attention.weights for attention in attentions] if self.need_attn else []
        width = encoder_out.padding_mask.size(1)
        alignment = weights[self.alignment_layer][..., :width].mean(2) if weights else None
        return self.output_layer(x), {"attn": [alignment], "attentions": weights, "inner_states": None}

    def _cache(self, incremental_state: dict | None, rows: Tensor, encoder_out: SourceCache) -> TargetCache:
        cache = get_incremental_state(self, incremental_state, "target")
        if cache is None:
            sentences, heads, _, head_dim = encoder_out.keys[0].shape
            beam = rows.size(0) // sentences
            cache = TargetCache(len(self.stack.layers), sentences, beam, heads, head_dim, like=encoder_out.keys[0])
            set_incremental_state(self, incremental_state, "target", cache)
        return cache

    def output_layer(self, features: Tensor) -> Tensor:
        """States (..., d) to logits (..., V), through the input embedding."""
        return nn.functional.linear(features, self.stack.embedding.tokens.weight)

    def reorder_incremental_state(self, incremental_state: dict, new_order: Tensor) -> None:
        cache = get_incremental_state(self, incremental_state, "target")
        if cache is not None:
            cache.reorder(new_order)

    def make_generation_fast_(self, need_attn: bool = False, **unused) -> None:
        """fairseq's hook before generation: attention weights are handed out only if they are printed."""
        self.need_attn = bool(need_attn)

    def max_positions(self) -> int:
        return self.max_target_positions


@register_model("lwc_transformer", dataclass=LWCTransformerConfig)
class LWCTransformerModel(TranslationModel):
    """The layer-wise coordinated Transformer.

    Sizes follow the paper: 14 layers, d/feed-forward/heads of 256/1024/4 (small), 512/2048/8 (base) and 1024/2048/16
    (big); input and output embeddings are one table over a joint vocabulary. With 14 layers, small, and 31,300 types
    it has 19.07M parameters, the count in the paper's Table 3.

    The paper does not say where layers are normalised. Its baseline, tensor2tensor of 2018, normalised before the
    sub-layers, and so does this model unless --normalize-after is given. Tried with 22 layers of width 64 on the demo
    corpus (Adam, learning rate 2e-3 after 200 updates of warm-up, 2,000 tokens a batch): normalising before, the
    training perplexity falls to 29 after 250 updates and 12 after 350; normalising after, it stays at 240 from the
    200th to the 250th update, where the run was stopped.

    The ablations of Table 3 are the options --unshared-weights, --separate-attention, --no-side-embedding and
    --no-position-embedding; they go together.

    Training reads the packed stream: from the `concat_translation` task ready-made, from any other fairseq task
    packed here. Both give the same numbers. (An empty line stays empty under `concat_translation` alone.)
    """

    reads_packing = True

    @classmethod
    def build_model(cls, cfg, task) -> "LWCTransformerModel":
        cfg = LWCTransformerConfig.from_namespace(cfg)
        cfg.check()
        source, target = task.source_dictionary, task.target_dictionary
        if source != target:
            raise UserError(
                f"lwc_transformer has one vocabulary for both languages, but the dictionaries differ ({len(source)} "
                f"and {len(target)} types): run fairseq-preprocess with --joined-dictionary"
            )
        make_stack = UnsharedStack if cfg.unshared_weights else CoordinatedStack
        stack = make_stack(cfg, len(source), source.pad())
        return cls(LWCEncoder(cfg, source, stack), LWCDecoder(cfg, target, stack))

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        packing: dict | None = None,
        features_only: bool = False,
    ) -> tuple[Tensor, dict] | OutputFeatures:
        """Teacher forcing: logits (B, m, V) for the next token after each of prev_output_tokens (B, m).

        `packing` holds the fields of :class:`Packing` for this batch; without it the batch is packed here.
        """
        stack = self.encoder.stack
        batch = Packing(**packing) if packing else pack(src_tokens, prev_output_tokens, stack.padding_idx)
        states = stack.run_packed(batch).index_select(0, batch.target_rows)
        if features_only:
            return OutputFeatures(states, stack.embedding.tokens.weight, None)
        features = pad_rows(states, batch.target_slots, batch.sentences, batch.target_width)
        return self.decoder.output_layer(features), {"attn": [None], "inner_states": None}

    def attention(self, src_tokens: Tensor, prev_output_tokens: Tensor) -> DecoderAttention:
        _, extra = self.decoder(prev_output_tokens, self.encoder(src_tokens))
        weights = [layer.transpose(1, 2) for layer in extra["attentions"]]
        width = src_tokens.size(1)
        source = [layer[..., :width] for layer in weights]
        return DecoderAttention(
            source, [] if self.encoder.stack.separate_attention else [layer[..., width:] for layer in weights]
        )


PRESETS = {
    "lwc_transformer_small": {"embed_dim": 256, "ffn_embed_dim": 1024, "attention_heads": 4},
    "lwc_transformer_base": {},
    "lwc_transformer_big": {"embed_dim": 1024, "attention_heads": 16},
}
for name, settings in PRESETS.items():
    register_preset(name, LWCTransformerModel, LWCTransformerConfig, **settings)
