"""Layer-wise coordinated Transformer: He, Tan, Xia, He, Qin, Chen, Liu,
*Layer-Wise Coordination between Encoder and Decoder for Neural Machine Translation*, NeurIPS 2018.

Source and target pass through the same layers. Layer i of the source attends to layer i - 1 of the source. Layer i of
the target attends, in one softmax, to layer i - 1 of the source and of the target so far (mixed attention, eq. 3).
Both sides share the attention, feed-forward and layer-norm weights of a layer, so the model is one stack of layers. In
training, the stack runs over source and target together, as one packed stream of tokens. In decoding, the encoder runs
the stack over the source and returns each layer's keys and values. The decoder runs the stack over the new target
tokens, which attend to these keys and values.

Letters: B sentences, n source and m target tokens, N width of the padded source, T packed tokens, H heads, d width of
the model, V types. In decoding, S sentences, R = S · beam hypotheses, t target tokens decoded before and m new ones.
True in a padding mask means padding.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Optional

import torch
from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import FairseqEncoder, FairseqIncrementalDecoder, register_model
from fairseq.modules.fairseq_dropout import FairseqDropout
from fairseq.modules.sinusoidal_positional_embedding import SinusoidalPositionalEmbedding
from fairseq.utils import get_incremental_state, set_incremental_state
from omegaconf import II
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from lwc_fairseq_compat import UserError

from ..data.packing import TARGET, Packing, pack, pad_rows, repack
from ..modules.mixed_attention import (
    Attend,
    MixedAttention,
    SourceCache,
    StepAttention,
    TargetCache,
    active_rate,
    attend_packed,
    pad_keys_and_values,
    step_masks,
)
from .interface import (
    DecoderAttention,
    TranslationModel,
    check_dropouts,
    check_heads,
    check_sizes,
    register_preset,
)


@dataclass
class LWCTransformerConfig(FairseqDataclass):
    """The options; the defaults are the sizes of the paper's base model."""

    layers: int = field(
        default=14, metadata={"help": "number of layers; each serves source and target. The paper runs 10 to 22"}
    )
    embed_dim: int = field(default=512, metadata={"help": "width of the model, d; an even number"})
    ffn_embed_dim: int = field(default=2048, metadata={"help": "width of the feed-forward network"})
    attention_heads: int = field(default=8, metadata={"help": "heads of each attention, a divisor of the width"})
    dropout: float = field(default=0.1, metadata={"help": "dropout of embeddings and of the output of each sub-layer"})
    activation_dropout: float = field(
        default=0.0, metadata={"help": "dropout after the ReLU of the feed-forward network"}
    )
    attention_dropout: float = field(
        default=0.0, metadata={"help": "dropout of attention weights; above 0, training uses a slower kernel"}
    )
    layer_norm: ChoiceEnum(["deepnorm", "before", "after"]) = field(  # type: ignore[valid-type]
        default="deepnorm",
        metadata={
            "help": "layer norm `before` each sub-layer (pre-norm) or `after` it (post-norm); `deepnorm` is post-norm "
            "with weighted residuals: LN(αx + f(x)), α = (2 · layers)^¼"
        },
    )
    residual_gain: Optional[float] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "factor on the initial weights of each sub-layer's last projection; by default (8 · layers)^-¼ "
            "with `deepnorm` and 1/√(2 · layers) otherwise; 1 is plain Xavier. DeepNorm's authors also scale the "
            "weights of values and of the first feed-forward matrix. Here, these are not scaled. The weights of "
            "queries, keys and values are divided by √2, as in fairseq"
        },
    )
    windows: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "width of each layer's window, separated by commas, as in `3,5,7` for three layers; give as many "
            "widths as `--layers`. In a layer of width k, a source token attends to the k source tokens around it, and "
            "a target token to the whole source and to the last k target tokens. Not with `--unshared-weights`"
        },
    )
    alignment_layer: int = field(
        default=-1, metadata={"help": "layer whose attention `--print-alignment` shows, from 0; -1 is the last"}
    )
    share_all_embeddings: bool = field(
        default=False,
        metadata={"help": "changes nothing: source, target and output share one table in any case"},
    )
    unshared_weights: bool = field(
        default=False, metadata={"help": "ablation: half of the layers serve the source, the other half the target"}
    )
    separate_attention: bool = field(
        default=False,
        metadata={"help": "ablation: one attention to the target so far, then one to the source"},
    )
    positions: ChoiceEnum(["paper", "fairseq"]) = field(  # type: ignore[valid-type]
        default="paper",
        metadata={
            "help": "sinusoids: `paper` for those of Vaswani et al., or those of `fairseq`, which have another order, "
            "other frequencies and another first position. Imported models have fairseq's"
        },
    )
    no_side_embedding: bool = field(default=False, metadata={"help": "ablation: no source and target embeddings"})
    no_position_embedding: bool = field(default=False, metadata={"help": "ablation: no positions"})
    checkpoint_activations: bool = field(
        default=False,
        metadata={"help": "computes activations again in the backward pass: less memory, slower"},
    )
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")

    def check(self) -> None:
        """Raises UserError naming the invalid setting."""
        check_sizes(self, "layers", "embed_dim", "ffn_embed_dim", "attention_heads")
        check_heads(self, "embed_dim")
        if self.embed_dim % 2:
            raise UserError(f"--embed-dim {self.embed_dim} is odd: sinusoidal positions need an even width")
        if self.positions == "fairseq" and self.embed_dim < 4:
            raise UserError(f"--embed-dim {self.embed_dim} --positions fairseq: fairseq's sinusoids need a width of 4")
        check_dropouts(self, "dropout", "activation_dropout", "attention_dropout")
        if self.residual_gain is not None and not 0 < self.residual_gain < math.inf:
            raise UserError(f"--residual-gain {self.residual_gain}: must be a number above 0")
        if self.unshared_weights and self.layers % 2:
            raise UserError(
                f"--layers {self.layers} --unshared-weights: half of the layers serve the source; give an even number"
            )
        if self.windows is not None:
            if self.unshared_weights:
                raise UserError("--windows cannot be combined with --unshared-weights: leave one of them out")
            widths = self.windows.split(",")
            if not all(width.strip().isdecimal() and int(width) > 0 for width in widths):
                raise UserError(
                    f"--windows {self.windows}: give whole numbers from 1, separated by commas, as in 3,5,7"
                )
            if len(widths) != self.layers:
                raise UserError(
                    f"--windows {self.windows}: {len(widths)} widths, but --layers {self.layers}: give each layer a "
                    "width"
                )
        depth = self.target_layers
        if not -depth <= self.alignment_layer < depth:
            raise UserError(
                f"--alignment-layer {self.alignment_layer}: with {depth} layers on the target side it must be from "
                f"{-depth} to {depth - 1}"
            )

    @property
    def layer_windows(self) -> list[int | None]:
        """The width of each layer's window, or None where it has none."""
        return [None] * self.target_layers if self.windows is None else list(map(int, self.windows.split(",")))

    @property
    def target_layers(self) -> int:
        """The number of layers that a target token goes through."""
        return self.layers // 2 if self.unshared_weights else self.layers

    @property
    def residual_weight(self) -> float:
        """α, the weight of a sub-layer's input in its output: with DeepNorm (2N)^¼, otherwise 1.

        N is the number of layers that a token goes through. Source: DeepNorm of a decoder without an encoder (Wang et
        al., *DeepNet: Scaling Transformers to 1,000 Layers*, 2022, Figure 2).
        """
        return (2 * self.target_layers) ** 0.25 if self.layer_norm == "deepnorm" else 1.0

    @property
    def initial_gain(self) -> float:
        """The factor on the initial weights of each sub-layer's last projection.

        By default it is (8N)^-¼ with DeepNorm, as in its paper, and 1/√(2N) otherwise. With the latter, the variance of
        the sum of the 2N sub-layer outputs does not grow with N (Radford et al., 2019, for GPT-2).
        """
        if self.residual_gain is not None:
            return self.residual_gain
        depth = self.target_layers
        return (8 * depth) ** -0.25 if self.layer_norm == "deepnorm" else (2 * depth) ** -0.5


class ConcatEmbedding(nn.Module):
    """The input of a concatenated sentence pair:

        x = √d (E[token] + S[side]) + P[position]

    E is one table for both languages. S holds a learned source and a learned target embedding (the paper's Figure 1);
    --no-side-embedding leaves it out. P is the sinusoid of Vaswani et al., which restarts with the target:

        P[p, 2i] = sin(p / 10000^(2i/d)),  P[p, 2i+1] = cos(p / 10000^(2i/d))

    --positions fairseq has fairseq's sinusoids instead, with all sines before all cosines, other frequencies, and
    `padding_idx` + 1 as the first position; --no-position-embedding leaves P out.

    The factor √d is that of fairseq's Transformer. It brings the entries of the tables, which initially have variance
    1/d, to the scale of the sinusoid. The paper does not mention this factor. Here it also multiplies S, so that side
    and token have the same scale.

    Args:
        sides: number of rows of S.
    """

    def __init__(self, cfg: LWCTransformerConfig, types: int, padding_idx: int, sides: int = 2):
        super().__init__()
        dim = cfg.embed_dim
        self.scale = math.sqrt(dim)
        self.tokens = nn.Embedding(types, dim, padding_idx)
        self.sides = None if cfg.no_side_embedding else nn.Embedding(sides, dim)
        self.dropout = FairseqDropout(cfg.dropout, module_name=type(self).__name__)
        for table in filter(None, (self.tokens, self.sides)):
            nn.init.normal_(table.weight, std=dim**-0.5)
        nn.init.zeros_(self.tokens.weight[padding_idx])

        # A segment with both the start and the end symbol has one token more than a sentence.
        length, first = max(cfg.max_source_positions, cfg.max_target_positions) + 1, padding_idx + 1
        if cfg.no_position_embedding:
            positions = None
        elif cfg.positions == "fairseq":
            positions = SinusoidalPositionalEmbedding.get_embedding(first + length, dim)[first:]
        else:
            positions = sinusoids(length, dim)
        self.register_buffer("positions", positions, persistent=False)
        self.positions: Tensor | None

    def forward(self, tokens: Tensor, sides: Tensor, positions: Tensor) -> Tensor:
        """Return the embeddings (..., d) of token ids, sides (SOURCE, TARGET) and positions, all of shape (...)."""
        x = self.tokens(tokens)
        if self.sides is not None:
            x = x + self.sides(sides)
        x = self.scale * x
        if self.positions is not None:
            x = x + self.positions[positions]
        return self.dropout(x)


def sinusoids(positions: int, dim: int) -> Tensor:
    """Return P above, (positions, d), computed in double precision and rounded once."""
    position = torch.arange(positions, dtype=torch.float64)[:, None]
    pair = torch.arange(0, dim, 2, dtype=torch.float64)
    angle = position / 10000 ** (pair / dim)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).to(torch.get_default_dtype())


class CoordinatedLayer(nn.Module):
    """Mixed attention and a feed-forward network, with one set of weights for both sides.

    The two sub-layers f are first the attention (eq. 3) and then the feed-forward network (eq. 2):

        pre-norm            x ← x + f(LN(x))
        post-norm, DeepNorm x ← LN(α x + f(x)), where α = 1 is post-norm
        FFN(x) = max(0, x W₁ + b₁) W₂ + b₂

    --dropout applies to f(x) before the sum, --activation-dropout inside the feed-forward network, after the ReLU.
    """

    def __init__(self, cfg: LWCTransformerConfig):
        super().__init__()
        self.normalize_after = cfg.layer_norm != "before"
        self.residual_weight = cfg.residual_weight
        self.attention = MixedAttention(cfg.embed_dim, cfg.attention_heads)
        self.attention_norm = nn.LayerNorm(cfg.embed_dim)
        self.fc1 = nn.Linear(cfg.embed_dim, cfg.ffn_embed_dim)
        self.fc2 = nn.Linear(cfg.ffn_embed_dim, cfg.embed_dim)
        self.ffn_norm = nn.LayerNorm(cfg.embed_dim)
        self.dropout = FairseqDropout(cfg.dropout, module_name=type(self).__name__)
        self.activation_dropout = FairseqDropout(cfg.activation_dropout, module_name=type(self).__name__)
        for linear in (self.fc1, self.fc2):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)
        with torch.no_grad():
            for last in (self.attention.out, self.fc2):
                last.weight.mul_(cfg.initial_gain)

    def forward(self, x: Tensor, attend: Attend, rows: Tensor | None = None) -> Tensor:
        """Map the layer's input, (..., d), to its output, (..., d). `attend` knows the mask.

        With `rows`, return only these rows of a packed stream; the others serve as keys and values alone.
        """
        context = attend(self.project(x))
        if rows is not None:
            x, context = x.index_select(0, rows), context.index_select(0, rows)
        return self.finish(x, context)

    def project(self, x: Tensor) -> Tensor:
        """Project the layer's input, (..., d), to queries, keys and values, (..., 3, H, d/H)."""
        return self.attention.project(x if self.normalize_after else self.attention_norm(x))

    def finish(self, x: Tensor, context: Tensor) -> Tensor:
        """Compute the layer's output, (..., d), from its input, (..., d), and the heads' contexts, (..., H, d/H)."""
        return self.add_feed_forward(self.add_attention(x, context))

    def add_attention(self, x: Tensor, context: Tensor) -> Tensor:
        x = torch.add(self.dropout(self.attention.combine(context)), x, alpha=self.residual_weight)
        return self.attention_norm(x) if self.normalize_after else x

    def add_feed_forward(self, x: Tensor) -> Tensor:
        y = x if self.normalize_after else self.ffn_norm(x)
        y = self.fc2(self.activation_dropout(self.fc1(y).relu()))
        x = torch.add(self.dropout(y), x, alpha=self.residual_weight)
        return self.ffn_norm(x) if self.normalize_after else x


class CoordinatedStack(nn.Module):
    """The paper's Figure 1: an embedding, layers and, with pre-norm, a final layer norm.

    Three methods loop over the layers: :meth:`forward` in training, :meth:`read_source` in the encoder and :meth:`step`
    in the decoder.
    """

    embedding_type: type[ConcatEmbedding] = ConcatEmbedding
    layer_type = CoordinatedLayer
    step_attention = StepAttention
    layers: Sequence[CoordinatedLayer]

    def __init__(self, cfg: LWCTransformerConfig, types: int, padding_idx: int):
        super().__init__()
        self.padding_idx = padding_idx
        self.head_dim = cfg.embed_dim // cfg.attention_heads
        self.attention_dropout = FairseqDropout(cfg.attention_dropout, module_name=type(self).__name__)
        self.windows = cfg.layer_windows
        self.checkpoint_activations = cfg.checkpoint_activations
        self.embedding = self.embedding_type(cfg, types, padding_idx)
        self.add_module("layers", self.make_layers(cfg))
        self.norm = nn.LayerNorm(cfg.embed_dim) if cfg.layer_norm == "before" else nn.Identity()

    def make_layers(self, cfg: LWCTransformerConfig) -> nn.ModuleList:
        return nn.ModuleList(self.layer_type(cfg) for _ in range(cfg.target_layers))

    def forward(self, packing: Packing) -> Tensor:
        """Return the states of all tokens but the source's, (Σm, d), of a packed stream of sources and targets."""
        *attentions, last_attention = self.packed_attentions(packing)
        *layers, last_layer = self.recomputable(self.layers)
        x = self.embedding(packing.tokens, packing.sides, packing.positions)
        for layer, attend in zip(layers, attentions, strict=True):
            x = layer(x, attend)
        # Nothing reads the source's output of the last layer, only its keys and values.
        return self.norm(last_layer(x, last_attention, packing.target_rows))

    def read_source(self, packing: Packing) -> list[tuple[Tensor, Tensor]]:
        """Return each layer's keys and values, (B, H, N, d/H) each, of a packed stream of sources without targets."""
        attentions = self.packed_attentions(packing)
        x = self.embedding(packing.tokens, packing.sides, packing.positions)
        keys_and_values = []
        for layer, attend in zip(self.layers, attentions, strict=True):
            qkv = layer.project(x)
            keys_and_values.append(pad_keys_and_values(qkv, packing))
            if layer is not self.layers[-1]:  # nothing reads the output of the last layer
                x = layer.finish(x, attend(qkv))
        return keys_and_values

    def step(
        self, tokens: Tensor, source: SourceCache, target: TargetCache, side: int = TARGET
    ) -> tuple[Tensor, list[StepAttention]]:
        """Return the states (R, m, d) of new target tokens (R, m), and each layer's attention. The new tokens continue
        those in the cache `target`, and are added to it."""
        new = tokens.size(1)
        positions = torch.arange(target.length, target.length + new, device=tokens.device).expand_as(tokens)
        target.reserve(new)
        masks = step_masks(source, target, self.windows)
        dropout = active_rate(self.attention_dropout)
        attentions = [
            self.step_attention(source, target, masks[width], i, dropout) for i, width in enumerate(self.windows)
        ]
        x = self.embedding(tokens, torch.full_like(tokens, side), positions)
        for layer, attend in zip(self.layers, attentions, strict=True):
            x = layer(x, attend)
        target.advance()
        return self.norm(x), attentions

    def logits(self, states: Tensor) -> Tensor:
        """Map states (..., d) to logits (..., V) with the token embeddings as weights."""
        return nn.functional.linear(states, self.embedding.tokens.weight)

    def packed_attentions(self, packing: Packing) -> list[Attend]:
        """Return the attention of each layer. Layers with the same window share one, and with it their mask."""
        by_window = {window: self.packed_attention(packing, window) for window in set(self.windows)}
        return [by_window[window] for window in self.windows]

    def packed_attention(self, packing: Packing, window: int | None) -> Attend:
        dropout = active_rate(self.attention_dropout)
        return attend_packed(packing, self.embedding.tokens.weight, self.head_dim, dropout, window)

    def recomputable(self, layers: Iterable[nn.Module]) -> Iterable[Callable]:
        """Return the layers. With --checkpoint-activations, the backward pass recomputes their activations."""
        if self.checkpoint_activations and self.training and torch.is_grad_enabled():
            return [partial(checkpoint, layer, use_reentrant=False) for layer in layers]
        return layers


STACKS: dict[tuple[bool, bool], type[CoordinatedStack]] = {(False, False): CoordinatedStack}
"""The stack for each value of (--unshared-weights, --separate-attention); `lwc_ablations.py` adds its own."""


class LWCEncoder(FairseqEncoder):
    """The stack over the source. It runs once per sentence, because no source state depends on the target."""

    def __init__(self, cfg: LWCTransformerConfig, dictionary, stack: CoordinatedStack):
        super().__init__(dictionary)
        self.stack = stack
        self.max_source_positions = cfg.max_source_positions

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **unused) -> SourceCache:
        """Return each layer's keys and values for source tokens (B, N), padded on either side."""
        packing = pack(src_tokens, src_tokens[:, :0], self.stack.padding_idx)
        keys, values = zip(*self.stack.read_source(packing), strict=True)
        return SourceCache(keys, values, src_tokens.eq(self.stack.padding_idx))

    def reorder_encoder_out(self, encoder_out: SourceCache, new_order: Tensor) -> SourceCache:
        return encoder_out.reorder(new_order)

    def max_positions(self) -> int:
        return self.max_source_positions


class LWCDecoder(FairseqIncrementalDecoder):
    """The stack over new target tokens, which attend to the source and the target so far through caches."""

    def __init__(self, cfg: LWCTransformerConfig, dictionary, stack: CoordinatedStack):
        super().__init__(dictionary)
        self.shared = (stack,)  # in a tuple, so that the encoder alone registers it and a checkpoint holds it once
        self.alignment_layer = cfg.alignment_layer % cfg.target_layers
        self.max_target_positions = cfg.max_target_positions
        self.need_attn = True

    @property
    def stack(self) -> CoordinatedStack:
        return self.shared[0]

    def forward(
        self, prev_output_tokens: Tensor, encoder_out: SourceCache, incremental_state: dict | None = None, **unused
    ) -> tuple[Tensor, dict]:
        """Return logits for the tokens that `incremental_state` does not hold yet; without a state, for all tokens.

        Training does not call this method, because gradients do not pass through the cache. It calls
        :meth:`LWCTransformerModel.forward`.

        Args:
            prev_output_tokens: (R, t + m) target input so far, the start symbol first, padding on the right.
            encoder_out: the encoder's output for S sentences; R is a multiple of S.
            incremental_state: fairseq's incremental state, which holds the first t tokens.

        Returns:
            Logits (R, m, V); "attn": [(R, m, N)], the alignment layer's attention to the source, averaged over heads;
            "attentions": one :class:`DecoderAttention` with the weights of all layers. If generation does not print
            attention, "attn" is None and the lists in "attentions" are empty.
        """
        cache = get_incremental_state(self, incremental_state, "target")
        if cache is None:
            cache = TargetCache(encoder_out, rows=len(prev_output_tokens))
            set_incremental_state(self, incremental_state, "target", cache)
        x, attentions = self.stack.step(prev_output_tokens[:, cache.length :], encoder_out, cache)
        if not self.need_attn:
            attentions = []
        weights = DecoderAttention(
            [layer.source_weights for layer in attentions], [layer.target_weights for layer in attentions]
        )
        alignment = [weights.source[self.alignment_layer].mean(1)] if attentions else None
        return self.output_layer(x), {"attn": alignment, "attentions": weights}

    def output_layer(self, features: Tensor) -> Tensor:
        """Map states (..., d) to logits (..., V) with the token embeddings as weights."""
        return self.stack.logits(features)

    def reorder_incremental_state(self, incremental_state: dict, new_order: Tensor) -> None:
        cache = get_incremental_state(self, incremental_state, "target")
        if cache is not None:
            cache.reorder(new_order)

    def reorder_hypotheses(self, incremental_state: dict, new_order: Tensor) -> None:
        """Do the same without waiting for the device. Each new row must continue an old row of its own sentence."""
        get_incremental_state(self, incremental_state, "target").reorder_hypotheses(new_order)

    def make_generation_fast_(self, need_attn: bool = False, **unused) -> None:
        """fairseq's hook before generation. It turns attention weights off unless they will be printed."""
        self.need_attn = bool(need_attn)

    def max_positions(self) -> int:
        return self.max_target_positions


@register_model("lwc_transformer", dataclass=LWCTransformerConfig)
class LWCTransformerModel(TranslationModel):
    """The layer-wise coordinated Transformer.

    One table over a joint vocabulary serves as the embedding of both languages and as the output layer. With 31,300
    types, the small preset has 19.07M parameters, as in the paper's Table 3.

    The paper specifies neither the place of the layer norms nor the initial weights. By default, layer norms and
    residuals are those of DeepNorm (Wang et al., *DeepNet*, 2022). The initial weights are Xavier's, and those of the
    last projection of each sub-layer are multiplied by (8N)^-¼ for N layers. The following experiments led to these
    defaults. Each has one seed unless stated otherwise:

    - Multi30k, 10 layers of width 128, learning rate 3e-3 falling to zero over 6 epochs. The loss on the validation set
      and, in parentheses, on the training set is 4.15 (3.98) with DeepNorm. It is 4.24 (4.11) with --layer-norm before
      (pre-norm, as in tensor2tensor of 2018), and 4.19 (4.09) with fairseq's Transformer of 4 + 4 layers, pre-norm.
    - The same over 20 epochs: 3.83 (3.16) with DeepNorm, and 3.83 (3.24) with the Transformer. Over 40 epochs, with
      dropout 0.3, as means of three seeds: 3.77 (3.20) with DeepNorm, and 3.75 (3.28) with the Transformer. With the
      weights of the last five checkpoints averaged, DeepNorm has 42.6 BLEU, and the Transformer 43.2.
    - The same model with pre-norm, learning rate 2e-3, 13 epochs: 3.98 (3.53) if the last projections are divided by
      √(2N), the default of --layer-norm before, and 4.03 (3.65) with --residual-gain 1.
    - The first 7,000 pairs of Multi30k, 20 epochs, dropout 0.3: 5.23 (3.25) with DeepNorm, 5.30 (3.43) with pre-norm.
    - Demo corpus, 22 layers of width 64, learning rate 2e-3 after 200 updates of warm-up, 2,000 tokens a batch: the
      training perplexity after 350 updates is 9.0 with DeepNorm and 9.4 with pre-norm. With --layer-norm after, it
      stays at 240 from update 200 to update 250, where that run was stopped.

    The task `concat_translation` packs its batches in advance. The model packs the batches of other tasks itself, with
    the same results. (Only `concat_translation` translates an empty line to an empty line.)
    """

    encoder_class = LWCEncoder
    decoder_class = LWCDecoder

    @classmethod
    def build_model(cls, cfg, task) -> "LWCTransformerModel":
        cfg = cls.read_config(cfg)
        source, target = task.source_dictionary, task.target_dictionary
        if source != target:
            raise UserError(
                f"LWC has one vocabulary for both languages, but the dictionaries differ ({len(source)} "
                f"and {len(target)} types): run fairseq-preprocess with --joined-dictionary"
            )
        stack = cls.build_stack(cfg, source)
        return cls(cls.encoder_class(cfg, source, stack), cls.decoder_class(cfg, target, stack))

    @classmethod
    def build_stack(cls, cfg: LWCTransformerConfig, dictionary: Dictionary) -> CoordinatedStack:
        """Build the layers that encoder and decoder share."""
        return STACKS[cfg.unshared_weights, cfg.separate_attention](cfg, len(dictionary), dictionary.pad())

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        packing: dict | None = None,
        features_only: bool = False,
    ) -> tuple[Tensor, dict]:
        """Teacher forcing. Returns logits (B, m, V) for the token after each of prev_output_tokens (B, m).

        `packing` holds the fields of this batch's :class:`Packing`. Without it, this method packs the batch. With
        `features_only`, it returns states (B, m, d) instead of logits.
        """
        stack = self.encoder.stack
        tokens = src_tokens, prev_output_tokens, stack.padding_idx
        batch = repack(packing, *tokens) if packing else pack(*tokens)
        states = pad_rows(stack(batch), batch.target_slots, batch.sentences, batch.target_width)
        return self.output(states, features_only)

    def output(self, states: Tensor, features_only: bool) -> tuple[Tensor, dict]:
        """Return states (B, m, d), or their logits (B, m, V), and a dictionary, as `forward` does."""
        if features_only:
            return states, {"output_layer": (self.encoder.stack.embedding.tokens.weight, None)}
        return self.decoder.output_layer(states), {"attn": None}

    def attention(self, src_tokens: Tensor, prev_output_tokens: Tensor) -> DecoderAttention:
        _, extra = self.decoder(prev_output_tokens, self.encoder(src_tokens))
        return extra["attentions"]


SMALL: dict[str, object] = {"embed_dim": 256, "ffn_embed_dim": 1024, "attention_heads": 4}
BIG: dict[str, object] = {"embed_dim": 1024, "attention_heads": 16}
PRESETS: dict[str, dict[str, object]] = {
    "lwc_transformer_small": SMALL,
    "lwc_transformer_base": {},
    "lwc_transformer_big": BIG,
    "lwc_local_small": {**SMALL, "windows": "3,5,7,9,11,13,15,17,21,25,29,33,37,41"},
    "lwc_local_big": {**BIG, "windows": "7,15,31,63,63,63,63,63,63,63,63,63,63,63"},
}
for name, settings in PRESETS.items():
    register_preset(name, LWCTransformerModel, LWCTransformerConfig, **settings)
