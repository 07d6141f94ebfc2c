"""The Transformer baselines of the papers: fairseq's own Transformer in their sizes, and one with a context gate."""

import torch
from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerConfig, TransformerDecoderBase, TransformerModel
from fairseq.models.transformer.transformer_legacy import base_architecture
from fairseq.modules.checkpoint_activations import checkpoint_wrapper
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase
from torch import Tensor, nn

from lwc_fairseq_compat import UserError

from .interface import make_preset_class


class PaperTransformer(TransformerModel):
    """fairseq's Transformer as the baseline of He et al. (NeurIPS 2018): one vocabulary, one table of embeddings for
    source, target and output, and layer norm before the sub-layers, as in tensor2tensor, which they used.

    All options of fairseq's Transformer work: --encoder-layers and --decoder-layers (Table 4: 4, 6, 8, 10), widths,
    dropout.
    """

    defaults: dict[str, object] = {"share_all_embeddings": True}

    @classmethod
    def fill_in(cls, args) -> None:
        """Set the options missing from the command line, as fairseq's architecture functions do."""
        for name, value in cls.defaults.items():
            setattr(args, name, getattr(args, name, value))
        base_architecture(args)

    @classmethod
    def build_model(cls, args, task) -> "PaperTransformer":
        source, target = task.source_dictionary, task.target_dictionary
        if source != target:
            raise UserError(
                f"the papers' Transformer has one vocabulary for both languages, but the dictionaries differ "
                f"({len(source)} and {len(target)} types): run fairseq-preprocess with --joined-dictionary, or use "
                "fairseq's own --arch transformer"
            )
        return super().build_model(args, task)


class ContextGateTransformer(PaperTransformer):
    """The baseline with a context gate in each decoder layer (Tu, Liu, Lu, Liu, Li, *Context Gates for NMT*, TACL 2017;
    He et al., §5.4).

    He et al. give the details in a supplement, which was not available. In this implementation, each decoder layer
    computes a scalar gate for each position. The gate weighs the output of self-attention (the target context) against
    the output of source attention (:class:`ContextGate`). With 31,300 types, the model has 19.08M parameters, as
    published.
    """

    @classmethod
    def build_decoder(cls, args, tgt_dict, embed_tokens) -> "ContextGateDecoder":
        if args.no_cross_attention:
            raise UserError("--no-cross-attention: a context gate weighs source attention: leave the option out")
        if not args.decoder_normalize_before:
            raise UserError("decoder_normalize_before: false: a context gate needs layers that normalise their inputs")
        return ContextGateDecoder(TransformerConfig.from_namespace(args), tgt_dict, embed_tokens)


class ContextGate(nn.Module):
    """Weighs a decoder layer's target context against its source context, after Tu et al. (TACL 2017):

        z = σ(w · [x; t; s] + b),   2 (1 - z) t + 2 z s

    Here x is the state, t the target context and s the source context of a position, and z is a scalar. w and b are
    initially 0, so that z is ½ and the result is t + s, as in a layer without the gate.
    """

    def __init__(self, embed_dim: int):
        super().__init__()
        self.gate = nn.Linear(3 * embed_dim, 1)
        nn.init.zeros_(self.gate.weight)
        nn.init.zeros_(self.gate.bias)

    def forward(self, state: Tensor, target_context: Tensor, source_context: Tensor) -> Tensor:
        """Combine three tensors (..., d) into one."""
        z = self.gate(torch.cat([state, target_context, source_context], dim=-1)).sigmoid()
        return 2 * ((1 - z) * target_context + z * source_context)


class ContextGateDecoder(TransformerDecoderBase):
    """fairseq's decoder with gated layers."""

    def build_decoder_layer(self, cfg: TransformerConfig, no_encoder_attn: bool = False):
        layer = ContextGateDecoderLayer(cfg, no_encoder_attn)
        return checkpoint_wrapper(layer, cfg.offload_activations) if cfg.checkpoint_activations else layer


class ContextGateDecoderLayer(TransformerDecoderLayerBase):
    """fairseq's layer with a gate. fairseq calls `residual_connection` after self-attention, after source attention and
    after the feed-forward network."""

    def __init__(self, cfg: TransformerConfig, no_encoder_attn: bool = False):
        super().__init__(cfg, no_encoder_attn)
        self.context_gate = ContextGate(cfg.decoder.embed_dim)
        self.contexts: list[Tensor] = []  # sub-layer outputs of the current call

    def forward(self, *args, **kwargs):
        try:
            return super().forward(*args, **kwargs)
        finally:
            self.contexts = []

    def residual_connection(self, x: Tensor, residual: Tensor) -> Tensor:
        self.contexts.append(x)
        if len(self.contexts) != 2:
            return super().residual_connection(x, residual)
        target_context, source_context = self.contexts
        # The first call has already added the target context without the gate. It is subtracted here.
        return residual - target_context + self.context_gate(residual, target_context, source_context)


def register_baseline(name: str, model: type[PaperTransformer], **defaults: object) -> None:
    """Register `model` as `name`, with `defaults` for the options of fairseq's Transformer.

    `register_preset` does not work here, because fairseq registers its Transformer without a dataclass.
    """
    norms = {"encoder_normalize_before": True, "decoder_normalize_before": True}
    preset = make_preset_class(name, model, defaults={**model.defaults, **norms, **defaults})
    register_model(name)(preset)
    register_model_architecture(name, name)(preset.fill_in)


def sizes(embed_dim: int, ffn_embed_dim: int, heads: int) -> dict[str, int]:
    """Return fairseq's options. The decoder's widths default to the encoder's, but its number of heads does not."""
    return {
        "encoder_embed_dim": embed_dim,
        "encoder_ffn_embed_dim": ffn_embed_dim,
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
    }


register_baseline("transformer_small", PaperTransformer, **sizes(256, 1024, 4))
register_baseline("transformer_base", PaperTransformer, **sizes(512, 2048, 8))
# transformer_big has the sizes of Vaswani et al., whose figures the paper lists. The paper states a feed-forward width
# of 2,048 for "big". lwc_transformer_big has this width. If it also had 4,096, its 14 layers would have as many
# parameters as the 6 + 6 layers here, as the paper claims.
register_baseline("transformer_big", PaperTransformer, **sizes(1024, 4096, 16))
register_baseline("transformer_context_gate", ContextGateTransformer, **sizes(256, 1024, 4))
