"""Asynchronous bidirectional decoding: Zhang, Su, Qin, Liu, Ji, Wang, *Asynchronous Bidirectional Decoding for Neural
Machine Translation*, AAAI 2018.

A backward decoder first translates greedily from right to left. The forward decoder attends to the states of the
backward decoder (the reverse target context) just as it attends to the source, so it can anticipate the rest of the
sentence. The encoder and both decoders are trained together (criterion `bidirectional_cross_entropy`).

The paper does not specify every detail. Its parameter counts (130.0M, and 85.6M for RNNSearch) show that both decoders
are conditional GRUs of the dl4mt tutorial, that each has its own readout and output layer, and that they share one
target embedding. In this implementation, the reverse context has a state for every token that the backward decoder
emits, including the end-of-sentence symbol, so it is never empty.

Letters: B sentences (S in decoding), n source and m target tokens, T steps of the backward decoder, d state width, V
types. True in a padding mask means padding.
"""

from dataclasses import dataclass, field, replace
from typing import Optional

import torch
import torch.nn.functional as F
from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq.models import register_model
from omegaconf import OmegaConf
from torch import Tensor

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.dictionaries import OtherWords, check_words
from lwc_fairseq_compat.loading import IS_LOADING, noted

from ..data.reverse import inputs_of, is_reversed, require_reversed, reverse_inputs
from ..modules.recurrent import (
    DecodingState,
    Memory,
    RecurrentDecoder,
    SourceMemory,
    SteppingDecoder,
    Steps,
)
from ..modules.reverse_search import (
    ReverseContextOption,
    ReverseLimits,
    reverse_memory,
    search_greedily,
)
from .interface import BidirectionalModel, DecoderAttention, ReverseContextModel
from .rnnsearch import RecurrentConfig, RecurrentModel


@dataclass
class ReverseContextConfig(ReverseLimits, RecurrentConfig):
    """The options of ABD and its relatives. The defaults are the papers' sizes."""

    dropout: float = field(default=0.3, metadata={"help": "dropout of the readouts, before the softmax"})
    input_dropout: Optional[float] = field(  # type: ignore[assignment]  # noqa: UP045 (fairseq knows this spelling only)
        default=None,
        metadata={
            "help": "dropout of the word embeddings, and of the encoder states that attention reads and that the "
            "backward decoder of `abd` begins with. By default it is the value of `--dropout`; give 0 for a "
            "short run"
        },
    )


class RecurrentReverseModel(RecurrentModel, ReverseContextModel):
    """A recurrent model whose decoder reads the source and a reverse translation."""

    @classmethod
    def read_config(cls, cfg) -> ReverseContextConfig:
        config = super().read_config(cfg)
        if config.input_dropout is None:
            config.input_dropout = config.dropout
        return config

    def attention(self, src_tokens: Tensor, prev_output_tokens: Tensor) -> DecoderAttention:
        source, reverse = super().attention(src_tokens, prev_output_tokens).source
        return DecoderAttention([source], reverse=[reverse])


def with_prefix(weights: dict[str, Tensor], old: str, new: str) -> dict[str, str]:
    """Map each name that begins with `old` to the same name with `new` instead."""
    return {name: new + name.removeprefix(old) for name in weights if name.startswith(old)}


def start_from_right_to_left(
    model: RecurrentReverseModel, option: str, path: str | None, names: dict[str, str], task
) -> None:
    """Copy weights of a right-to-left model into a model that is being built.

    To translate, fairseq builds a model and loads the model's own checkpoint. So this function then does nothing, and
    the right-to-left checkpoint may have been deleted. Also to resume, fairseq builds a model first. So an error is
    noted. The model raises it when it computes before it has loaded a checkpoint.

    Args:
        option: the option that names the right-to-left model.
        path: the value of that option, a checkpoint.
        names: the names of the weights in the model, and for each its name in the checkpoint.

    Raises:
        UserError: the checkpoint is missing, its model translates from left to right, or has other words. Or a weight
            is missing in it, or has another shape. Or two weights of the checkpoint differ, and `model` shares them.
    """
    if IS_LOADING.get():
        return
    source = f"{option} {path}"
    with noted(source, OSError, UserError):
        if path is None:
            raise UserError(f"{option} is missing: give the checkpoint of a trained right-to-left model")
        if is_reversed(getattr(task, "cfg", None)):
            raise UserError(f"--reverse-target cannot be combined with {option}: leave --reverse-target out")
        checkpoint = load_checkpoint_to_cpu(path)
        require_reversed(OmegaConf.select(OmegaConf.create(checkpoint["cfg"]), "task"), source)
        try:
            check_words(task, checkpoint.get("task_state") or {})
        except OtherWords as error:
            raise UserError(f"{source}: {error}") from error
        weights, state = checkpoint["model"], model.state_dict()
        for name, theirs in names.items():
            shape, given = tuple(state[name].shape), weights.get(theirs)
            if given is None or given.shape != shape:
                has = "has none" if given is None else f"has {tuple(given.shape)}"
                raise UserError(
                    f"{source}: {theirs} should be {shape}, but the checkpoint {has}: train an "
                    "rnnsearch of the same sizes and dictionaries, with --task concat_translation --reverse-target"
                )
        model.load_state_dict({name: weights[theirs] for name, theirs in names.items()}, strict=False)
        for name, theirs in names.items():  # a shared table has the weights that were loaded last
            if not state[name].equal(weights[theirs].to(state[name])):
                raise UserError(
                    f"{source}: this model was trained without --share-all-embeddings: train it with the flag, or "
                    "leave the flag out here"
                )


@dataclass
class ABDConfig(ReverseContextOption, ReverseContextConfig):
    """The options of ABD. The defaults are the paper's sizes."""

    share_all_embeddings: bool = field(
        default=False,
        metadata={"help": "one table for source, target and both outputs; needs a joined dictionary"},
    )
    init_backward_from: Optional[str] = field(  # noqa: UP045 (fairseq knows this spelling only)
        default=None,
        metadata={
            "help": "checkpoint from which the encoder and the backward decoder start, except for the map to its first "
            "state: an `rnnsearch` of the same sizes, trained with `--task concat_translation --reverse-target`"
        },
    )


class AsynchronousDecoder(SteppingDecoder):
    """A forward decoder, and the backward decoder whose states it reads.

    Among the bases of a decoder, this class stands before that of the forward decoder alone.
    """

    backward_decoder: SteppingDecoder
    cfg: ReverseContextOption

    def begin(self, encoder_out: SourceMemory) -> DecodingState:
        """Search for the reverse translation, unless it is given, and return the forward decoder's state before its
        first step."""
        start, known = self.begin_backward(encoder_out), encoder_out.reverse_tokens
        if known is not None:
            steps, _ = self.backward_decoder.run(inputs_of(known, self.dictionary.eos(), self.dictionary.pad()), start)
            return self.begin_forward(encoder_out, reverse_memory(steps.states, known.eq(self.dictionary.pad())))
        _, reverse = self.search(encoder_out, start)
        return self.begin_forward(encoder_out, reverse)

    def begin_backward(self, encoder_out: SourceMemory) -> DecodingState:
        """Return the backward decoder's state before its first step."""
        return self.backward_decoder.begin(encoder_out)

    def begin_forward(self, encoder_out: SourceMemory, reverse: Memory) -> DecodingState:
        """Return the forward decoder's state before its first step; it attends to the memory `reverse` as well."""
        return super().begin(replace(encoder_out, memories=(*encoder_out.memories, reverse)))

    def search(self, encoder_out: SourceMemory, start: DecodingState) -> tuple[Tensor, Memory]:
        """Search greedily from the backward decoder's state `start`. Returns the tokens of the reverse translations
        (S, T), and the memory of their states."""
        (source,) = encoder_out.memories
        assert source.padding_mask is not None
        return search_greedily(self.backward_decoder, start, self.cfg.reverse_limits(source.padding_mask))


class ABDDecoder(AsynchronousDecoder, RecurrentDecoder):
    """The forward decoder (eq. 5-13), and the backward decoder (eq. 1-4) whose states it reads.

    The initial state of the backward decoder is computed from the last state of the encoder's forward RNN, and that of
    the forward decoder from the last state of the encoder's backward RNN.
    """

    def __init__(self, cfg: ABDConfig, dictionary):
        super().__init__(cfg, dictionary, [[[2 * cfg.hidden_dim, cfg.hidden_dim]]])
        self.cfg = cfg
        self.backward_decoder = RecurrentDecoder(cfg, dictionary, [[[2 * cfg.hidden_dim]]], embedding=self.embedding)

    def begin_backward(self, encoder_out: SourceMemory) -> DecodingState:
        (source,) = encoder_out.memories
        assert source.padding_mask is not None
        last = (~source.padding_mask).sum(1).sub(1).clamp(min=0)
        # The forward RNN's states are the first d of the 2d entries of h_i. --input-dropout has dropped some of them.
        state = source.states[torch.arange(last.size(0), device=last.device), last].chunk(2, dim=-1)[0]
        return super().begin_backward(replace(encoder_out, final_state=state))


class AsynchronousModel(BidirectionalModel, ReverseContextModel):
    """A model with an :class:`AsynchronousDecoder`."""

    @property
    def reads_translations(self) -> bool:
        return self.decoder.cfg.reverse_context == "translations"

    def reverse_translations(self, src_tokens: Tensor) -> Tensor:
        source = self.encoder(src_tokens)
        tokens, _ = self.decoder.search(source, self.decoder.begin_backward(source))
        return tokens

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        features_only: bool = False,
        backward: bool = False,
        reverse_tokens: Tensor | None = None,
        over_translations: bool = False,
    ) -> tuple[Tensor, dict]:
        """Teacher forcing, as in :class:`~.interface.BidirectionalModel`, for src_tokens (B, n) with padding on either
        side, and prev_output_tokens (B, m), the start symbol first, with padding on the right."""
        self.require_translations(reverse_tokens)
        dictionary = self.decoder.dictionary
        known = None if reverse_tokens is None else inputs_of(reverse_tokens, dictionary.eos(), dictionary.pad())
        reference = reverse_inputs(prev_output_tokens, dictionary.pad())
        if self.training and self.decoder.cfg.reverse_context == "reference":
            known = reference
        source = self.encoder(src_tokens)
        start = self.decoder.begin_backward(source)
        further = reference if backward and known is not reference and not over_translations else None
        reverse, backward_steps = self._run_backward(source, start, known, further)
        steps, state = self.decoder.run(prev_output_tokens, self.decoder.begin_forward(source, reverse))
        out, extra = self.decoder.decoder_out(steps, state.memories, features_only)
        if backward:
            backward_decoder = self.decoder.backward_decoder
            extra["backward"] = backward_decoder.decoder_out(backward_steps, start.memories, features_only)
        return out, extra

    def _run_backward(
        self, source: SourceMemory, start: DecodingState, known: Tensor | None, further: Tensor | None
    ) -> tuple[Memory, Steps | None]:
        """Return the reverse context, over the inputs `known` or, without them, over those of a greedy search; and the
        backward decoder's steps over the inputs `further` or, without them, over `known`."""
        decoder, pad = self.decoder.backward_decoder, self.decoder.dictionary.pad()
        if known is None:
            tokens, reverse = self.decoder.search(source, start)
            if not self.training and further is None:
                return reverse, None
            known = inputs_of(tokens, self.decoder.dictionary.eos(), pad)
        # The search builds no autograd graph. So the backward decoder runs again over the tokens that the search has
        # found, to get gradients for their states. These tokens and the reversed target are two rows of a sentence,
        # which share its memory, as the rows of a beam do.
        runs = [known] if further is None else [known, further]
        width = max(run.size(1) for run in runs)
        padded = [F.pad(run, (0, width - run.size(1)), value=pad) for run in runs]
        steps, _ = decoder.run(torch.stack(padded, dim=1).flatten(0, 1), start)
        by_run = [take_rows(steps, i, len(runs), run.size(1)) for i, run in enumerate(runs)]
        return reverse_memory(by_run[0].states, known.eq(pad)), by_run[-1]


def take_rows(steps: Steps, first: int, every: int, length: int) -> Steps:
    """Return the first `length` steps of the rows first, first + every, first + 2 · every, …"""
    words, states, *by_attention = steps
    rows = slice(first, None, every)
    return Steps(words[rows, :length], states[rows, :length], *([x[rows, :length] for x in xs] for xs in by_attention))


@register_model("abd", dataclass=ABDConfig)
class ABDModel(AsynchronousModel, RecurrentReverseModel):
    """Encoder, backward decoder (eq. 1-4) and forward decoder (eq. 5-13).

        h_i = [GRU(h_{i-1}, E_{x_i}); GRU(h_{i+1}, E_{x_i})]

        ŝ_j' = GRU(s̃_{j'+1}, E_{y_{j'+1}}),  m_eb = Att(ŝ_j', h),  s̃_j' = GRU(ŝ_j', m_eb)
        P(y_j' | y_>j', x) = softmax(g(E_{y_{j'+1}}, s̃_j', m_eb))

        ŝ_j = GRU(s_{j-1}, E_{y_{j-1}}),  m_ef = Att(ŝ_j, h),  m_bf = Att(ŝ_j, s̃),  s_j = GRU(ŝ_j, [m_ef; m_bf])
        P(y_j | y_<j, x) = softmax(g(E_{y_{j-1}}, s_j, m_ef, m_bf))

    In training and in generation, s̃ are the states over the words that a greedy search chooses. In training, they are
    computed again after the search, with dropout. Gradients flow through these states, but not through the choice of
    the words. With --reverse-context reference, s̃ are, in training, the states over the reversed target. With
    translations, they are the states over reverse translations that stand beside the data, in training and wherever
    else a loss is computed.

    With a criterion other than `bidirectional_cross_entropy`, the model trains as with λ = 1. The readout and the
    output layer of the backward decoder then get no gradient, so training with several processes needs
    --find-unused-parameters.
    """

    @classmethod
    def build_decoder(cls, cfg, dictionary) -> ABDDecoder:
        return ABDDecoder(cfg, dictionary)

    @classmethod
    def build_model(cls, cfg, task) -> "ABDModel":
        model = super().build_model(cfg, task)
        if cfg.init_backward_from is not None:
            state = model.state_dict()
            names = with_prefix(state, "encoder.", "encoder.")
            names |= with_prefix(state, "decoder.backward_decoder.", "decoder.")
            # RNNSearch computes its initial state from another encoder state.
            names = {name: theirs for name, theirs in names.items() if not theirs.startswith("decoder.initial_state.")}
            start_from_right_to_left(model, "--init-backward-from", cfg.init_backward_from, names, task)
        return model
