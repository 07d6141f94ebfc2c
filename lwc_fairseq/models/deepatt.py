"""DeepAtt and its relatives: Zhang, Xiong, Su, *Neural Machine Translation with Deep Attention*, TPAMI 2018.

The layers of the encoder, numbered from 0, read the source in alternating directions. The decoder has one state.
Within a step, this state attends to encoder layer 1, is updated with the context found there, attends to layer 2, and
so on up to layer K. Nothing attends to layer 0. The relatives differ in the encoder, in the encoder layers that the
decoder attends to, and in the decoder layers that attend to them.

The paper does not specify every detail. The readout is that of the authors' later code (bzhangGo/zero): an affine map
of the previous word, the state and all contexts, followed by a tanh. Another affine map, of the last state of the top
encoder layer, as there, computes the initial states; a tanh follows, as in dl4mt, with which the paper's experiments
ran. The GRUs are those of the paper's reference [17], which applies the reset gate before the recurrent product; dl4mt
applies it after the product. `docs/models.md` has more on both programs.

Letters: B sentences, n source tokens, E embedding width, d state width, K attention layers.
"""

from dataclasses import dataclass, field
from typing import Optional

import torch
from fairseq.models import register_model
from torch import Tensor, nn

from lwc_fairseq_compat import UserError

from ..modules.recurrent import GRULayer, RecurrentDecoder, RecurrentEncoder, SourceOrder
from .interface import check_sizes
from .rnnsearch import RecurrentModel, RNNSearchConfig


@dataclass
class DeepAttConfig(RNNSearchConfig):
    """The options of DeepAtt and its relatives. The defaults are the paper's sizes."""

    attention_layers: int = field(
        default=5,
        metadata={
            "help": "K, the number of encoder layers above the first; the paper runs 1 to 6. `deepatt`, `udeepatt` and "
            "`vdeepatt` attend to each; `wideatt` and `deepnmt` have one attention. `vdeepatt` and `deepnmt` also have "
            "K decoder layers"
        },
    )
    alignment_layer: Optional[int] = field(  # noqa: UP045 (fairseq knows this spelling only)
        default=None,
        metadata={
            "help": "number of the attention that `--print-alignment` shows, from 0; -1 is the last. By default it is "
            "the second attention, if there is one: it aligns best with K = 2 to 5 in the paper's Table 2. For a "
            "trained model, set it with `--model-overrides '{\"alignment_layer\": 0}'`"
        },
    )

    def check(self) -> None:
        check_sizes(self, "attention_layers")
        super().check()


class DeepEncoder(nn.Module):
    """The layers of the encoder, eq. 1-3: K layers above the layer 0.

        h⁰_i = GRU(h⁰_{i-1}, E_{x_i})
        h^k_i = GRU_higher(GRU_lower(h^k_{i-1}, E_{x_i}), h^{k-1}_i)    for even k
        h^k_i = GRU_higher(GRU_lower(h^k_{i+1}, E_{x_i}), h^{k-1}_i)    for odd k

    The word enters every layer (the shortcut).

    Args:
        one_way: all layers read forward, eq. 14.
    """

    def __init__(self, cfg: DeepAttConfig, one_way: bool):
        super().__init__()
        self.one_way = one_way
        input_dims = [[cfg.embed_dim], *[[cfg.embed_dim, cfg.hidden_dim]] * cfg.attention_layers]
        self.layers = nn.ModuleList(GRULayer(dims, cfg.hidden_dim, cfg.plain_kernels) for dims in input_dims)

    def forward(self, x: Tensor, order: SourceOrder) -> tuple[list[Tensor], Tensor]:
        """Map x (n, B, E) to [H^1, ..., H^K], (n, B, d) each, and the last state of layer K, (B, d)."""
        reversed_x = None if self.one_way else order.reverse(x)
        states = [self.layers[0]([x])]
        for k, layer in enumerate(self.layers[1:], start=1):
            if self.one_way or k % 2 == 0:
                read = layer([x, states[-1]])
                states.append(read)
            else:
                read = layer([reversed_x, order.reverse(states[-1])])
                states.append(order.reverse(read))
        return states[1:], order.last(read)


@register_model("deepatt", dataclass=DeepAttConfig)
class DeepAttModel(RecurrentModel):
    """K attentions to the layers H^k of a :class:`DeepEncoder`, coupled into one recurrent state.

    s⁰_j = GRU(s_{j-1}, E_{y_{j-1}})                                  eq. 8
    a^k_j = Att(s^{k-1}_j, H^k),  s^k_j = GRU(s^{k-1}_j, a^k_j)       eq. 7, 9, for k = 1..K
    s_j = s^K_j                                                       eq. 6
    p(y_j) = softmax(g(E_{y_{j-1}}, s_j, a^1_j, ..., a^K_j))          eq. 4
    """

    encoder_class = RecurrentEncoder
    decoder_class = RecurrentDecoder
    one_way = False
    """Whether all encoder layers read from left to right."""

    @staticmethod
    def decoder_layers(cfg: DeepAttConfig) -> list[list[list[int]]]:
        """Return the argument `layers` of :class:`~lwc_fairseq.modules.recurrent.RecurrentDecoder`."""
        return [[[cfg.hidden_dim]] * cfg.attention_layers]

    @classmethod
    def build_encoder(cls, cfg, dictionary):
        return cls.encoder_class(cfg, dictionary, DeepEncoder(cfg, cls.one_way))

    @classmethod
    def build_decoder(cls, cfg, dictionary):
        layers = cls.decoder_layers(cfg)
        attentions = sum(map(len, layers))
        alignment_layer = min(1, attentions - 1) if cfg.alignment_layer is None else cfg.alignment_layer
        if not -attentions <= alignment_layer < attentions:
            name = cls.__name__.removesuffix("Model").lower()
            raise UserError(
                f"--alignment-layer {alignment_layer}: {name} with --attention-layers {cfg.attention_layers} has "
                f"{attentions}, so it must be from {-attentions} to {attentions - 1}"
            )
        return cls.decoder_class(cfg, dictionary, layers, cfg.attention_heads, alignment_layer=alignment_layer)


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
        return [[[cfg.hidden_dim]]] * cfg.attention_layers


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
        return [[[cfg.hidden_dim * cfg.attention_layers]]]


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
        return [[[cfg.hidden_dim]]] + [[]] * (cfg.attention_layers - 1)
