"""Asynchronous bidirectional decoding with deep decoders: the network of the program that the authors of ABD (Zhang et
al., AAAI 2018; :mod:`~.abd`) published in 2019, https://github.com/DeepLearnXMU/ABDNMT-RNMT. No paper describes it.

Each decoder layer has a GRU, attention and a feed-forward network. No attention lies between two steps of a GRU. So in
training, one call runs a GRU over all words of a sentence, and all words attend at once.

Letters: B sentences; in decoding, S sentences and R = S · beam hypotheses, one row each. n source tokens or memory
positions, m target tokens, T steps of the backward decoder, H heads, d width, L decoder layers, V types. True in a
padding mask means padding.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F
from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqEncoder, register_model
from fairseq.modules.fairseq_dropout import FairseqDropout
from torch import Tensor, nn

from lwc_fairseq_compat.loading import IS_LOADING

from ..modules.mixed_attention import active_rate
from ..modules.recurrent import (
    DecodingState,
    Memory,
    ProjectedMemory,
    SourceMemory,
    SourceOrder,
    SteppingDecoder,
    Steps,
    divide,
)
from ..modules.reverse_search import ReverseContextOption
from .abd import AsynchronousDecoder, AsynchronousModel
from .interface import DecoderAttention, check_dropouts, check_heads, check_sizes
from .rnnsearch import RecurrentModel


@dataclass
class RNMTConfig(FairseqDataclass):
    """The options of `rnmt`. The defaults are those of the authors' program."""

    embed_dim: int = field(default=512, metadata={"help": "width of embeddings and of all states, d"})
    decoder_layers: int = field(default=4, metadata={"help": "number of layers of each decoder"})
    attention_heads: int = field(default=8, metadata={"help": "heads of each attention, a divisor of the width"})
    dropout: float = field(
        default=0.3,
        metadata={"help": "dropout of embeddings, of the encoder's GRUs, and of the output of each sub-layer"},
    )
    activation_dropout: float = field(
        default=0.0, metadata={"help": "dropout after the ReLU of the feed-forward network"}
    )
    attention_dropout: float = field(default=0.0, metadata={"help": "dropout of attention weights"})
    share_all_embeddings: bool = field(
        default=False,
        metadata={
            "help": "the source, too, uses the table that target inputs and outputs share in any case; needs a joined "
            "dictionary"
        },
    )

    def check(self) -> None:
        """Raises UserError naming the invalid setting."""
        check_sizes(self, "embed_dim", "decoder_layers", "attention_heads")
        check_heads(self, "embed_dim")
        check_dropouts(self, "dropout", "activation_dropout", "attention_dropout")


@dataclass
class ABDRNMTConfig(ReverseContextOption, RNMTConfig):
    """The options of `abd_rnmt`. The defaults are those of the authors' program."""


class CrossAttention(nn.Module):
    """Multi-head attention of Vaswani et al. (2017) to a memory, for all positions of a sequence at once."""

    def __init__(self, dim: int, heads: int, dropout: float):
        super().__init__()
        self.heads = heads
        self.dropout = FairseqDropout(dropout, module_name=type(self).__name__)
        self.query = nn.Linear(dim, dim)
        self.key_value = nn.Linear(dim, 2 * dim)
        self.output = nn.Linear(dim, dim)

    def project(self, memory: Memory) -> ProjectedMemory:
        """Compute keys and values, (S, H, n, d/H) each, once per sentence."""
        keys, values = (self._split(x).contiguous() for x in self.key_value(memory.states).chunk(2, dim=-1))
        return ProjectedMemory(memory.padding_mask, memory.columns, keys, values)

    def _split(self, x: Tensor) -> Tensor:
        """Rearrange (S, n, d) to (S, H, n, d/H)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x: Tensor, memory: ProjectedMemory, need_weights: bool) -> tuple[Tensor, Tensor | None]:
        """Map x (R, m, d) to what is read, (R, m, d), and the weights (R, m, n), averaged over the heads, or None. Each
        `beam` consecutive rows share the memory of a sentence."""
        assert memory.padding_mask is not None
        by_sentence = self.query(x).unflatten(0, (len(memory.keys), -1)).flatten(1, 2)  # (S, beam · m, d)
        query, is_real = self._split(by_sentence), ~memory.padding_mask[:, None, None]
        rate = active_rate(self.dropout)
        read = F.scaled_dot_product_attention(query, memory.keys, memory.values, is_real, rate)
        output = self.output(read.transpose(1, 2).reshape(x.shape))
        if not need_weights:
            return output, None
        scores = (query @ memory.keys.transpose(2, 3) / math.sqrt(query.size(-1))).masked_fill(~is_real, -torch.inf)
        return output, scores.softmax(-1).mean(1).view(*x.shape[:2], -1)


class RNMTLayer(nn.Module):
    """A decoder layer; :class:`ABDRNMTModel` has its equations.

    Args:
        memories: the number of memories. The layer attends to the last one first.
    """

    attentions: Sequence[CrossAttention]

    def __init__(self, cfg: RNMTConfig, memories: int):
        super().__init__()
        dim = cfg.embed_dim
        self.recurrent_norm = nn.LayerNorm(dim)
        self.recurrent = nn.GRU(dim, dim, batch_first=True)
        self.attention_norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(memories))
        attentions = (CrossAttention(dim, cfg.attention_heads, cfg.attention_dropout) for _ in range(memories))
        self.add_module("attentions", nn.ModuleList(attentions))
        self.feed_forward_norm = nn.LayerNorm(dim)
        self.fc1, self.fc2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.activation_dropout = FairseqDropout(cfg.activation_dropout, module_name=type(self).__name__)
        self.dropout = FairseqDropout(cfg.dropout, module_name=type(self).__name__)

    def forward(
        self, x: Tensor, state: Tensor, memories: list[ProjectedMemory], need_weights: bool
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Map x (R, m, d), and the GRU's last state (R, d), to x, the state after m steps, and the weights (R, m, n) of
        each attention, if they are needed."""
        normed = self.recurrent_norm(x)
        states, last_state = self.recurrent(normed, state[None].to(normed.dtype).contiguous())
        x = x + self.dropout(states)
        weights = []
        for norm, attention, memory in reversed([*zip(self.attention_norms, self.attentions, memories, strict=True)]):
            read, alpha = attention(norm(x), memory, need_weights)
            x = x + self.dropout(read)
            weights.append(alpha)
        hidden = self.activation_dropout(F.relu(self.fc1(self.feed_forward_norm(x))))
        return x + self.dropout(self.fc2(hidden)), last_state[0], weights[::-1] if need_weights else []


class RNMTEncoder(FairseqEncoder):
    """Word embeddings, a GRU in each direction, and a tanh map of both to the width of the decoders."""

    def __init__(self, cfg: RNMTConfig, dictionary):
        super().__init__(dictionary)
        dim = cfg.embed_dim
        self.embedding = nn.Embedding(len(dictionary), dim, dictionary.pad())
        self.forward_layer, self.backward_layer = nn.GRU(dim, dim), nn.GRU(dim, dim)
        self.output = nn.Linear(2 * dim, dim)
        self.dropout = FairseqDropout(cfg.dropout, module_name=type(self).__name__)

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor | None = None, reverse_tokens: Tensor | None = None, **unused
    ) -> SourceMemory:
        """Return the memory h of source tokens (B, n), padded on either side, its mean over the tokens, and the reverse
        translations (B, T) if they are given."""
        order = SourceOrder(src_tokens, self.dictionary.pad())
        words = self.dropout(self.embedding(order.tokens.T))  # (n, B, d)
        forward, backward = self.forward_layer(words)[0], self.backward_layer(order.reverse(words))[0]
        both = torch.cat([forward, order.reverse(backward)], dim=-1)
        states = torch.tanh(self.output(self.dropout(both))).transpose(0, 1).contiguous()  # (B, n, d)
        is_padding = order.padding_mask[:, :, None]
        mean = states.masked_fill(is_padding, 0).sum(1) / (~is_padding).sum(1)
        memory = Memory(states, order.padding_mask, order.columns)
        return SourceMemory((memory,), mean, reverse_tokens=reverse_tokens)

    def reorder_encoder_out(self, encoder_out: SourceMemory, new_order: Tensor) -> SourceMemory:
        return encoder_out.reorder(new_order)


class RNMTDecoder(SteppingDecoder):
    """L layers, and an output layer with the weights of the target embedding.

    Args:
        memories: the number of memories that each layer attends to; the first is the source.
        shared: another decoder, whose embedding and output layer this one uses.
    """

    layers: Sequence[RNMTLayer]

    def __init__(self, cfg: RNMTConfig, dictionary, memories: int = 1, shared: "RNMTDecoder | None" = None):
        super().__init__(dictionary, alignment_layer=-memories)  # the top layer's attention to the source
        dim = cfg.embed_dim
        if shared is None:
            self.embedding = nn.Embedding(len(dictionary), dim, dictionary.pad())
            self.output = nn.Linear(dim, len(dictionary))
            self.output.weight = self.embedding.weight
        else:
            self.embedding, self.output = shared.embedding, shared.output
        self.initial_state = nn.Linear(dim, cfg.decoder_layers * dim)
        self.add_module("layers", nn.ModuleList(RNMTLayer(cfg, memories) for _ in range(cfg.decoder_layers)))
        self.norm = nn.LayerNorm(dim)
        self.dropout = FairseqDropout(cfg.dropout, module_name=type(self).__name__)

    def begin(self, encoder_out: SourceMemory) -> DecodingState:
        projected = [
            attention.project(memory)
            for layer in self.layers
            for attention, memory in zip(layer.attentions, encoder_out.memories, strict=True)
        ]
        return DecodingState(torch.tanh(self.initial_state(encoder_out.final_state)), tuple(projected))

    def run(self, tokens: Tensor, state: DecodingState) -> tuple[Steps, DecodingState]:
        state = state.for_rows(len(tokens))
        x = words = self.dropout(self.embedding(tokens)) * math.sqrt(self.embedding.embedding_dim)
        need_weights = self.need_attn and not self.training  # the kernel that reads the memories returns none
        last_states, weights = [], []
        first_states = state.states.chunk(len(self.layers), dim=1)
        by_layer = divide(state.memories, [len(layer.attentions) for layer in self.layers])
        for layer, first_state, memories in zip(self.layers, first_states, by_layer, strict=True):
            x, last_state, alphas = layer(x, first_state, memories, need_weights)
            last_states.append(last_state)
            weights += alphas
        steps = Steps(words, self.norm(x), [], weights)
        return steps, replace(state, states=torch.cat(last_states, dim=1), length=state.length + tokens.size(1))

    def read_out(self, steps: Steps) -> Tensor:
        return steps.states


class ABDRNMTDecoder(AsynchronousDecoder, RNMTDecoder):
    """The forward decoder, and the backward decoder whose states it reads."""

    def __init__(self, cfg: ABDRNMTConfig, dictionary):
        super().__init__(cfg, dictionary, memories=2)
        self.cfg = cfg
        self.backward_decoder = RNMTDecoder(cfg, dictionary, shared=self)
        self.backward_decoder.need_attn = False  # nothing reads its weights


@register_model("rnmt", dataclass=RNMTConfig)
class RNMTModel(RecurrentModel):
    """The baseline of :class:`ABDRNMTModel`: the same without a backward decoder and the attention to its states."""

    @classmethod
    def build_encoder(cls, cfg, dictionary) -> RNMTEncoder:
        return RNMTEncoder(cfg, dictionary)

    @classmethod
    def build_decoder(cls, cfg, dictionary) -> RNMTDecoder:
        return RNMTDecoder(cfg, dictionary)

    @torch.no_grad()
    def initialize(self, cfg) -> None:
        """Draw the initial weights: matrices uniform in ±0.08 √(512/d), biases 0. At the default width, this is what
        the authors' program does. With ±0.08 at any width, narrow models learn slowly."""
        if IS_LOADING.get():
            return
        limit = 0.08 * math.sqrt(512 / cfg.embed_dim)
        for module in self.modules():
            for parameter in module.parameters(recurse=False) if not isinstance(module, nn.LayerNorm) else ():
                if parameter.dim() > 1:
                    nn.init.uniform_(parameter, -limit, limit)
                else:
                    nn.init.zeros_(parameter)
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                module.weight[module.padding_idx].zero_()


@register_model("abd_rnmt", dataclass=ABDRNMTConfig)
class ABDRNMTModel(AsynchronousModel, RNMTModel):
    """Encoder, backward decoder and forward decoder.

        h→_i = GRU(h→_{i-1}, E_{x_i}),  h←_i = GRU(h←_{i+1}, E_{x_i})
        h_i = tanh(W [h→_i; h←_i] + b),  h̄ = (h_1 + ... + h_n) / n

    Layer l = 1 ... L of a decoder maps x^{l-1} to x^l, for the words y_1 ... y_m; x^0_j = √d E_{y_{j-1}}:

        g_j = GRU(g_{j-1}, LN(x_j)),   g_0 = tanh(W_l h̄ + b_l)
        x_j ← x_j + g_j
        x_j ← x_j + MultiHead(LN(x_j), s̃)                in the forward decoder alone
        x_j ← x_j + MultiHead(LN(x_j), h)
        x_j ← x_j + W_2 max(0, W_1 LN(x_j) + b_1) + b_2   of width 4d

        s_j = LN(x^L_j),   P(y_j | y_<j, x) = softmax(E s_j + c)

    E and c are those of both decoders; all other weights belong to one layer of one decoder. The backward decoder
    writes the words from the last one back, and its states s_j are the forward decoder's s̃. GRU is that of PyTorch,
    whose reset gate multiplies the state after the recurrent product. Dropout follows the embeddings, [h→_i; h←_i], and
    each term that is added to x_j.

    In training and in generation, s̃ are the states over the words that a greedy search chooses. In training, they are
    computed again after the search, with dropout. Gradients flow through these states, but not through the choice of
    the words. With --reverse-context reference, s̃ are, in training, the states over the reversed target. With
    translations, they are the states over reverse translations that stand beside the data, in training and wherever
    else a loss is computed.

    With a criterion other than `bidirectional_cross_entropy`, the model trains as with λ = 1.
    """

    @classmethod
    def build_decoder(cls, cfg, dictionary) -> ABDRNMTDecoder:
        return ABDRNMTDecoder(cfg, dictionary)

    def attention(self, src_tokens: Tensor, prev_output_tokens: Tensor) -> DecoderAttention:
        weights = super().attention(src_tokens, prev_output_tokens).source
        return DecoderAttention(weights[::2], reverse=weights[1::2])
