"""Asynchronous bidirectional decoding: Zhang, Su, Qin, Liu, Ji, Wang, *Asynchronous Bidirectional Decoding for Neural
Machine Translation*, AAAI 2018.

A backward decoder first translates greedily from right to left. The forward decoder attends to the states of the
backward decoder (the reverse target context) just as it attends to the source, so it can anticipate the rest of the
sentence. The encoder and both decoders are trained together (criterion `bidirectional_cross_entropy`).

The paper does not specify every detail. Its parameter counts (130.0M, and 85.6M for RNNSearch) show that both decoders
are conditional GRUs of the dl4mt tutorial, that each has its own readout and output layer, and that they share one
target embedding. In this implementation, the reverse context has a state for every token that the backward decoder
emits, including the end-of-sentence symbol, so it is never empty.

Letters: B sentences, n source and m target tokens, T steps of the backward decoder, E embedding width, d state width, V
types; in decoding, S sentences and R = S · beam hypotheses. True in a padding mask means padding.
"""

from dataclasses import dataclass, field, replace
from typing import Optional

import torch
from fairseq.dataclass import ChoiceEnum
from fairseq.models import register_model
from torch import Tensor, nn

from ..data.reverse import reverse_inputs
from ..modules.attention_memory import Memory
from ..modules.initialization import initialize_recurrent
from ..modules.output_features import OutputFeatures
from ..modules.recurrent_decoder import RecurrentDecoder, Steps
from ..modules.recurrent_encoder import BidirectionalEncoder
from ..modules.reverse_search import ReverseTranslation, search_greedily
from ..modules.source_memory import DecodingState, SourceMemory
from .interface import BidirectionalModel
from .pretrained import Pretrained
from .recurrent import RecurrentEncoder, share_embeddings, word_embedding
from .reverse_context import ReverseContextConfig, ReverseContextModel, reverse_memory


@dataclass
class ABDConfig(ReverseContextConfig):
    """The options of ABD. The defaults are the paper's sizes."""

    reverse_context: ChoiceEnum(["greedy", "reference"]) = field(
        default="greedy",
        metadata={
            "help": "source of the reverse target context in training: the backward decoder's states in a greedy "
            "search, or over the reversed reference (the paper's RR); generation always searches greedily"
        },
    )
    share_all_embeddings: bool = field(
        default=False,
        metadata={"help": "share one table between source, target and both outputs; needs a joined dictionary"},
    )
    init_backward_from: Optional[str] = field(  # noqa: UP045 (fairseq knows this spelling only)
        default=None,
        metadata={
            "help": "checkpoint of an rnnsearch model of the same sizes, trained with --task concat_translation "
            "--reverse-target; it initializes the encoder and the backward decoder"
        },
    )


class ABDDecoder(RecurrentDecoder):
    """The forward decoder (eq. 5-13), and the backward decoder (eq. 1-4) whose states it reads.

    The initial state of the backward decoder is computed from the last state of the encoder's forward RNN, and that of
    the forward decoder from the last state of the encoder's backward RNN.
    """

    def __init__(self, cfg: ABDConfig, dictionary):
        sizes, source_dim, state_dim = (cfg.embed_dim, cfg.hidden_dim), 2 * cfg.hidden_dim, cfg.hidden_dim
        settings = {"dropout": cfg.dropout, "plain": cfg.plain_kernels, "input_dropout": cfg.input_dropout}
        super().__init__(dictionary, *sizes, [[[source_dim, state_dim]]], **settings)
        self.cfg = cfg
        self.backward_decoder = RecurrentDecoder(
            dictionary, *sizes, [[[source_dim]]], embedding=self.embedding, **settings
        )

    def begin(self, encoder_out: SourceMemory) -> DecodingState:
        """Search for the reverse translation, and return the forward decoder's state before its first step."""
        found = self.search(encoder_out, self.begin_backward(encoder_out))
        return self.begin_forward(encoder_out, reverse_memory(found.states, found.padding_mask))

    def begin_backward(self, encoder_out: SourceMemory) -> DecodingState:
        """Return the backward decoder's state before its first step."""
        return self.backward_decoder.begin(replace(encoder_out, final_state=last_forward_state(*encoder_out.memories)))

    def begin_forward(self, encoder_out: SourceMemory, reverse: Memory) -> DecodingState:
        """Return the forward decoder's state before its first step; it attends to the memory `reverse` as well."""
        return super().begin(replace(encoder_out, memories=(*encoder_out.memories, reverse)))

    def search(self, encoder_out: SourceMemory, start: DecodingState) -> ReverseTranslation:
        """Search greedily for the reverse translation, from the backward decoder's state `start`."""
        return search_greedily(self.backward_decoder, start, self.cfg.reverse_limits(*encoder_out.memories))


def last_forward_state(source: Memory) -> Tensor:
    """Return the forward RNN's state (S, d) at the last word of each sentence: the first d of the 2d entries of h_i.

    In training, --input-dropout has dropped entries of it, as of all h_i.
    """
    last = (~source.padding_mask).sum(1).sub(1).clamp(min=0)
    return source.states[torch.arange(len(last), device=last.device), last].chunk(2, dim=-1)[0]


@register_model("abd", dataclass=ABDConfig)
class ABDModel(ReverseContextModel, BidirectionalModel):
    """Encoder, backward decoder (eq. 1-4) and forward decoder (eq. 5-13).

        h_i = [GRU(h_{i-1}, E_{x_i}); GRU(h_{i+1}, E_{x_i})]

        ŝ_j' = GRU(s̃_{j'+1}, E_{y_{j'+1}}),  m_eb = Att(ŝ_j', h),  s̃_j' = GRU(ŝ_j', m_eb)
        P(y_j' | y_>j', x) = softmax(g(E_{y_{j'+1}}, s̃_j', m_eb))

        ŝ_j = GRU(s_{j-1}, E_{y_{j-1}}),  m_ef = Att(ŝ_j, h),  m_bf = Att(ŝ_j, s̃),  s_j = GRU(ŝ_j, [m_ef; m_bf])
        P(y_j | y_<j, x) = softmax(g(E_{y_{j-1}}, s_j, m_ef, m_bf))

    In training and in generation, s̃ are the states of a greedy search. Gradients flow through these states, but not
    through the choice of the tokens. With --reverse-context reference, s̃ are, in training, the states over the
    reversed target.

    With a criterion other than `bidirectional_cross_entropy`, the model trains as with λ = 1. The readout and the
    output layer of the backward decoder then get no gradient, so training with several processes needs
    --find-unused-parameters.
    """

    renamed = {"backward_decoder.": "decoder.backward_decoder."}

    def __init__(self, cfg: ABDConfig, source_dictionary, target_dictionary):
        recurrent = BidirectionalEncoder(cfg.embed_dim, cfg.hidden_dim, cfg.plain_kernels)
        embedding = word_embedding(source_dictionary, cfg.embed_dim)
        encoder = RecurrentEncoder(source_dictionary, embedding, recurrent, cfg.input_dropout)
        super().__init__(encoder, ABDDecoder(cfg, target_dictionary))
        self.pretrained = Pretrained("--init-backward-from", None, [])
        self.teacher_forced_context = cfg.reverse_context == "reference"

    @classmethod
    def build_model(cls, cfg, task) -> "ABDModel":
        cfg = cls.read_config(cfg)
        model = cls(cfg, task.source_dictionary, task.target_dictionary)
        if cfg.share_all_embeddings:
            share_embeddings(model.encoder, [model.decoder, model.decoder.backward_decoder])
        initialize_recurrent(model, cfg.init_std)
        # RNNSearch computes its initial state from another encoder state, so initial_state keeps its random weights
        # here.
        parts = [(model.encoder, "encoder.", ()), (model.decoder.backward_decoder, "decoder.", ("initial_state.",))]
        model.pretrained = Pretrained("--init-backward-from", cfg.init_backward_from, parts, task)
        return model

    def reverse_translations(self, src_tokens: Tensor) -> Tensor:
        source = self.encoder(src_tokens)
        return self.decoder.search(source, self.decoder.begin_backward(source)).outputs

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        backward: bool = False,
        target_slots: Tensor | None = None,
    ) -> tuple[Tensor, dict] | OutputFeatures | tuple[OutputFeatures, OutputFeatures]:
        """Teacher forcing.

        Args:
            src_tokens: (B, n), padding on either side.
            prev_output_tokens: (B, m), the start symbol first, padding on the right.
            backward: also run the backward decoder over the reversed target.
            target_slots: return the inputs of the output layer (with `backward`, of both output layers) at these
                positions, flat indices into (B, m), instead of logits.

        Returns:
            Logits (B, m, V) for the token after each of prev_output_tokens. With `backward`, the dictionary also holds
            "backward_logits" (B, m, V), for the token after each token of the reversed target input.
        """
        self.pretrained.require()
        source = self.encoder(src_tokens)
        reference = reverse_inputs(prev_output_tokens, self.decoder.dictionary.pad())
        reverse, backward_steps = self._run_backward(source, reference, backward)
        steps, state = self.decoder.run(prev_output_tokens, self.decoder.begin_forward(source, reverse))
        if target_slots is not None:
            forward = self.decoder.features(steps, target_slots)
            if not backward:
                return forward
            # A reversed target has its padding where the target has it.
            return forward, self.decoder.backward_decoder.features(backward_steps, target_slots)
        logits, extra = self.decoder.decoder_out(steps, state.memories)
        if backward:
            extra["backward_logits"] = self.decoder.backward_decoder.logits(backward_steps)
        return logits, extra

    def _run_backward(self, source: SourceMemory, reference: Tensor, backward: bool) -> tuple[Memory, Steps | None]:
        """Return the reverse context and, with `backward`, the backward decoder's steps over the reversed target."""
        decoder, pad = self.decoder.backward_decoder, self.decoder.dictionary.pad()
        start = self.decoder.begin_backward(source)
        if self.training and self.teacher_forced_context:
            steps, _ = decoder.run(reference, start)
            return reverse_memory(steps.states, reference.eq(pad)), steps
        found = self.decoder.search(source, start)
        # The search builds no autograd graph, so training runs the backward decoder again over the tokens found, to
        # get gradients for their states. These tokens and the reversed target are two rows of each sentence, which
        # share its memory as the rows of a beam do.
        runs = [found.inputs] if self.training else []
        runs += [reference] if backward else []
        if not runs:
            return reverse_memory(found.states, found.padding_mask), None
        steps, _ = decoder.run(side_by_side(runs, pad), start)
        by_run = [take_rows(steps, i, len(runs), run.size(1)) for i, run in enumerate(runs)]
        states = by_run[0].states if self.training else found.states
        return reverse_memory(states, found.padding_mask), by_run[-1]


def side_by_side(rows: list[Tensor], pad: int) -> Tensor:
    """Interleave token ids (B, m_1), (B, m_2), … into one batch in which the rows of a sentence follow each other."""
    width = max(row.size(1) for row in rows)
    padded = [nn.functional.pad(row, (0, width - row.size(1)), value=pad) for row in rows]
    return torch.stack(padded, dim=1).flatten(0, 1)


def take_rows(steps: Steps, first: int, every: int, length: int) -> Steps:
    """Return the first `length` steps of the rows first, first + every, first + 2 · every, …"""

    def take(x: Tensor) -> Tensor:
        return x[first::every, :length]

    return Steps(take(steps.words), take(steps.states), *([take(x) for x in xs] for xs in steps[2:]))
