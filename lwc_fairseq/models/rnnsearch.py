"""The base class of the recurrent models, and RNNSearch, the baseline in the papers of the other recurrent models.

RNNSearch is the model of Bahdanau, Cho, Bengio, *Neural Machine Translation by Jointly Learning to Align and
Translate*, ICLR 2015, but its decoder is that of the dl4mt tutorial.

    h_i = [GRU(h_{i-1}, E_{x_i}); GRU(h_{i+1}, E_{x_i})]
    s̃_j = GRU(s_{j-1}, E_{y_{j-1}}),  a_j = Att(s̃_j, H),  s_j = GRU(s̃_j, a_j)
    p(y_j) = softmax(g(E_{y_{j-1}}, s_j, a_j))

The initial state s_0 is an affine map of the backward GRU's last state, followed by a tanh. The first target input is
the embedding of the end-of-sentence symbol, as everywhere in fairseq. :mod:`~lwc_fairseq.modules.recurrent` defines
GRU, Att and g.

Letters: B sentences, n source and m target tokens, V types.
"""

import math
from dataclasses import dataclass, field

from fairseq.dataclass import FairseqDataclass
from fairseq.models import register_model
from torch import Tensor

from lwc_fairseq_compat import UserError

from ..modules.recurrent import RecurrentDecoder, RecurrentEncoder, initialize_recurrent
from .interface import DecoderAttention, TranslationModel, check_dropouts, check_heads, check_sizes


@dataclass
class RecurrentConfig(FairseqDataclass):
    """The options of all recurrent models. The defaults are the papers' sizes."""

    embed_dim: int = field(default=620, metadata={"help": "width of word embeddings and of the readout"})
    hidden_dim: int = field(default=1000, metadata={"help": "width of recurrent states and of attention, d"})
    dropout: float = field(default=0.2, metadata={"help": "dropout of the readout, before the softmax"})
    input_dropout: float = field(
        default=0.0,
        metadata={
            "help": "dropout of the word embeddings, and of the encoder states that attention reads. The trainings on "
            "Multi30k have 0.3"
        },
    )
    init_std: float = field(
        default=0.01,
        metadata={
            "help": "standard deviation of the initial weights; the recurrent ones are orthogonal. The default suits "
            "the papers' widths. Narrow models hardly learn with it: give 0.1 for a width of 128"
        },
    )
    init_uniform: float = field(
        default=0.0,
        metadata={
            "help": "if above 0: all initial weights and biases, the recurrent ones, too, are uniform in ± this value, "
            "as in the program of the ABD paper (0.08), and `--init-std` has no effect"
        },
    )
    plain_kernels: bool = field(
        default=False,
        metadata={
            "help": "runs the equations with autograd. The kernels, the default, compute the same and are faster"
        },
    )

    def check(self) -> None:
        """Raises UserError naming the invalid setting."""
        check_sizes(self, "embed_dim", "hidden_dim")
        check_dropouts(self, "dropout", "input_dropout")
        if not 0 < self.init_std < math.inf:
            raise UserError(f"--init-std {self.init_std}: must be a number above 0")
        if not 0 <= self.init_uniform < math.inf:
            raise UserError(f"--init-uniform {self.init_uniform}: must be a number from 0")


@dataclass
class RNNSearchConfig(RecurrentConfig):
    """The options of RNNSearch and DeepAtt. The defaults are the papers' sizes."""

    attention_heads: int = field(
        default=0,
        metadata={
            "help": "heads of scaled dot-product attention, a divisor of `--hidden-dim`; 0 is additive attention. "
            "`mheadnmt` has 8"
        },
    )
    share_all_embeddings: bool = field(
        default=False,
        metadata={"help": "one table for source, target and output; needs a joined dictionary"},
    )

    def check(self) -> None:
        super().check()
        if self.attention_heads < 0:
            raise UserError(
                f"--attention-heads {self.attention_heads}: must be at least 1, or 0 for additive attention"
            )
        if self.attention_heads:
            check_heads(self, "hidden_dim")


class RecurrentModel(TranslationModel):
    """A recurrent encoder and a recurrent decoder that attends to it."""

    @classmethod
    def build_encoder(cls, cfg, dictionary) -> RecurrentEncoder:
        return RecurrentEncoder(cfg, dictionary)

    @classmethod
    def build_decoder(cls, cfg, dictionary) -> RecurrentDecoder:
        return RecurrentDecoder(cfg, dictionary, [[[2 * cfg.hidden_dim]]], cfg.attention_heads)

    @classmethod
    def build_model(cls, cfg, task):
        """Build the model, share embeddings if --share-all-embeddings is set, and draw the initial weights.

        Raises:
            UserError: the options are invalid, or the task pads targets on the left.
        """
        cfg = cls.read_config(cfg)
        if getattr(getattr(task, "cfg", None), "left_pad_target", False):
            raise UserError(
                "--left-pad-target: recurrent decoders read a target from its first column on, so it cannot begin with "
                "padding: leave the option out"
            )
        encoder = cls.build_encoder(cfg, task.source_dictionary)
        model = cls(encoder, cls.build_decoder(cfg, task.target_dictionary))
        if cfg.share_all_embeddings:
            model.share_embeddings()
        model.initialize(cfg)
        return model

    def initialize(self, cfg) -> None:
        """Draw the initial weights."""
        initialize_recurrent(self, cfg.init_std, cfg.init_uniform)

    def share_embeddings(self) -> None:
        """Let the encoder and the output layers use the decoder's embedding table.

        Raises:
            UserError: the dictionaries differ.
        """
        source, target = self.encoder.dictionary, self.decoder.dictionary
        if source != target:
            raise UserError(
                f"--share-all-embeddings needs one dictionary, but there are two ({len(source)} and {len(target)} "
                "types): run fairseq-preprocess with --joined-dictionary, or leave the flag out"
            )
        self.encoder.embedding = self.decoder.embedding
        for module in self.decoder.modules():
            if isinstance(module, RecurrentDecoder):  # ABD's contains another one
                module.output.weight = self.decoder.embedding.weight

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor, features_only: bool = False
    ) -> tuple[Tensor, dict]:
        """Teacher forcing. Returns logits (B, m, V) for the token after each of prev_output_tokens (B, m)."""
        return self.decoder(prev_output_tokens, self.encoder(src_tokens, src_lengths), features_only=features_only)

    def attention(self, src_tokens: Tensor, prev_output_tokens: Tensor) -> DecoderAttention:
        """Return the attention weights; those of several heads are averaged."""
        _, extra = self.decoder(prev_output_tokens, self.encoder(src_tokens))
        return DecoderAttention([weights[:, None] for weights in extra["attentions"]])


@register_model("rnnsearch", dataclass=RNNSearchConfig)
class RNNSearchModel(RecurrentModel):
    """A bidirectional encoder and one conditional GRU that attends to it.

    With widths of 620 and 1000 and 30,000 + 30,000 types, it has 85.7M parameters. Zhang et al., *Asynchronous
    Bidirectional Decoding for Neural Machine Translation* (AAAI 2018), report 85.6M.
    """


@dataclass
class MHeadNMTConfig(RNNSearchConfig):
    """The options of MHeadNMT. The defaults are the papers' sizes and 8 heads."""

    attention_heads: int = field(
        default=8, metadata={"help": "heads of scaled dot-product attention, a divisor of --hidden-dim"}
    )

    def check(self) -> None:
        super().check()
        if not self.attention_heads:
            raise UserError("--attention-heads 0: mheadnmt needs at least 1 (paper: 8); without heads it is rnnsearch")


@register_model("mheadnmt", dataclass=MHeadNMTConfig)
class MHeadNMTModel(RecurrentModel):
    """RNNSearch with :class:`~lwc_fairseq.modules.recurrent.MultiHeadAttention`, by default with 8 heads."""
