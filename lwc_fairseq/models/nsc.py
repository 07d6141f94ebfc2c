"""Neural system combination: Zhou, Hu, Zhang, Zong, *Neural System Combination for Machine Translation*, ACL 2017, in
the two forms that Zhang et al. (*Asynchronous Bidirectional Decoding for NMT*, AAAI 2018) use as baselines.

First, a right-to-left model is trained and frozen. It translates each source. Then a forward decoder is trained, which
attends to the source and to this reverse translation. `nsc_rt` encodes the words of the reverse translation with an
additional encoder. `nsc_hs` reads the first model's decoder states.

The paper gives few details, but its parameter counts determine the rest: 120.0M and 130.0M, with 620 and 1000
dimensions and 30,000 types per side.

- `nsc_rt` has 120.0M parameters, not counting the first model: RNNSearch, embeddings and a bidirectional GRU for the
  reverse translation, attention to it, and the hierarchical attention of Zhou et al.
- `nsc_hs` has 130.0M parameters, including the first model's 85.7M. So it has no second encoder and no second table of
  target embeddings: its forward decoder, which is ABD's, shares those of the first model. They stay frozen, because the
  first model's states depend on them.

Letters: S sentences, n source and m target tokens, T steps of the reverse translation, V types. True in a padding mask
means padding.
"""

from dataclasses import dataclass, field, replace
from typing import Optional

import torch
from fairseq.models import register_model
from torch import Tensor, nn

from lwc_fairseq_compat import UserError

from ..modules.attention_memory import Memory
from ..modules.combining_gru import CombiningDecoder
from ..modules.initialization import initialize_recurrent
from ..modules.known_translations import KnownTranslations
from ..modules.output_features import OutputFeatures
from ..modules.recurrent_decoder import RecurrentDecoder
from ..modules.recurrent_encoder import BidirectionalEncoder, SourceOrder
from ..modules.reverse_search import decoder_inputs, search_greedily, search_with_beam
from ..modules.source_memory import SourceMemory
from .pretrained import Pretrained
from .recurrent import RecurrentEncoder, word_embedding
from .reverse_context import ReverseContextConfig, ReverseContextModel, reverse_memory
from .rnnsearch import RNNSearchConfig, RNNSearchModel


@dataclass
class NSCConfig(ReverseContextConfig):
    """The options of `nsc_rt` and `nsc_hs`. The defaults are the paper's sizes."""

    reverse_model: Optional[str] = field(  # noqa: UP045 (fairseq knows this spelling only)
        default=None,
        metadata={
            "help": "checkpoint of the right-to-left model: rnnsearch with the same sizes, trained with --task "
            "concat_translation --reverse-target; required to start training, then part of the model's own checkpoint"
        },
    )
    reverse_beam: int = field(
        default=10,
        metadata={"help": "beam of the search for the reverse translation (paper: 10); 1 searches greedily"},
    )

    def check(self) -> None:
        """Raises UserError naming the invalid setting."""
        super().check()
        if self.reverse_beam < 1:
            raise UserError(f"--reverse-beam {self.reverse_beam}: must be at least 1")


class NSCEncoder(RecurrentEncoder):
    """An encoder of the source and of its reverse translation by a trained model.

    Args:
        reverse_model: the trained model, which stays frozen.
    """

    def __init__(
        self,
        cfg: NSCConfig,
        dictionary,
        embedding: nn.Embedding,
        recurrent: nn.Module,
        reverse_model: RNNSearchModel,
    ):
        super().__init__(dictionary, embedding, recurrent, cfg.input_dropout)
        self.cfg = cfg
        self.reverse_model = reverse_model
        self.known = KnownTranslations(dictionary.pad(), reverse_model.decoder.dictionary.pad())

    def search(self, src_tokens: Tensor, source: Memory) -> Tensor:
        """Return the reverse translations (S, T), with padding on the right.

        Training searches for the translation of each source once. Generation remembers nothing, because it may go on
        forever.
        """
        limits = self.cfg.reverse_limits(source)
        if not self.training:
            return self.search_anew(src_tokens, limits)
        return self.known.look_up(src_tokens, lambda rows: self.search_anew(src_tokens[rows], limits[rows]))

    def search_anew(self, src_tokens: Tensor, limits: Tensor) -> Tensor:
        """Translate all sources, each into at most as many tokens as `limits` (S) allow."""
        if self.cfg.reverse_beam > 1:
            return search_with_beam(self.reverse_model, src_tokens, limits, self.cfg.reverse_beam)
        decoder = self.reverse_model.decoder
        with torch.no_grad():
            start = decoder.begin(self.reverse_model.encoder(src_tokens))
        return search_greedily(decoder, start, limits).outputs

    def reverse_context(self, src_tokens: Tensor, found: Tensor) -> Memory:
        """Return what the decoder attends to, for the reverse translations `found` (S, T)."""
        raise NotImplementedError

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **unused) -> SourceMemory:
        """Return the memories of the source tokens (S, n), padded on either side, and of their reverse translations."""
        source = super().forward(src_tokens)
        found = self.search(src_tokens, *source.memories)
        return replace(source, memories=(*source.memories, self.reverse_context(src_tokens, found)))


class WordsEncoder(NSCEncoder):
    """An encoder whose reverse context is the encoded words of the reverse translation."""

    def __init__(self, cfg: NSCConfig, dictionary, reverse_model: RNNSearchModel):
        recurrent = BidirectionalEncoder(cfg.embed_dim, cfg.hidden_dim, cfg.plain_kernels)
        super().__init__(cfg, dictionary, word_embedding(dictionary, cfg.embed_dim), recurrent, reverse_model)
        self.words_embedding = word_embedding(reverse_model.decoder.dictionary, cfg.embed_dim)
        self.words = BidirectionalEncoder(cfg.embed_dim, cfg.hidden_dim, cfg.plain_kernels)

    def reverse_context(self, src_tokens: Tensor, found: Tensor) -> Memory:
        order = SourceOrder(found, self.words_embedding.padding_idx)
        (states,), _ = self.words(self.dropout(self.words_embedding(order.tokens.T)), order)
        return reverse_memory(self.dropout(states.transpose(0, 1)).contiguous(), order.padding_mask)


class StatesEncoder(NSCEncoder):
    """An encoder whose reverse context is the first model's decoder states. It shares the first model's encoder."""

    def __init__(self, cfg: NSCConfig, dictionary, reverse_model: RNNSearchModel):
        encoder = reverse_model.encoder
        super().__init__(cfg, dictionary, encoder.embedding, encoder.recurrent, reverse_model)

    @torch.no_grad()
    def reverse_context(self, src_tokens: Tensor, found: Tensor) -> Memory:
        decoder, pad = self.reverse_model.decoder, self.reverse_model.decoder.dictionary.pad()
        inputs = decoder_inputs(found, decoder.dictionary.eos(), pad)
        steps, _ = decoder.run(inputs, decoder.begin(self.reverse_model.encoder(src_tokens)))
        return reverse_memory(steps.states, found.eq(pad))


class NSCModel(ReverseContextModel):
    """A frozen first model without dropout, which becomes part of the checkpoint, and a trainable second one."""

    renamed = {"reverse_model.": "encoder.reverse_model."}

    def __init__(self, encoder: NSCEncoder, decoder: RecurrentDecoder):
        super().__init__(encoder, decoder)
        self.pretrained = Pretrained("--reverse-model", None, [], needed=True)

    @staticmethod
    def make_encoder(cfg: NSCConfig, dictionary, reverse_model: RNNSearchModel) -> NSCEncoder:
        """Build the second model's encoder."""
        raise NotImplementedError

    @staticmethod
    def make_decoder(cfg: NSCConfig, dictionary, reverse_model: RNNSearchModel) -> RecurrentDecoder:
        """Build the second model's decoder."""
        raise NotImplementedError

    @classmethod
    def build_model(cls, cfg, task) -> "NSCModel":
        cfg = cls.read_config(cfg)
        sizes = {"embed_dim": cfg.embed_dim, "hidden_dim": cfg.hidden_dim, "plain_kernels": cfg.plain_kernels}
        reverse_model = RNNSearchModel.build_model(RNNSearchConfig(dropout=0.0, **sizes), task).requires_grad_(False)
        decoder = cls.make_decoder(cfg, task.target_dictionary, reverse_model)
        model = cls(cls.make_encoder(cfg, task.source_dictionary, reverse_model), decoder)
        initialize_recurrent(model, cfg.init_std)
        parts = [(reverse_model, "", ())]
        model.pretrained = Pretrained("--reverse-model", cfg.reverse_model, parts, task, needed=True)
        return model

    def load_state_dict(self, *args, **kwargs):
        self.encoder.known.forget()
        return super().load_state_dict(*args, **kwargs)

    def reverse_translations(self, src_tokens: Tensor) -> Tensor:
        return self.encoder.search(src_tokens, *RecurrentEncoder.forward(self.encoder, src_tokens).memories)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        target_slots: Tensor | None = None,
    ) -> tuple[Tensor, dict] | OutputFeatures:
        """Teacher forcing. Returns logits (B, m, V) for the token after each of prev_output_tokens (B, m)."""
        self.pretrained.require()
        return self.decoder(prev_output_tokens, self.encoder(src_tokens, src_lengths), target_slots=target_slots)


@register_model("nsc_rt", dataclass=NSCConfig)
class NSCRTModel(NSCModel):
    """The second model encodes the source and the words of the reverse translation. Its decoder combines the contexts
    of both (:mod:`~lwc_fairseq.modules.combining_gru`)."""

    @staticmethod
    def make_encoder(cfg, dictionary, reverse_model):
        return WordsEncoder(cfg, dictionary, reverse_model)

    @staticmethod
    def make_decoder(cfg, dictionary, reverse_model):
        memory_dim = 2 * cfg.hidden_dim
        return CombiningDecoder(
            dictionary,
            cfg.embed_dim,
            cfg.hidden_dim,
            [[[memory_dim, memory_dim]]],
            cfg.dropout,
            input_dropout=cfg.input_dropout,
        )


@register_model("nsc_hs", dataclass=NSCConfig)
class NSCHSModel(NSCModel):
    """The second model shares the first model's encoder. Its decoder is ABD's forward decoder, which attends to the
    source and to the first model's decoder states."""

    @staticmethod
    def make_encoder(cfg, dictionary, reverse_model):
        return StatesEncoder(cfg, dictionary, reverse_model)

    @staticmethod
    def make_decoder(cfg, dictionary, reverse_model):
        return RecurrentDecoder(
            dictionary,
            cfg.embed_dim,
            cfg.hidden_dim,
            [[[2 * cfg.hidden_dim, cfg.hidden_dim]]],
            cfg.dropout,
            embedding=reverse_model.decoder.embedding,
            plain=cfg.plain_kernels,
            input_dropout=cfg.input_dropout,
        )
