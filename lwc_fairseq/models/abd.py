"""Asynchronous bidirectional decoding: Zhang, Su, Qin, Liu, Ji, Wang, *Asynchronous Bidirectional Decoding for Neural
Machine Translation*, AAAI 2018.

A backward decoder first translates from right to left, greedily. Its states, the reverse target context, are to the
forward decoder what the source is: a memory to attend to. So the forward decoder knows what the rest of the sentence
may be. Both decoders and the encoder are trained at once (criterion `bidirectional_cross_entropy`).

What the paper leaves open, and what is done here: parameter counts (130.0M, and 85.6M for RNNSearch) show that both
decoders are conditional GRUs of the dl4mt tutorial, with a readout and an output layer each and one target embedding.
The reverse context has a state for every token that the backward decoder emits, the end included, so it is never empty.

Letters: B sentences, n source and m target tokens, T steps of the backward decoder, E width of embeddings, d of states,
V types; in decoding S sentences and R = S · beam hypotheses. True in a padding mask means padding.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Optional

import torch
from fairseq.dataclass import ChoiceEnum
from fairseq.models import FairseqEncoder, register_model
from torch import Tensor, nn

from lwc_fairseq_compat import UserError

from ..data.reverse import reverse_inputs
from ..modules.attention_memory import Memory
from ..modules.initialization import initialize_recurrent
from ..modules.output_features import OutputFeatures
from ..modules.recurrent_decoder import RecurrentDecoder, Steps
from ..modules.recurrent_encoder import BidirectionalEncoder, SourceOrder
from ..modules.reverse_search import ReverseTranslation, search_greedily
from ..modules.source_memory import SourceMemory
from ._pretrained import Pretrained
from ._recurrent import RecurrentConfig
from .interface import BidirectionalModel, DecoderAttention, TranslationModel


@dataclass
class ReverseContextConfig(RecurrentConfig):
    """What ABD and its relatives share."""

    dropout: float = field(default=0.3, metadata={"help": "dropout of the readouts, before the softmax"})
    max_reverse_len_a: float = field(
        default=2.0, metadata={"help": "the reverse translation ends after a · n + b tokens, n being the source's"}
    )
    max_reverse_len_b: int = field(default=0, metadata={"help": "b of the same"})

    def check(self) -> None:
        """Raises UserError, a ValueError, that names the setting which cannot be."""
        super().check()
        if self.max_reverse_len_a < 0 or self.max_reverse_len_b < 0:
            raise UserError(
                f"--max-reverse-len-a {self.max_reverse_len_a} --max-reverse-len-b {self.max_reverse_len_b}: "
                "must not be negative"
            )


@dataclass
class ABDConfig(ReverseContextConfig):
    """The model of the paper."""

    reverse_context: ChoiceEnum(["greedy", "reference"]) = field(
        default="greedy",
        metadata={
            "help": "what the forward decoder sees of the reverse translation in training: the states of a greedy "
            "search with the current model, or of the reversed reference (the paper's RR). Generation is always greedy"
        },
    )
    init_backward_from: Optional[str] = field(  # noqa: UP045 (fairseq knows this spelling only)
        default=None,
        metadata={
            "help": "checkpoint of an rnnsearch of the same sizes, trained with --task concat_translation "
            "--reverse-target: the encoder and the backward decoder of abd start from it"
        },
    )


class Annotations(NamedTuple):
    """What the encoder makes of the source."""

    memory: Memory  # h, (S, n, 2d)
    forward_state: Tensor  # (S, d), the last one of the forward RNN
    backward_state: Tensor  # (S, d), that of the backward RNN at the first word
    limits: Tensor  # (S,), how many tokens the reverse translation may have


class ReverseContextEncoder(FairseqEncoder):
    """A bidirectional GRU over the source, and a reverse context from somewhere.

    Args:
        shared: an encoder whose embedding and GRU serve here, too; without one there are new ones.
    """

    def __init__(
        self, cfg: ReverseContextConfig, dictionary, decoder: RecurrentDecoder, shared: FairseqEncoder | None = None
    ):
        super().__init__(dictionary)
        self.max_reverse_len = cfg.max_reverse_len_a, cfg.max_reverse_len_b
        if shared is None:
            self.embedding = nn.Embedding(len(dictionary), cfg.embed_dim, dictionary.pad())
            self.recurrent = BidirectionalEncoder(cfg.embed_dim, cfg.hidden_dim)
        else:
            self.embedding, self.recurrent = shared.embedding, shared.recurrent
        # The decoder is the model's. Held here past nn.Module's registration, it stays one set of parameters under
        # one name, in checkpoints too.
        self.__dict__["decoder"] = decoder

    def annotate(self, src_tokens: Tensor) -> Annotations:
        """Source tokens (S, n), padded on either side, to h_i = [forward; backward] and the RNNs' last states."""
        order = SourceOrder(src_tokens, self.dictionary.pad())
        (h,), backward_state = self.recurrent(self.embedding(order.tokens.T), order)
        memory = Memory(h.transpose(0, 1).contiguous(), order.padding_mask, order.columns)
        a, b = self.max_reverse_len
        limits = (a * (~order.padding_mask).sum(1) + b).long().clamp(min=1)
        return Annotations(memory, order.last(h).chunk(2, dim=-1)[0], backward_state, limits)

    def search(self, src_tokens: Tensor, source: Annotations) -> ReverseTranslation:
        """The reverse translation."""
        raise NotImplementedError

    def reverse_context(self, found: ReverseTranslation) -> tuple[Tensor, Tensor]:
        """What the forward decoder sees of it: (S, T, D), and its padding mask (S, T)."""
        return found.states, found.padding_mask

    def start_forward(self, source: Annotations, context: Tensor, padding_mask: Tensor) -> SourceMemory:
        """What the forward decoder starts from: h, the reverse context, the first state of the backward RNN."""
        steps = torch.arange(padding_mask.size(1), device=padding_mask.device).expand_as(padding_mask)
        return self.decoder.start([source.memory, Memory(context, padding_mask, steps)], source.backward_state)

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **unused) -> SourceMemory:
        """The first phase of decoding: from source tokens (S, n) to what the forward decoder starts from."""
        source = self.annotate(src_tokens)
        return self.start_forward(source, *self.reverse_context(self.search(src_tokens, source)))

    def reverse_translations(self, src_tokens: Tensor) -> Tensor:
        """The reverse translation as it was found, from right to left, (S, T), padding on the right."""
        return self.search(src_tokens, self.annotate(src_tokens)).outputs

    def reorder_encoder_out(self, encoder_out: SourceMemory, new_order: Tensor) -> SourceMemory:
        return encoder_out.reorder(new_order)


class ABDEncoder(ReverseContextEncoder):
    """The reverse context are the backward decoder's states."""

    def __init__(self, cfg: ABDConfig, dictionary, backward_decoder: RecurrentDecoder, decoder: RecurrentDecoder):
        super().__init__(cfg, dictionary, decoder)
        self.__dict__["backward_decoder"] = backward_decoder  # the model's, too

    def start_backward(self, source: Annotations) -> SourceMemory:
        """What the backward decoder starts from: h, and the last state of the forward RNN."""
        return self.backward_decoder.start([source.memory], source.forward_state)

    def search(self, src_tokens, source):
        return search_greedily(self.backward_decoder, self.start_backward(source), source.limits)


class ReverseContextModel(TranslationModel):
    """A model that may start from another one's checkpoint, until it has a checkpoint of its own."""

    pretrained: Pretrained

    def attention(self, src_tokens: Tensor, prev_output_tokens: Tensor) -> DecoderAttention:
        _, extra = self.decoder(prev_output_tokens, self.encoder(src_tokens))
        source, reverse = (weights[:, None] for weights in extra["attentions"])
        return DecoderAttention([source], reverse=[reverse])

    def load_state_dict(self, *args, **kwargs):
        self.pretrained.forget()
        return super().load_state_dict(*args, **kwargs)


@register_model("abd", dataclass=ABDConfig)
class ABDModel(ReverseContextModel, BidirectionalModel):
    """Encoder, backward decoder (eq. 1-4) and forward decoder (eq. 5-13).

        h_i = [GRU(h_{i-1}, E_{x_i}); GRU(h_{i+1}, E_{x_i})]

        ŝ_j' = GRU(s̃_{j'+1}, E_{y_{j'+1}}),  m_eb = Att(ŝ_j', h),  s̃_j' = GRU(ŝ_j', m_eb)
        P(y_j' | y_>j', x) = softmax(g(E_{y_{j'+1}}, s̃_j', m_eb))

        ŝ_j = GRU(s_{j-1}, E_{y_{j-1}}),  m_ef = Att(ŝ_j, h),  m_bf = Att(ŝ_j, s̃),  s_j = GRU(ŝ_j, [m_ef; m_bf])
        P(y_j | y_<j, x) = softmax(g(E_{y_{j-1}}, s_j, m_ef, m_bf))

    s̃ are, in training as in generation, the states of a greedy search: which tokens it picks has no gradient, its
    states have one. With --reverse-context reference they are, in training, those of the reversed target.

    Under another criterion than `bidirectional_cross_entropy` it trains as with λ = 1, but for the readout and output
    of the backward decoder, which then get no gradient: several processes need --find-unused-parameters.
    """

    def __init__(self, cfg: ABDConfig, source_dictionary, target_dictionary):
        dim = cfg.hidden_dim
        decoder = RecurrentDecoder(target_dictionary, cfg.embed_dim, dim, [[[2 * dim, dim]]], cfg.dropout)
        backward_decoder = RecurrentDecoder(
            target_dictionary, cfg.embed_dim, dim, [[[2 * dim]]], cfg.dropout, embedding=decoder.embedding
        )
        super().__init__(ABDEncoder(cfg, source_dictionary, backward_decoder, decoder), decoder)
        self.backward_decoder = backward_decoder
        self.pretrained = Pretrained("--init-backward-from", None, [])
        self.teacher_forced_context = cfg.reverse_context == "reference"

    @classmethod
    def build_model(cls, cfg, task) -> "ABDModel":
        cfg = ABDConfig.from_namespace(cfg)
        cfg.check()
        model = cls(cfg, task.source_dictionary, task.target_dictionary)
        initialize_recurrent(model, cfg.init_std)
        # RNNSearch makes its first state of another state of the encoder, so this map stays as it is
        parts = [(model.encoder, "encoder.", ()), (model.backward_decoder, "decoder.", ("initial_state.",))]
        model.pretrained = Pretrained("--init-backward-from", cfg.init_backward_from, parts)
        return model

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        backward: bool = False,
        features_only: bool = False,
    ) -> tuple[Tensor, dict] | OutputFeatures | tuple[OutputFeatures, OutputFeatures]:
        """Teacher forcing.

        Args:
            src_tokens: (B, n), padding on either side.
            prev_output_tokens: (B, m), the start symbol first, padding on the right.
            backward: also give the backward decoder's logits.
            features_only: leave out the output layers.

        Returns:
            Logits (B, m, V) for the next token after each of prev_output_tokens; with `backward` also
            "backward_logits" (B, m, V), for the next token after each of the reversed ones. With `features_only` what
            goes into the output layer, or into both.
        """
        self.pretrained.require()
        source = self.encoder.annotate(src_tokens)
        reference = reverse_inputs(prev_output_tokens, self.decoder.dictionary.pad())
        context, padding_mask, steps = self._run_backward(source, reference, backward)
        start = self.encoder.start_forward(source, context, padding_mask)
        if features_only:
            forward = self.decoder(prev_output_tokens, start, features_only=True)
            return (forward, self.backward_decoder.features(steps, reference)) if backward else forward
        logits, extra = self.decoder(prev_output_tokens, start)
        if backward:
            hidden = self.backward_decoder.read_out(steps)
            extra["backward_logits"] = self.backward_decoder.output(self.backward_decoder.dropout(hidden))
        return logits, extra

    def _run_backward(
        self, source: Annotations, reference: Tensor, backward: bool
    ) -> tuple[Tensor, Tensor, Steps | None]:
        """The reverse context and its padding mask, and with `backward` the steps over the reversed target."""
        start = self.encoder.start_backward(source)
        if self.training and self.teacher_forced_context:
            steps = self.backward_decoder.run(reference, start)
            return steps.states, reference.eq(self.decoder.dictionary.pad()), steps
        found = search_greedily(self.backward_decoder, start, source.limits)
        # The search keeps no graph. Its tokens are run once more, for the gradients of their states, beside the
        # reversed target: two rows that share a sentence, as those of a beam do.
        runs = [found.inputs] if self.training else []
        runs += [reference] if backward else []
        if not runs:
            return found.states, found.padding_mask, None
        steps = self.backward_decoder.run(side_by_side(runs, self.decoder.dictionary.pad()), start)
        by_run = [take_rows(steps, i, len(runs), run.size(1)) for i, run in enumerate(runs)]
        states = by_run[0].states if self.training else found.states
        return states, found.padding_mask, by_run[-1]


def side_by_side(rows: list[Tensor], pad: int) -> Tensor:
    """Token ids (B, m_1), (B, m_2), ... as one batch in which the rows of a sentence follow each other."""
    width = max(row.size(1) for row in rows)
    padded = [nn.functional.pad(row, (0, width - row.size(1)), value=pad) for row in rows]
    return torch.stack(padded, dim=1).flatten(0, 1)


def take_rows(steps: Steps, first: int, every: int, length: int) -> Steps:
    """The steps of every so many rows, as many as there are tokens."""

    def take(x: Tensor) -> Tensor:
        return x[first::every, :length]

    return Steps(take(steps.words), take(steps.states), *([take(x) for x in xs] for xs in steps[2:]))
