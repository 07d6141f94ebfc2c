"""RNNSearch, the baseline of both recurrent papers: Bahdanau, Cho, Bengio, *Neural Machine Translation by Jointly
Learning to Align and Translate*, ICLR 2015, with the decoder of the dl4mt tutorial.

    h_i = [GRU(h_{i-1}, E_{x_i}); GRU(h_{i+1}, E_{x_i})]
    s̃_j = GRU(s_{j-1}, E_{y_{j-1}}),  a_j = Att(s̃_j, H),  s_j = GRU(s̃_j, a_j)
    p(y_j) = softmax(g(E_{y_{j-1}}, s_j, a_j))

The initial state s_0 is an affine map of the backward GRU's last state, followed by a tanh.
:mod:`~lwc_fairseq.modules.gru` defines the GRUs. The first target input is the embedding of the end-of-sentence symbol,
as everywhere in fairseq.
"""

from dataclasses import dataclass, field

from fairseq.models import register_model

from lwc_fairseq_compat import UserError

from ..modules.recurrent_decoder import RecurrentDecoder
from ..modules.recurrent_encoder import BidirectionalEncoder
from .recurrent import AttentionalConfig, AttentionalModel, RecurrentEncoder, word_embedding


@dataclass
class RNNSearchConfig(AttentionalConfig):
    """The options of RNNSearch. The defaults are the papers' sizes."""


@register_model("rnnsearch", dataclass=RNNSearchConfig)
class RNNSearchModel(AttentionalModel):
    """A bidirectional encoder and one conditional GRU that attends to it.

    With widths of 620 and 1000 and 30,000 + 30,000 types, it has 85.7M parameters. Zhang et al., *Asynchronous
    Bidirectional Decoding for Neural Machine Translation* (AAAI 2018), report 85.6M.
    """

    @classmethod
    def build_model(cls, cfg: RNNSearchConfig, task) -> "RNNSearchModel":
        cfg = cls.read_config(cfg)
        source, target = task.source_dictionary, task.target_dictionary
        recurrent = BidirectionalEncoder(cfg.embed_dim, cfg.hidden_dim, cfg.plain_kernels)
        decoder = RecurrentDecoder(
            target,
            cfg.embed_dim,
            cfg.hidden_dim,
            [[recurrent.dims]],
            cfg.dropout,
            cfg.attention_heads,
            plain=cfg.plain_kernels,
            input_dropout=cfg.input_dropout,
        )
        embedding = word_embedding(source, cfg.embed_dim)
        return cls.assemble(cfg, RecurrentEncoder(source, embedding, recurrent, cfg.input_dropout), decoder)


@dataclass
class MHeadNMTConfig(RNNSearchConfig):
    """The options of MHeadNMT. The defaults are the papers' sizes and 8 heads."""

    attention_heads: int = field(
        default=8, metadata={"help": "heads of scaled dot-product attention, a divisor of --hidden-dim"}
    )

    def check(self) -> None:
        """Raises UserError naming the invalid setting."""
        super().check()
        if not self.attention_heads:
            raise UserError("--attention-heads 0: mheadnmt needs at least 1 (paper: 8); without heads it is rnnsearch")


@register_model("mheadnmt", dataclass=MHeadNMTConfig)
class MHeadNMTModel(RNNSearchModel):
    """RNNSearch with multi-head attention (:mod:`~lwc_fairseq.modules.multihead_attention`), by default with 8 heads:

    a_j = O [head_1; ...; head_H],  head_p = softmax(Q_p s̃_j (K_p h)ᵀ / √(d/H)) V_p h.
    """
