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

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Optional

import torch
from fairseq.dataclass import ChoiceEnum
from fairseq.models import register_model
from torch import Tensor, nn

from ..data.reverse import inputs_of
from ..modules.recurrent import (
    AdditiveAttention,
    BidirectionalEncoder,
    GRUCell,
    Memory,
    ProjectedMemory,
    RecurrentDecoder,
    RecurrentEncoder,
    SourceMemory,
    SourceOrder,
)
from ..modules.reverse_search import KnownTranslations, reverse_memory, search_greedily, search_with_beam
from .abd import RecurrentReverseModel, ReverseContextConfig, start_from_right_to_left, with_prefix
from .interface import check_sizes
from .rnnsearch import RNNSearchConfig, RNNSearchModel


@dataclass
class NSCConfig(ReverseContextConfig):
    """The options of `nsc_rt` and `nsc_hs`. The defaults are the paper's sizes."""

    reverse_model: Optional[str] = field(  # noqa: UP045 (fairseq knows this spelling only)
        default=None,
        metadata={
            "help": "checkpoint of the right-to-left model: an `rnnsearch` of the same sizes, trained with `--task "
            "concat_translation --reverse-target`. Training needs it at its start, and puts it into the model's own "
            "checkpoint"
        },
    )
    reverse_context: ChoiceEnum(["search", "translations"]) = field(  # type: ignore[valid-type]
        default="search",
        metadata={
            "help": "the reverse translations that training reads: those of a search, of which each process keeps its "
            "own in memory until it ends, or the `translations` that `lwc-fairseq reverse` has made. Generation "
            "searches"
        },
    )
    reverse_beam: int = field(
        default=10,
        metadata={"help": "beam of the search for the reverse translation; 1 is greedy. The paper uses 10"},
    )

    def check(self) -> None:
        super().check()
        check_sizes(self, "reverse_beam")


class NSCEncoder(RecurrentEncoder):
    """An encoder of the source and of its reverse translation by `reverse_model`, which stays frozen. `shared` are the
    parts of a :class:`RecurrentEncoder` that belong to that model."""

    def __init__(self, cfg: NSCConfig, dictionary, reverse_model: RNNSearchModel, **shared):
        super().__init__(cfg, dictionary, **shared)
        self.cfg = cfg
        self.reverse_model = reverse_model
        self.known = KnownTranslations(dictionary.pad(), reverse_model.decoder.dictionary.pad())

    def search(self, src_tokens: Tensor) -> Tensor:
        """Return the reverse translations (S, T), with padding on the right.

        Each process of a training searches for the translation of a source once and keeps it in memory. Generation
        keeps no translations, because the number of its sources has no limit.
        """
        limits = self.cfg.reverse_limits(src_tokens.eq(self.known.source_pad))
        if not self.training:
            return self.search_anew(src_tokens, limits)
        return self.known.look_up(src_tokens, lambda rows: self.search_anew(src_tokens[rows], limits[rows]))

    @torch.no_grad()
    def search_anew(self, src_tokens: Tensor, limits: Tensor) -> Tensor:
        """Translate all sources, each into at most as many tokens as `limits` (S) allow."""
        model = self.reverse_model
        if self.cfg.reverse_beam > 1:
            return search_with_beam(model, src_tokens, limits, self.cfg.reverse_beam)
        tokens, _ = search_greedily(model.decoder, model.decoder.begin(model.encoder(src_tokens)), limits)
        return tokens

    def reverse_context(self, src_tokens: Tensor, translations: Tensor) -> Memory:
        """Return what the decoder attends to, for the reverse translations (S, T)."""
        raise NotImplementedError

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor | None = None, reverse_tokens: Tensor | None = None, **unused
    ) -> SourceMemory:
        """Return the memories of the source tokens (S, n), padded on either side, and of their reverse translations
        (S, T), which it searches for unless they are given."""
        source = super().forward(src_tokens)
        translations = self.search(src_tokens) if reverse_tokens is None else reverse_tokens
        return replace(source, memories=(*source.memories, self.reverse_context(src_tokens, translations)))


class NSCModel(RecurrentReverseModel):
    """A frozen first model without dropout, which becomes part of the checkpoint, and a trainable second one."""

    encoder_class: type[NSCEncoder]

    @staticmethod
    def make_decoder(cfg: NSCConfig, dictionary, reverse_model: RNNSearchModel) -> RecurrentDecoder:
        raise NotImplementedError

    @classmethod
    def build_model(cls, cfg, task) -> "NSCModel":
        cfg = cls.read_config(cfg)
        sizes = {"embed_dim": cfg.embed_dim, "hidden_dim": cfg.hidden_dim, "plain_kernels": cfg.plain_kernels}
        reverse_model = RNNSearchModel.build_model(RNNSearchConfig(dropout=0.0, **sizes), task).requires_grad_(False)
        decoder = cls.make_decoder(cfg, task.target_dictionary, reverse_model)
        model = cls(cls.encoder_class(cfg, task.source_dictionary, reverse_model), decoder)
        model.initialize(cfg)
        names = with_prefix(model.state_dict(), "encoder.reverse_model.", "")
        start_from_right_to_left(model, "--reverse-model", cfg.reverse_model, names, task)
        return model

    def load_state_dict(self, *args, **kwargs):
        self.encoder.known.by_source.clear()
        return super().load_state_dict(*args, **kwargs)

    def reverse_translations(self, src_tokens: Tensor) -> Tensor:
        return self.encoder.search(src_tokens)

    @property
    def reads_translations(self) -> bool:
        return self.encoder.cfg.reverse_context == "translations"

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        features_only: bool = False,
        reverse_tokens: Tensor | None = None,
    ) -> tuple[Tensor, dict]:
        """Teacher forcing, as in :class:`RecurrentModel`. `reverse_tokens` (B, T) are the reverse translations, the end
        symbol last, padding on the right. Without them, the model searches."""
        self.require_translations(reverse_tokens)
        source = self.encoder(src_tokens, reverse_tokens=reverse_tokens)
        return self.decoder(prev_output_tokens, source, features_only=features_only)


class WordsEncoder(NSCEncoder):
    """An encoder whose reverse context is the encoded words of the reverse translation."""

    def __init__(self, cfg: NSCConfig, dictionary, reverse_model: RNNSearchModel):
        super().__init__(cfg, dictionary, reverse_model)
        words = reverse_model.decoder.dictionary
        self.words_embedding = nn.Embedding(len(words), cfg.embed_dim, words.pad())
        self.words = BidirectionalEncoder(cfg.embed_dim, cfg.hidden_dim, cfg.plain_kernels)

    def reverse_context(self, src_tokens: Tensor, translations: Tensor) -> Memory:
        order = SourceOrder(translations, self.known.target_pad)
        (states,), _ = self.words(self.dropout(self.words_embedding(order.tokens.T)), order)
        return reverse_memory(self.dropout(states.transpose(0, 1)).contiguous(), order.padding_mask)


class CombiningGRU(nn.Module):
    """A conditional GRU that combines the contexts of several memories by a second attention, step by step:

        s̃_j = GRU(s_{j-1}, x_j)
        a^k_j = Att_k(s̃_j, H^k)                  for each memory, all of one width
        a_j = Att(s̃_j, (a^1_j, ..., a^K_j))      attention over the K contexts, with weights of its own
        s_j = GRU(s̃_j, a_j)

    It works as :class:`~lwc_fairseq.modules.recurrent.ConditionalGRU` does, but returns only the combined context.
    `memories` is K, and `memory_dim` is D of all of them.
    """

    attentions: Sequence[AdditiveAttention]
    cells: Sequence[GRUCell]

    def __init__(self, input_dim: int, dim: int, memory_dim: int, memories: int):
        super().__init__()
        self.add_module("attentions", nn.ModuleList(AdditiveAttention(memory_dim, dim) for _ in range(memories)))
        self.combination = AdditiveAttention(memory_dim, dim)
        self.add_module("cells", nn.ModuleList(GRUCell(width, dim) for width in (input_dim, memory_dim)))
        self.context_dims = [memory_dim]

    def project(self, memories: list[Memory]) -> list[ProjectedMemory]:
        return [attention.project(memory) for attention, memory in zip(self.attentions, memories, strict=True)]

    def forward(
        self, inputs: Tensor, state: Tensor, memories: list[ProjectedMemory]
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        read_word, read_context = self.cells
        projected = read_word.input(inputs)
        state = state.to(projected.dtype)  # half precision under autocast
        states, contexts, weights = [], [], []
        for x in projected:
            query = read_word(state, x)
            read = [attention(query, memory) for attention, memory in zip(self.attentions, memories, strict=True)]
            to_combine = Memory(torch.stack([context for context, _ in read], dim=1))  # (R, K, D)
            context, _ = self.combination(query, self.combination.project(to_combine))
            state = read_context(query, read_context.input(context))
            states.append(state)
            contexts.append(context)
            weights.append([alpha for _, alpha in read])
        by_attention = zip(*weights, strict=True)
        return torch.stack(states), [torch.stack(contexts, dim=1)], [torch.stack(x, dim=1) for x in by_attention]


class CombiningDecoder(RecurrentDecoder):
    """A recurrent decoder with one layer, a combining GRU over one group of memories."""

    def make_layer(self, input_dim: int, dim: int, groups: list[list[int]], heads: int, plain: bool) -> CombiningGRU:
        ((memory_dim, *others),) = groups
        return CombiningGRU(input_dim, dim, memory_dim, 1 + len(others))


@register_model("nsc_rt", dataclass=NSCConfig)
class NSCRTModel(NSCModel):
    """The second model encodes the source and the words of the reverse translation. Its decoder combines the contexts
    of both."""

    encoder_class = WordsEncoder

    @staticmethod
    def make_decoder(cfg, dictionary, reverse_model):
        return CombiningDecoder(cfg, dictionary, [[[2 * cfg.hidden_dim, 2 * cfg.hidden_dim]]])


class StatesEncoder(NSCEncoder):
    """An encoder whose reverse context is the first model's decoder states. It shares the first model's encoder."""

    def __init__(self, cfg: NSCConfig, dictionary, reverse_model: RNNSearchModel):
        encoder = reverse_model.encoder
        super().__init__(cfg, dictionary, reverse_model, recurrent=encoder.recurrent, embedding=encoder.embedding)

    @torch.no_grad()
    def reverse_context(self, src_tokens: Tensor, translations: Tensor) -> Memory:
        decoder, is_padding = self.reverse_model.decoder, translations.eq(self.known.target_pad)
        inputs = inputs_of(translations, decoder.dictionary.eos(), self.known.target_pad)
        steps, _ = decoder.run(inputs, decoder.begin(self.reverse_model.encoder(src_tokens)))
        return reverse_memory(steps.states, is_padding)


@register_model("nsc_hs", dataclass=NSCConfig)
class NSCHSModel(NSCModel):
    """The second model shares the first model's encoder. Its decoder is ABD's forward decoder, which attends to the
    source and to the first model's decoder states."""

    encoder_class = StatesEncoder

    @staticmethod
    def make_decoder(cfg, dictionary, reverse_model):
        layers = [[[2 * cfg.hidden_dim, cfg.hidden_dim]]]
        return RecurrentDecoder(cfg, dictionary, layers, embedding=reverse_model.decoder.embedding)
