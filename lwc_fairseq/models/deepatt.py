"""DeepAtt and the models that it is compared with: Zhang, Xiong, Su, *Neural Machine Translation with Deep Attention*,
TPAMI 2018.

An encoder of layers that read in alternating directions; a decoder whose one state attends, within a step, to the
first encoder layer, then with what it found there to the second, and so on to the K-th. The relatives differ in the
encoder, in which of its layers the decoder reads, and in how the decoder's attentions are spread over layers; each is a
short class below (:data:`VARIANTS`), and a preset.

What the paper leaves open, and what is done here: the readout and the decoder's first states follow the authors' code
(a tanh map each, of everything the decoder knows and of the top encoder layer's last state); the GRUs are those of the
paper's source [17] with the reset gate before the recurrent product; the first target input is the embedding of the
end-of-sentence symbol, as everywhere in fairseq.

Letters: B sentences, n source and m target tokens, E width of embeddings, d of states, D of a memory, K attention
layers, V types; in decoding S sentences and R = S · beam hypotheses. True in a padding mask means padding.
"""

from dataclasses import dataclass, field
from typing import Optional

import torch
from fairseq.models import FairseqEncoder, register_model
from torch import Tensor, nn

from lwc_fairseq_compat import UserError

from ..modules.attention_memory import Memory
from ..modules.initialization import initialize_recurrent
from ..modules.output_features import OutputFeatures
from ..modules.recurrent_decoder import RecurrentDecoder
from ..modules.recurrent_encoder import BidirectionalEncoder, DeepEncoder, SourceOrder
from ..modules.source_memory import SourceMemory
from ._presets import register_preset
from ._recurrent import RecurrentConfig
from .interface import DecoderAttention, TranslationModel


@dataclass
class DeepAttConfig(RecurrentConfig):
    """The paper's sizes."""

    variant: str = field(
        default="deepatt",
        metadata={"help": "deepatt, udeepatt, vdeepatt, wideatt, deepnmt, rnnsearch or mheadnmt; presets set it"},
    )
    attention_layers: int = field(
        default=5,
        metadata={
            "help": "K (paper: 1-6): encoder layers above the first; deepatt, udeepatt and vdeepatt attend to each, "
            "the others once; vdeepatt and deepnmt also have K decoder layers"
        },
    )
    attention_heads: int = field(
        default=0, metadata={"help": "heads of scaled dot-product attention, a divisor of --hidden-dim; 0 is additive"}
    )
    share_all_embeddings: bool = field(
        default=False,
        metadata={"help": "one table for source, target and output; needs a joined dictionary"},
    )
    alignment_layer: Optional[int] = field(  # noqa: UP045 (fairseq knows this spelling only)
        default=None,
        metadata={
            "help": "attention layer, from 0, that --print-alignment shows; -1 is the last. Default: the second, where "
            "there is one: in the paper's Table 2 it aligns best with K = 2 to 5. Of a trained model, change it with "
            "--model-overrides '{\"alignment_layer\": 0}'"
        },
    )

    def check(self) -> None:
        """Raises UserError, a ValueError, that names the setting which cannot be."""
        if self.variant not in VARIANTS:
            raise UserError(f"--variant {self.variant}: choose one of {', '.join(VARIANTS)}")
        if self.attention_layers < 1:
            raise UserError(f"--attention-layers {self.attention_layers}: must be at least 1")
        super().check()
        if self.attention_layers > 1 and issubclass(VARIANTS[self.variant], RNNSearch):
            raise UserError(
                f"--attention-layers {self.attention_layers}: {self.variant} has one; give --attention-layers 1, or "
                f"--arch {self.variant}, which sets it"
            )
        self._check_heads()
        if self.alignment_layer is not None and not -self.attentions <= self.alignment_layer < self.attentions:
            raise UserError(
                f"--alignment-layer {self.alignment_layer}: {self.variant} with --attention-layers "
                f"{self.attention_layers} has {self.attentions}, so it must be from {-self.attentions} to "
                f"{self.attentions - 1}"
            )

    def _check_heads(self) -> None:
        if self.attention_heads < 0:
            raise UserError(
                f"--attention-heads {self.attention_heads}: must be at least 1, or 0 for additive attention"
            )
        if self.attention_heads and self.hidden_dim % self.attention_heads:
            raise UserError(
                f"--hidden-dim {self.hidden_dim} is not divisible by --attention-heads {self.attention_heads}: "
                "choose a number of heads that divides it"
            )
        if self.variant == "mheadnmt" and not self.attention_heads:
            raise UserError("--attention-heads 0: mheadnmt needs at least 1 (paper: 8); without heads it is rnnsearch")

    @property
    def attentions(self) -> int:
        """How many attentions the decoder has."""
        return sum(map(len, VARIANTS[self.variant].decoder_layers(self, [0] * self.attention_layers)))


class DeepAtt:
    """The model of the paper: K attentions coupled into one recurrent state.

    h^k: see :class:`~lwc_fairseq.modules.recurrent_encoder.DeepEncoder` (eq. 1-3).

        s⁰_j = GRU(s_{j-1}, E_{y_{j-1}})                                      eq. 8
        a^k_j = Att(s^{k-1}_j, H^k),  s^k_j = GRU(s^{k-1}_j, a^k_j)           eq. 7, 9, for k = 1..K
        s_j = s^K_j                                                           eq. 6
        p(y_j) = softmax(g(E_{y_{j-1}}, s_j, a^1_j, ..., a^K_j))              eq. 4
    """

    @staticmethod
    def encoder(cfg: DeepAttConfig) -> nn.Module:
        """From embeddings to encoder layers."""
        return DeepEncoder(cfg.embed_dim, cfg.hidden_dim, cfg.attention_layers)

    @staticmethod
    def memories(encoder_layers: list[Tensor]) -> list[Tensor]:
        """What the decoder attends to."""
        return encoder_layers

    @staticmethod
    def memory_dims(encoder_dims: list[int]) -> list[int]:
        """The widths of the memories."""
        return encoder_dims

    @staticmethod
    def decoder_layers(cfg: DeepAttConfig, memory_dims: list[int]) -> list[list[int]]:
        """For each decoder layer the widths of the memories that it attends to, in their order."""
        return [memory_dims]


class UDeepAtt(DeepAtt):
    """DeepAtt, but every encoder layer reads in the same direction: eq. 14,

    h^k_i = GRU_higher(GRU_lower(h^k_{i-1}, E_{x_i}), h^{k-1}_i)    for every k.
    """

    @staticmethod
    def encoder(cfg):
        return DeepEncoder(cfg.embed_dim, cfg.hidden_dim, cfg.attention_layers, one_way=True)


class VDeepAtt(DeepAtt):
    """DeepAtt's encoder and K stacked conditional decoders, each with its own state: eq. 10-12, for k = 1..K,

        s̃^k_j = GRU(s^k_{j-1}, s^{k-1}_j),  a^k_j = Att(s̃^k_j, H^k),  s^k_j = GRU(s̃^k_j, a^k_j)

    with s⁰_j = E_{y_{j-1}}. The readout sees the top state and all a^k.
    """

    @staticmethod
    def decoder_layers(cfg, memory_dims):
        return [[memory_dim] for memory_dim in memory_dims]


class WideAtt(DeepAtt):
    """DeepAtt's encoder, and one attention to the concatenation of its layers: eq. 13, H = [H^1; ...; H^K],

    s̃_j = GRU(s_{j-1}, E_{y_{j-1}}),  a_j = Att(s̃_j, H),  s_j = GRU(s̃_j, a_j).
    """

    @staticmethod
    def memories(encoder_layers):
        return [torch.cat(encoder_layers, dim=-1)]

    @staticmethod
    def memory_dims(encoder_dims):
        return [sum(encoder_dims)]

    @staticmethod
    def decoder_layers(cfg, memory_dims):
        return [memory_dims[:1]]


class DeepNMT(DeepAtt):
    """DeepAtt's encoder and K decoder layers with one attention, which reads the top encoder layer:

        s̃_j = GRU(s¹_{j-1}, E_{y_{j-1}}),  a_j = Att(s̃_j, H^K),  s¹_j = GRU(s̃_j, a_j)
        s^k_j = GRU(s^k_{j-1}, s^{k-1}_j)                               for k = 2..K

    The paper's text says one attention (its Table 5 five), not which decoder layer has it; here, as usual in deep
    models of its time, the lowest, so that all layers above see what it read.
    """

    @staticmethod
    def memories(encoder_layers):
        return encoder_layers[-1:]

    @staticmethod
    def memory_dims(encoder_dims):
        return encoder_dims[-1:]

    @staticmethod
    def decoder_layers(cfg, memory_dims):
        return [memory_dims[-1:]] + [[]] * (cfg.attention_layers - 1)


class RNNSearch(DeepAtt):
    """The baseline: Bahdanau et al. (2015) with the decoder of the dl4mt tutorial: a bidirectional encoder and one
    conditional GRU, which starts from the backward encoder's last state,

        h_i = [GRU(h_{i-1}, E_{x_i}); GRU(h_{i+1}, E_{x_i})]
        s̃_j = GRU(s_{j-1}, E_{y_{j-1}}),  a_j = Att(s̃_j, H),  s_j = GRU(s̃_j, a_j).

    With widths of 620 and 1000 and 30,000 + 30,000 types it has 85.7M parameters (published: 85.6M, by Zhang et al.,
    *Asynchronous Bidirectional Decoding for Neural Machine Translation*, AAAI 2018, who count it).
    """

    @staticmethod
    def encoder(cfg):
        return BidirectionalEncoder(cfg.embed_dim, cfg.hidden_dim)


class MHeadNMT(RNNSearch):
    """RNNSearch with multi-head attention (:mod:`~lwc_fairseq.modules.multihead_attention`), 8 heads:

    a_j = O [head_1; ...; head_H],  head_p = softmax(Q_p s̃_j (K_p h)ᵀ / √(d/H)) V_p h.
    """


VARIANTS = {
    "deepatt": DeepAtt,
    "udeepatt": UDeepAtt,
    "vdeepatt": VDeepAtt,
    "wideatt": WideAtt,
    "deepnmt": DeepNMT,
    "rnnsearch": RNNSearch,
    "mheadnmt": MHeadNMT,
}


class DeepAttEncoder(FairseqEncoder):
    """Embedding and recurrent layers; hands out what the decoder makes of them, once a sentence."""

    def __init__(self, cfg: DeepAttConfig, dictionary, recurrent: nn.Module, decoder: RecurrentDecoder):
        super().__init__(dictionary)
        self.variant = VARIANTS[cfg.variant]
        self.padding_idx = dictionary.pad()
        self.embedding = nn.Embedding(len(dictionary), cfg.embed_dim, self.padding_idx)
        self.recurrent = recurrent
        # The projections of the source are the decoder's weights. Held here past nn.Module's registration, they stay
        # one set of parameters under one name, in checkpoints too.
        self.__dict__["decoder"] = decoder

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **unused) -> SourceMemory:
        """Source tokens (B, n), padded on either side, to the memories that the decoder reads."""
        order = SourceOrder(src_tokens, self.padding_idx)
        layers, final_state = self.recurrent(self.embedding(order.tokens.T), order)
        batch_major = [layer.transpose(0, 1).contiguous() for layer in layers]  # (B, n, d), as attention wants it
        memories = [Memory(x, order.padding_mask, order.columns) for x in self.variant.memories(batch_major)]
        return self.decoder.start(memories, final_state)

    def reorder_encoder_out(self, encoder_out: SourceMemory, new_order: Tensor) -> SourceMemory:
        return encoder_out.reorder(new_order)


@register_model("deepatt", dataclass=DeepAttConfig)
class DeepAttModel(TranslationModel):
    __doc__ = DeepAtt.__doc__

    @classmethod
    def build_model(cls, cfg, task) -> "DeepAttModel":
        cfg = DeepAttConfig.from_namespace(cfg)
        cfg.check()
        source, target = task.source_dictionary, task.target_dictionary
        variant = VARIANTS[cfg.variant]
        recurrent = variant.encoder(cfg)
        layers = variant.decoder_layers(cfg, variant.memory_dims(recurrent.dims))
        second = min(1, cfg.attentions - 1)
        decoder = RecurrentDecoder(
            target,
            cfg.embed_dim,
            cfg.hidden_dim,
            [[[memory_dim] for memory_dim in layer] for layer in layers],
            cfg.dropout,
            cfg.attention_heads,
            alignment_layer=second if cfg.alignment_layer is None else cfg.alignment_layer,
        )
        encoder = DeepAttEncoder(cfg, source, recurrent, decoder)
        if cfg.share_all_embeddings:
            if source != target:
                raise UserError(
                    f"--share-all-embeddings needs one dictionary, but there are two ({len(source)} and {len(target)} "
                    "types): run fairseq-preprocess with --joined-dictionary, or leave the flag out"
                )
            encoder.embedding = decoder.embedding
            decoder.output.weight = decoder.embedding.weight
        model = cls(encoder, decoder)
        initialize_recurrent(model, cfg.init_std)
        return model

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor, features_only: bool = False
    ) -> tuple[Tensor, dict] | OutputFeatures:
        """Teacher forcing: logits (B, m, V) for the next token after each of prev_output_tokens (B, m)."""
        return self.decoder(prev_output_tokens, self.encoder(src_tokens, src_lengths), features_only=features_only)

    def attention(self, src_tokens: Tensor, prev_output_tokens: Tensor) -> DecoderAttention:
        """Of several heads, the mean."""
        _, extra = self.decoder(prev_output_tokens, self.encoder(src_tokens))
        return DecoderAttention([weights[:, None] for weights in extra["attentions"]])


PRESETS = {
    "udeepatt": {},
    "vdeepatt": {},
    "wideatt": {},
    "deepnmt": {},
    "rnnsearch": {"attention_layers": 1},
    "mheadnmt": {"attention_layers": 1, "attention_heads": 8},
}
for name, settings in PRESETS.items():
    register_preset(name, DeepAttModel, DeepAttConfig, VARIANTS[name].__doc__, variant=name, **settings)
