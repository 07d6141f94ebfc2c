"""Neural system combination, as Zhang et al. (*Asynchronous Bidirectional Decoding for NMT*, AAAI 2018) compare with
it: after Zhou, Hu, Zhang, Zong, *Neural System Combination for Machine Translation*, ACL 2017.

A right-to-left model is trained first, and stays as it is. It translates each source. Then a forward decoder is trained
that attends to the source and to this reverse translation. `nsc_rt` reads the words of the translation with an encoder
for them. `nsc_hs` reads the states with which the first model decoded them.

The paper gives few details, but its parameter counts decide them: 120.0M and 130.0M, with 620 and 1000 dimensions and
30,000 types a side.

- `nsc_rt` has 120.0M if the first model is not counted. These are RNNSearch, embeddings and a bidirectional GRU for the
  reverse translation, attention to it, and the hierarchical attention of Zhou et al.
- `nsc_hs` has 130.0M with the first model, which has 85.7M. So it has no second encoder and no second table of target
  embeddings: the forward decoder, which is ABD's, shares those of the first model. They are not trained further, since
  the first model's states are made of them.

Letters as in :mod:`~.abd`.
"""

from dataclasses import dataclass, field
from typing import Optional

import torch
from fairseq.models import register_model
from torch import Tensor, nn

from lwc_fairseq_compat import UserError

from ..modules.combining_gru import CombiningDecoder
from ..modules.initialization import initialize_recurrent
from ..modules.output_features import OutputFeatures
from ..modules.recurrent_decoder import RecurrentDecoder
from ..modules.recurrent_encoder import BidirectionalEncoder, SourceOrder
from ..modules.reverse_search import search_greedily, search_with_beam
from ._presets import register_preset
from ._pretrained import Pretrained
from .abd import ReverseContextConfig, ReverseContextEncoder, ReverseContextModel
from .deepatt import DeepAttConfig, DeepAttModel


@dataclass
class NSCConfig(ReverseContextConfig):
    """What both have."""

    reverse_model: Optional[str] = field(  # noqa: UP045 (fairseq knows this spelling only)
        default=None,
        metadata={
            "help": "checkpoint of the right-to-left model: an rnnsearch of the same sizes, trained with --task "
            "concat_translation --reverse-target. It is needed to start training; later it is part of the checkpoint"
        },
    )
    reverse_beam: int = field(
        default=10,
        metadata={"help": "beam of the search for the reverse translation (paper: 10); 1 is greedy search, quicker"},
    )
    read_states: bool = field(
        default=False,
        metadata={"help": "attend to the right-to-left model's states (nsc_hs), not to its encoded words (nsc_rt)"},
    )

    def check(self) -> None:
        """Raises UserError, a ValueError, that names the invalid setting."""
        super().check()
        if self.reverse_beam < 1:
            raise UserError(f"--reverse-beam {self.reverse_beam}: must be at least 1")


class NSCEncoder(ReverseContextEncoder):
    """An encoder of the source, and the reverse translation of a trained model."""

    def __init__(self, cfg: NSCConfig, dictionary, reverse_model: DeepAttModel, decoder: RecurrentDecoder, shared=None):
        super().__init__(cfg, dictionary, decoder, shared)
        self.beam = cfg.reverse_beam
        self.__dict__["reverse_model"] = reverse_model  # the model's

    def search(self, src_tokens, source):
        if self.beam > 1:
            return search_with_beam(self.reverse_model, src_tokens, source.limits, self.beam)
        with torch.no_grad():
            start = self.reverse_model.encoder(src_tokens)
        return search_greedily(self.reverse_model.decoder, start, source.limits)


class WordsEncoder(NSCEncoder):
    """The reverse context are the words of the reverse translation, encoded."""

    def __init__(self, cfg: NSCConfig, dictionary, reverse_model: DeepAttModel, decoder: RecurrentDecoder):
        super().__init__(cfg, dictionary, reverse_model, decoder)
        target = decoder.dictionary
        self.words_embedding = nn.Embedding(len(target), cfg.embed_dim, target.pad())
        self.words = BidirectionalEncoder(cfg.embed_dim, cfg.hidden_dim)

    def reverse_context(self, found):
        order = SourceOrder(found.outputs, self.decoder.dictionary.pad())
        (annotations,), _ = self.words(self.words_embedding(order.tokens.T), order)
        return annotations.transpose(0, 1).contiguous(), order.padding_mask


class StatesEncoder(NSCEncoder):
    """The reverse context are the first model's states; the encoder is the first model's as well."""

    def __init__(self, cfg: NSCConfig, dictionary, reverse_model: DeepAttModel, decoder: RecurrentDecoder):
        super().__init__(cfg, dictionary, reverse_model, decoder, shared=reverse_model.encoder)


@register_model("nsc_rt", dataclass=NSCConfig)
class NSCModel(ReverseContextModel):
    """The first model, which gets no gradient and no dropout and becomes part of the checkpoint, and the second one.

    `nsc_rt`: the second encodes the source and the words of the reverse translation; its decoder combines what it
    reads in both (:mod:`~lwc_fairseq.modules.combining_gru`). `nsc_hs`: it has the first one's encoder, and ABD's
    forward decoder over the source and the states.
    """

    def __init__(self, cfg: NSCConfig, source_dictionary, target_dictionary, reverse_model: DeepAttModel):
        sizes = target_dictionary, cfg.embed_dim, cfg.hidden_dim
        source_dim, state_dim = 2 * cfg.hidden_dim, cfg.hidden_dim
        if cfg.read_states:
            shared = reverse_model.decoder.embedding
            decoder = RecurrentDecoder(*sizes, [[[source_dim, state_dim]]], cfg.dropout, embedding=shared)
        else:
            decoder = CombiningDecoder(*sizes, [[[source_dim, source_dim]]], cfg.dropout)
        make_encoder = StatesEncoder if cfg.read_states else WordsEncoder
        super().__init__(make_encoder(cfg, source_dictionary, reverse_model, decoder), decoder)
        self.reverse_model = reverse_model.requires_grad_(False)
        self.pretrained = Pretrained("--reverse-model", None, [], needed=True)

    @classmethod
    def build_model(cls, cfg, task) -> "NSCModel":
        cfg = NSCConfig.from_namespace(cfg)
        cfg.check()
        sizes = {"embed_dim": cfg.embed_dim, "hidden_dim": cfg.hidden_dim, "dropout": 0.0}
        reverse_model = DeepAttModel.build_model(DeepAttConfig(variant="rnnsearch", attention_layers=1, **sizes), task)
        model = cls(cfg, task.source_dictionary, task.target_dictionary, reverse_model)
        initialize_recurrent(model, cfg.init_std)
        model.pretrained = Pretrained("--reverse-model", cfg.reverse_model, [(reverse_model, "", ())], needed=True)
        return model

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor, prev_output_tokens: Tensor, features_only: bool = False
    ) -> tuple[Tensor, dict] | OutputFeatures:
        """Teacher forcing: logits (B, m, V) for the next token after each of prev_output_tokens (B, m)."""
        self.pretrained.require()
        return self.decoder(prev_output_tokens, self.encoder(src_tokens, src_lengths), features_only=features_only)


register_preset("nsc_hs", NSCModel, NSCConfig, read_states=True)
