"""DeepAtt and its relatives: Zhang, Xiong, Su, *Neural Machine Translation with Deep Attention*, TPAMI 2018.

The layers of the encoder read the source in alternating directions. The decoder has one state. Within a step, this
state attends to the first encoder layer, is updated with the context found there, attends to the second layer, and so
on up to the K-th. The relatives differ in the encoder, in the encoder layers that the decoder attends to, and in the
decoder layers that attend to them.

The paper does not specify every detail. The readout and the decoder's initial states follow the authors' code. The
readout applies an affine map and a tanh to the previous word, the state and all contexts; the initial states apply the
same to the last state of the top encoder layer. The GRUs are those of the paper's reference [17], which applies the
reset gate before the recurrent product.

Letters: B sentences, n source and m target tokens, E embedding width, d state width, D memory width, K attention
layers, V types; in decoding, S sentences and R = S · beam hypotheses. True in a padding mask means padding.
"""

from dataclasses import dataclass, field
from typing import Optional

import torch
from fairseq.models import register_model
from torch import Tensor

from lwc_fairseq_compat import UserError

from ..modules.recurrent_decoder import RecurrentDecoder
from ..modules.recurrent_encoder import DeepEncoder
from .recurrent import AttentionalConfig, AttentionalModel, RecurrentEncoder, word_embedding


@dataclass
class DeepAttConfig(AttentionalConfig):
    """The options of DeepAtt and its relatives. The defaults are the paper's sizes."""

    attention_layers: int = field(
        default=5,
        metadata={
            "help": "K, number of encoder layers above the first (paper: 1-6); deepatt, udeepatt, vdeepatt attend to "
            "each; wideatt and deepnmt have one attention. vdeepatt and deepnmt also have K decoder layers"
        },
    )
    alignment_layer: Optional[int] = field(  # noqa: UP045 (fairseq knows this spelling only)
        default=None,
        metadata={
            "help": "attention layer, from 0, that --print-alignment shows; -1 is the last. Default: the second, if "
            "there is one: it aligns best with K = 2 to 5 in the paper's Table 2. For a trained model, set it with "
            "--model-overrides '{\"alignment_layer\": 0}'"
        },
    )

    def check(self) -> None:
        """Raises UserError naming the invalid setting."""
        if self.attention_layers < 1:
            raise UserError(f"--attention-layers {self.attention_layers}: must be at least 1")
        super().check()


@register_model("deepatt", dataclass=DeepAttConfig)
class DeepAttModel(AttentionalModel):
    """K attentions coupled into one recurrent state.

    h^k: see :class:`~lwc_fairseq.modules.recurrent_encoder.DeepEncoder` (eq. 1-3).

        s⁰_j = GRU(s_{j-1}, E_{y_{j-1}})                                      eq. 8
        a^k_j = Att(s^{k-1}_j, H^k),  s^k_j = GRU(s^{k-1}_j, a^k_j)           eq. 7, 9, for k = 1..K
        s_j = s^K_j                                                           eq. 6
        p(y_j) = softmax(g(E_{y_{j-1}}, s_j, a^1_j, ..., a^K_j))              eq. 4
    """

    encoder_class = RecurrentEncoder
    decoder_class = RecurrentDecoder
    one_way = False
    """Whether all encoder layers read from left to right."""

    @staticmethod
    def decoder_layers(cfg: DeepAttConfig) -> list[list[int]]:
        """Return, for each decoder layer, the widths of the memories that it attends to, in the order of attention."""
        return [[cfg.hidden_dim] * cfg.attention_layers]

    @classmethod
    def build_model(cls, cfg: DeepAttConfig, task) -> "DeepAttModel":
        cfg = cls.read_config(cfg)
        recurrent = DeepEncoder(cfg.embed_dim, cfg.hidden_dim, cfg.attention_layers, cls.one_way, cfg.plain_kernels)
        decoder = cls.decoder_class(
            task.target_dictionary,
            cfg.embed_dim,
            cfg.hidden_dim,
            [[[memory_dim] for memory_dim in layer] for layer in cls.decoder_layers(cfg)],
            cfg.dropout,
            cfg.attention_heads,
            alignment_layer=cls.alignment_layer(cfg),
            plain=cfg.plain_kernels,
            input_dropout=cfg.input_dropout,
        )
        source = task.source_dictionary
        encoder = cls.encoder_class(source, word_embedding(source, cfg.embed_dim), recurrent, cfg.input_dropout)
        return cls.assemble(cfg, encoder, decoder)

    @classmethod
    def alignment_layer(cls, cfg: DeepAttConfig) -> int:
        """Return the index of the attention whose weights are the alignment.

        Raises:
            UserError: the decoder has too few attentions.
        """
        attentions = sum(map(len, cls.decoder_layers(cfg)))
        if cfg.alignment_layer is None:
            return min(1, attentions - 1)
        if -attentions <= cfg.alignment_layer < attentions:
            return cfg.alignment_layer
        name = cls.__name__.removesuffix("Model").lower()
        raise UserError(
            f"--alignment-layer {cfg.alignment_layer}: {name} with --attention-layers {cfg.attention_layers} has "
            f"{attentions}, so it must be from {-attentions} to {attentions - 1}"
        )


@register_model("udeepatt", dataclass=DeepAttConfig)
class UDeepAttModel(DeepAttModel):
    """DeepAtt with an encoder whose layers all read from left to right (eq. 14):

    h^k_i = GRU_higher(GRU_lower(h^k_{i-1}, E_{x_i}), h^{k-1}_i)    for every k.
    """

    one_way = True


@register_model("vdeepatt", dataclass=DeepAttConfig)
class VDeepAttModel(DeepAttModel):
    """DeepAtt's encoder and K stacked decoder layers, each with its own state and attention (eq. 10-12), for k = 1..K:

        s̃^k_j = GRU(s^k_{j-1}, s^{k-1}_j),  a^k_j = Att(s̃^k_j, H^k),  s^k_j = GRU(s̃^k_j, a^k_j)

    with s⁰_j = E_{y_{j-1}}. The readout sees the top state and all a^k.
    """

    @staticmethod
    def decoder_layers(cfg):
        return [[cfg.hidden_dim]] * cfg.attention_layers


class ConcatenatingEncoder(RecurrentEncoder):
    """An encoder whose only memory is the concatenation of all layers."""

    def memories(self, layers: list[Tensor]) -> list[Tensor]:
        return [torch.cat(layers, dim=-1)]


@register_model("wideatt", dataclass=DeepAttConfig)
class WideAttModel(DeepAttModel):
    """DeepAtt's encoder and one attention to the concatenation of its layers, H = [H^1; ...; H^K] (eq. 13):

    s̃_j = GRU(s_{j-1}, E_{y_{j-1}}),  a_j = Att(s̃_j, H),  s_j = GRU(s̃_j, a_j).
    """

    encoder_class = ConcatenatingEncoder

    @staticmethod
    def decoder_layers(cfg):
        return [[cfg.hidden_dim * cfg.attention_layers]]


class TopLayerEncoder(RecurrentEncoder):
    """An encoder whose only memory is the top layer."""

    def memories(self, layers: list[Tensor]) -> list[Tensor]:
        return layers[-1:]


@register_model("deepnmt", dataclass=DeepAttConfig)
class DeepNMTModel(DeepAttModel):
    """DeepAtt's encoder and K decoder layers. The lowest decoder layer attends to the top encoder layer:

        s̃_j = GRU(s¹_{j-1}, E_{y_{j-1}}),  a_j = Att(s̃_j, H^K),  s¹_j = GRU(s̃_j, a_j)
        s^k_j = GRU(s^k_{j-1}, s^{k-1}_j)                               for k = 2..K

    The paper's text states one attention (its Table 5 states five), but not which decoder layer has it. Here it is the
    lowest layer, as is usual in deep models of that time, so that all layers above receive the context.
    """

    encoder_class = TopLayerEncoder

    @staticmethod
    def decoder_layers(cfg):
        return [[cfg.hidden_dim]] + [[]] * (cfg.attention_layers - 1)
