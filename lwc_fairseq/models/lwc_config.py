"""The options of the layer-wise coordinated Transformer and of its ablations."""

from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II

from lwc_fairseq_compat import UserError


@dataclass
class LWCTransformerConfig(FairseqDataclass):
    """The options; the defaults are the sizes of the paper's base model."""

    layers: int = field(
        default=14, metadata={"help": "number of layers, shared by source and target (paper: 10 to 22)"}
    )
    embed_dim: int = field(default=512, metadata={"help": "width of the model, d"})
    ffn_embed_dim: int = field(default=2048, metadata={"help": "width of the feed-forward network"})
    attention_heads: int = field(default=8, metadata={"help": "attention heads, a divisor of --embed-dim"})
    dropout: float = field(default=0.1, metadata={"help": "dropout of embeddings and sub-layer outputs"})
    activation_dropout: float = field(default=0.0, metadata={"help": "dropout after the feed-forward network's ReLU"})
    attention_dropout: float = field(
        default=0.0, metadata={"help": "dropout of attention weights; above 0, training uses the slower masked kernel"}
    )
    layer_norm: ChoiceEnum(["deepnorm", "before", "after"]) = field(
        default="deepnorm",
        metadata={
            "help": "layer norm before each sub-layer (pre-norm) or after it (post-norm); deepnorm is post-norm with "
            "weighted residuals"
        },
    )
    normalize_after: Optional[bool] = field(  # noqa: UP045 (fairseq knows this spelling only)
        default=None,
        metadata={"help": "the same as --layer-norm after; checkpoints of earlier versions have it"},
    )
    residual_gain: Optional[float] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "factor on the initial weights of each sub-layer's last projection; by default (8 * number of "
            "layers)^(-1/4) with deepnorm, and 1/sqrt(2 * number of layers) otherwise; 1 is plain Xavier"
        },
    )
    windows: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "width of each layer's window, as in 3,5,7: in a layer of width k, a source token attends to the k "
            "source tokens around it, and a target token to the whole source and to the last k target tokens"
        },
    )
    alignment_layer: int = field(
        default=-1, metadata={"help": "layer whose attention --print-alignment shows, from 0; -1 is the last"}
    )
    share_all_embeddings: bool = field(
        default=False,
        metadata={"help": "accepted because other models have it; here source, target and output always share theirs"},
    )
    unshared_weights: bool = field(
        default=False, metadata={"help": "ablation: half of --layers process the source, the other half the target"}
    )
    separate_attention: bool = field(
        default=False,
        metadata={"help": "ablation: attention to the target so far, then to the source, instead of mixed attention"},
    )
    positions: ChoiceEnum(["paper", "fairseq"]) = field(
        default="paper",
        metadata={
            "help": "sinusoids of the positions: the paper's, or fairseq's, which have another order, other "
            "frequencies and another first position; imported models have fairseq's"
        },
    )
    no_side_embedding: bool = field(default=False, metadata={"help": "ablation: omit the source/target embedding"})
    no_position_embedding: bool = field(default=False, metadata={"help": "ablation: omit the position embedding"})
    checkpoint_activations: bool = field(
        default=False,
        metadata={
            "help": "keep only the input of each layer and recompute the layer for its gradients: less memory, slower"
        },
    )
    max_source_positions: int = II("task.max_source_positions")
    max_target_positions: int = II("task.max_target_positions")

    def check(self) -> None:
        """Raises UserError naming the invalid setting."""
        for name in ("layers", "embed_dim", "ffn_embed_dim", "attention_heads"):
            if getattr(self, name) < 1:
                raise UserError(f"--{name.replace('_', '-')} {getattr(self, name)}: must be at least 1")
        if self.embed_dim % self.attention_heads:
            raise UserError(
                f"--embed-dim {self.embed_dim} is not divisible by --attention-heads {self.attention_heads}: "
                "choose a number of heads that divides it"
            )
        if self.embed_dim % 2:
            raise UserError(f"--embed-dim {self.embed_dim} is odd: sinusoidal positions need an even width")
        if self.positions == "fairseq" and self.embed_dim < 4:
            raise UserError(f"--embed-dim {self.embed_dim} --positions fairseq: fairseq's sinusoids need a width of 4")
        for name in ("dropout", "activation_dropout", "attention_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"--{name.replace('_', '-')} {getattr(self, name)}: must be in [0, 1)")
        if self.residual_gain is not None and not self.residual_gain > 0:
            raise UserError(f"--residual-gain {self.residual_gain}: must be above 0")
        if self.normalize_after and self.layer_norm == "before":
            raise UserError("--layer-norm before --normalize-after: they contradict each other: leave one of them out")
        if self.unshared_weights and self.layers % 2:
            raise UserError(
                f"--layers {self.layers} --unshared-weights: half of the layers serve the source; give an even number"
            )
        self.check_windows()
        depth = self.target_layers
        if not -depth <= self.alignment_layer < depth:
            raise UserError(
                f"--alignment-layer {self.alignment_layer}: with {depth} layers on the target side it must be from "
                f"{-depth} to {depth - 1}"
            )

    def check_windows(self) -> None:
        """Raises UserError if --windows does not give each layer a width."""
        if self.windows is None:
            return
        if self.unshared_weights:
            raise UserError("--windows cannot be combined with --unshared-weights: leave one of them out")
        widths = self.windows.split(",")
        if not all(width.strip().isdecimal() and int(width) > 0 for width in widths):
            raise UserError(f"--windows {self.windows}: give whole numbers from 1, separated by commas, as in 3,5,7")
        if len(widths) != self.layers:
            raise UserError(
                f"--windows {self.windows}: {len(widths)} widths, but --layers {self.layers}: give each layer a width"
            )

    @property
    def layer_windows(self) -> list[int | None]:
        """The width of each layer's window, or None where it has none."""
        return (
            [None] * self.target_layers if self.windows is None else [int(width) for width in self.windows.split(",")]
        )

    @property
    def target_layers(self) -> int:
        """The number of layers that a target token goes through."""
        return self.layers // 2 if self.unshared_weights else self.layers

    @property
    def norm_place(self) -> str:
        """The value of --layer-norm, which earlier versions wrote as --normalize-after."""
        if self.normalize_after is None:
            return str(self.layer_norm)
        return "after" if self.normalize_after else "before"

    @property
    def residual_weight(self) -> float:
        """α, the weight of a sub-layer's input in its output: with DeepNorm (2N)^¼, otherwise 1.

        N is the number of layers that a token goes through. Source: DeepNorm of a decoder without an encoder (Wang et
        al., *DeepNet: Scaling Transformers to 1,000 Layers*, 2022, Figure 2).
        """
        return (2 * self.target_layers) ** 0.25 if self.norm_place == "deepnorm" else 1.0

    @property
    def initial_gain(self) -> float:
        """The factor on the initial weights of each sub-layer's last projection.

        By default it is (8N)^-¼ with DeepNorm, as in its paper, and 1/√(2N) otherwise. With the latter, the variance of
        the sum of the 2N sub-layer outputs does not grow with N (Radford et al., 2019, for GPT-2).
        """
        if self.residual_gain is not None:
            return self.residual_gain
        depth = self.target_layers
        return (8 * depth) ** -0.25 if self.norm_place == "deepnorm" else (2 * depth) ** -0.5
