"""Base classes of the recurrent models: options, an encoder, and a model whose decoder attends to encoder layers.

Letters: B sentences, n source and m target tokens, E embedding width, d state width, D memory width, V types. True in a
padding mask means padding.
"""

from dataclasses import dataclass, field

from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqEncoder
from fairseq.modules.fairseq_dropout import FairseqDropout
from torch import Tensor, nn

from lwc_fairseq_compat import UserError

from ..modules.attention_memory import Memory
from ..modules.initialization import initialize_recurrent
from ..modules.output_features import OutputFeatures
from ..modules.recurrent_decoder import RecurrentDecoder
from ..modules.recurrent_encoder import SourceOrder
from ..modules.source_memory import SourceMemory
from .interface import DecoderAttention, TranslationModel


@dataclass
class RecurrentConfig(FairseqDataclass):
    """The options of all recurrent models. The defaults are the papers' sizes."""

    embed_dim: int = field(default=620, metadata={"help": "width of word embeddings and of the readout"})
    hidden_dim: int = field(default=1000, metadata={"help": "width of recurrent states and of attention, d"})
    dropout: float = field(default=0.2, metadata={"help": "dropout of the readout, before the softmax"})
    input_dropout: float = field(
        default=0.0, metadata={"help": "dropout of the word embeddings, and of the encoder states that attention reads"}
    )
    init_std: float = field(
        default=0.01,
        metadata={
            "help": "standard deviation of the initial weights; recurrent weights are orthogonal instead. "
            "The default suits the papers' widths; narrow models learn slowly with it: use 0.1 for a width of 128"
        },
    )
    plain_kernels: bool = field(
        default=False,
        metadata={"help": "compute the equations with autograd instead of the kernels, which are faster"},
    )

    def check(self) -> None:
        """Raises UserError naming the invalid setting."""
        for name in ("embed_dim", "hidden_dim"):
            if getattr(self, name) < 1:
                raise UserError(f"--{name.replace('_', '-')} {getattr(self, name)}: must be at least 1")
        for name in ("dropout", "input_dropout"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1:
                raise UserError(f"--{name.replace('_', '-')} {value}: must be in [0, 1)")
        if not self.init_std > 0:  # also true of NaN
            raise UserError(f"--init-std {self.init_std}: must be above 0")


@dataclass
class AttentionalConfig(RecurrentConfig):
    """The options of models whose decoder attends to encoder layers."""

    attention_heads: int = field(
        default=0,
        metadata={
            "help": "heads of scaled dot-product attention, a divisor of --hidden-dim; 0 selects additive attention"
        },
    )
    share_all_embeddings: bool = field(
        default=False,
        metadata={"help": "share one embedding table between source, target and output; needs a joined dictionary"},
    )

    def check(self) -> None:
        """Raises UserError naming the invalid setting."""
        super().check()
        if self.attention_heads < 0:
            raise UserError(
                f"--attention-heads {self.attention_heads}: must be at least 1, or 0 for additive attention"
            )
        if self.attention_heads and self.hidden_dim % self.attention_heads:
            raise UserError(
                f"--hidden-dim {self.hidden_dim} is not divisible by --attention-heads {self.attention_heads}: "
                "choose a number of heads that divides it"
            )


def share_embeddings(encoder: "RecurrentEncoder", decoders: list[RecurrentDecoder]) -> None:
    """Let the encoder, the decoders and their output layers use the first decoder's embedding table.

    Raises:
        UserError: the dictionaries differ.
    """
    source, target = encoder.dictionary, decoders[0].dictionary
    if source != target:
        raise UserError(
            f"--share-all-embeddings needs one dictionary, but there are two ({len(source)} and {len(target)} "
            "types): run fairseq-preprocess with --joined-dictionary, or leave the flag out"
        )
    encoder.embedding = decoders[0].embedding
    for decoder in decoders:
        decoder.embedding = encoder.embedding
        decoder.output.weight = encoder.embedding.weight


def word_embedding(dictionary, embed_dim: int) -> nn.Embedding:
    """Return an embedding table for the types of a dictionary."""
    return nn.Embedding(len(dictionary), embed_dim, dictionary.pad())


class RecurrentEncoder(FairseqEncoder):
    """Word embeddings and recurrent layers.

    Args:
        dictionary: the source dictionary.
        embedding: the embedding of the source words, of width E.
        recurrent: a module of :mod:`~lwc_fairseq.modules.recurrent_encoder`. It maps embeddings (n, B, E) to the states
            of its layers, (n, B, d) each, and a final state (B, d).
        dropout: probability of dropping an entry of an embedding, or of a state that attention reads.
    """

    def __init__(self, dictionary, embedding: nn.Embedding, recurrent: nn.Module, dropout: float = 0.0):
        super().__init__(dictionary)
        self.embedding = embedding
        self.recurrent = recurrent
        self.dropout = FairseqDropout(dropout, module_name=type(self).__name__)

    def memories(self, layers: list[Tensor]) -> list[Tensor]:
        """Return the states that the decoder's attentions read, given the states (B, n, d) of each layer."""
        return layers

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **unused) -> SourceMemory:
        """Return the memories of source tokens (B, n), padded on either side."""
        order = SourceOrder(src_tokens, self.dictionary.pad())
        layers, final_state = self.recurrent(self.dropout(self.embedding(order.tokens.T)), order)
        # (B, n, d), as attention wants it
        batch_major = [self.dropout(layer.transpose(0, 1)).contiguous() for layer in layers]
        memories = [Memory(states, order.padding_mask, order.columns) for states in self.memories(batch_major)]
        return SourceMemory(tuple(memories), final_state)

    def reorder_encoder_out(self, encoder_out: SourceMemory, new_order: Tensor) -> SourceMemory:
        return encoder_out.reorder(new_order)


class AttentionalModel(TranslationModel):
    """A recurrent encoder and a recurrent decoder that attends to it."""

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        target_slots: Tensor | None = None,
    ) -> tuple[Tensor, dict] | OutputFeatures:
        """Teacher forcing. Returns logits (B, m, V) for the token after each of prev_output_tokens (B, m)."""
        return self.decoder(prev_output_tokens, self.encoder(src_tokens, src_lengths), target_slots=target_slots)

    def attention(self, src_tokens: Tensor, prev_output_tokens: Tensor) -> DecoderAttention:
        """Return the attention weights; those of several heads are averaged."""
        _, extra = self.decoder(prev_output_tokens, self.encoder(src_tokens))
        return DecoderAttention([weights[:, None] for weights in extra["attentions"]])

    @classmethod
    def assemble(cls, cfg: AttentionalConfig, encoder: RecurrentEncoder, decoder: RecurrentDecoder):
        """Build the model, share embeddings if --share-all-embeddings is set, and draw the initial weights.

        Raises:
            UserError: --share-all-embeddings is set, but the dictionaries differ.
        """
        if cfg.share_all_embeddings:
            share_embeddings(encoder, [decoder])
        model = cls(encoder, decoder)
        initialize_recurrent(model, cfg.init_std)
        return model
