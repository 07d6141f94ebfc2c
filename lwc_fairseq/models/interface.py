"""The interface through which criterions and tools use a translation model of any family.

:class:`TranslationModel` is the base class of this plugin's models. The functions below also accept those of
fairseq's own models that can return what a function asks for.

Letters: B sentences, H heads, n source and m target tokens, T steps of a reverse translation, E width of the output
layer's input, V types.
"""

import inspect
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any

from fairseq.dataclass import FairseqDataclass
from fairseq.models import BaseFairseqModel, FairseqEncoderDecoderModel, register_model
from fairseq.models.transformer import TransformerModelBase
from torch import Tensor, nn

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.errors import flag


@dataclass(frozen=True)
class DecoderAttention:
    """A decoder's attention weights for a given translation (B, m): one tensor per layer, lowest layer first. A layer
    has the same number of heads in each list."""

    source: list[Tensor]  #: (B, H, m, n)
    target: list[Tensor] = field(default_factory=list)  #: (B, H, m, m), over the tokens read so far; may be empty
    reverse: list[Tensor] = field(default_factory=list)  #: (B, H, m, T), over a reverse translation; may be empty


def check_sizes(config: FairseqDataclass, *names: str) -> None:
    """Raises UserError if one of these options is below 1."""
    for name in names:
        if getattr(config, name) < 1:
            raise UserError(f"{flag(name)} {getattr(config, name)}: must be at least 1")


def check_dropouts(config: FairseqDataclass, *names: str) -> None:
    """Raises UserError if one of these options is no probability below 1; None is a valid value."""
    for name in names:
        value = getattr(config, name)
        if value is not None and not 0 <= value < 1:
            raise UserError(f"{flag(name)} {value}: must be in [0, 1)")


def check_heads(config: FairseqDataclass, width: str) -> None:
    """Raises UserError if --attention-heads does not divide the option `width`."""
    size, heads = getattr(config, width), config.attention_heads
    if size % heads:
        raise UserError(
            f"{flag(width)} {size} is not divisible by --attention-heads {heads}: choose a number of heads that "
            "divides it"
        )


class TranslationModel(FairseqEncoderDecoderModel):
    """The base class of this plugin's models.

    With `features_only`, as with fairseq's Transformer, `forward` returns the input (B, m, E) of the output layer
    instead of logits. The dictionary beside it then holds "output_layer", the weights (V, E) and the bias (V,) or None
    of this layer. `forward` returns both because, with --find-unused-parameters, distributed training counts a
    parameter as used only if an output of `forward` depends on it.

    If `forward` takes the argument `packing`, the task `concat_translation` prepares it with the batch.
    """

    @classmethod
    def read_config(cls, cfg) -> FairseqDataclass:
        """Return the options of a model as the data class that the model was registered with.

        Raises:
            UserError: `check` of the data class finds an invalid setting.
        """
        config = getattr(cls, "__dataclass").from_namespace(cfg)  # fairseq's register_model sets it
        config.check()
        return config

    def attention(self, src_tokens: Tensor, prev_output_tokens: Tensor) -> DecoderAttention:
        """Return the attention weights for a given translation.

        Args:
            src_tokens: (B, n), padding on either side.
            prev_output_tokens: (B, m), the start symbol first, padding on the right.
        """
        raise NotImplementedError


class ReverseContextModel(TranslationModel):
    """A model whose decoder reads a reverse translation: the whole translation, from right to left.

    `forward` and the encoder take the argument `reverse_tokens`: reverse translations (B, T), the end symbol last,
    padding on the right. With them, the model reads these and does not search. The task cuts
    those that it reads from files to the positions of the model. What is cut lacks the end symbol.
    """

    @property
    def reads_translations(self) -> bool:
        """Whether training reads reverse translations that stand beside the data. The task `concat_translation` then
        adds them to batches."""
        return False

    def require_translations(self, reverse_tokens: Tensor | None) -> None:
        """Raises UserError if a batch of training lacks the reverse translations that the model reads."""
        if self.training and self.reads_translations and reverse_tokens is None:
            raise UserError("--reverse-context translations needs --task concat_translation, which reads them")

    def reverse_translations(self, src_tokens: Tensor) -> Tensor:
        """Return the translations (B, T) of sources (B, n), with padding on the right. They hold the tokens to which
        the lists `reverse` of :meth:`attention` give weights."""
        raise NotImplementedError


class BidirectionalModel(TranslationModel):
    """A model with a forward and a backward decoder.

    `forward` takes these arguments besides fairseq's:

    - `backward`: also run the backward decoder, over the reversed target;
    - `reverse_tokens`: reverse translations (B, T), the end symbol last, padding on the right; without them, the model
      searches;
    - `over_translations`: run the backward decoder over these instead of the reversed target.

    It returns logits (B, m, V) for the token after each of prev_output_tokens (or the input of the output layer, with
    `features_only`), and a dictionary. With `backward`, the dictionary has an entry "backward": the same for the tokens
    that the backward decoder has run over, and the dictionary of that decoder. It raises UserError if training needs
    reverse translations and there are none.
    """


def register_preset(
    name: str, model: type[BaseFairseqModel], config: type[FairseqDataclass], **defaults: object
) -> None:
    """Register `model` as `name`, with `config`'s defaults changed to `defaults`.

    fairseq's own presets are functions that set the options missing from the command line. A preset that is a
    model with its own dataclass has the same options with --arch, hydra and YAML.
    """
    changed = [
        (f.name, f.type, field(default=defaults.pop(f.name), metadata=f.metadata))
        for f in fields(config)
        if f.name in defaults
    ]
    if defaults:
        raise TypeError(f"preset {name}: {config.__name__} has no {', '.join(defaults)}")
    namespace = {"__module__": config.__module__, "__doc__": config.__doc__}
    preset_config = make_dataclass(config.__name__, changed, bases=(config,), namespace=namespace)
    register_model(name, dataclass=preset_config)(make_preset_class(name, model))


def make_preset_class(name: str, model: type[BaseFairseqModel], **attributes: object) -> type[BaseFairseqModel]:
    """Return a subclass of `model` that is in the module of `model` as `name`, where pickle looks for it."""
    place = {"__module__": model.__module__, "__qualname__": name, "__doc__": model.__doc__}
    preset = type(model.__name__, (model,), {**place, **attributes})
    setattr(sys.modules[model.__module__], name, preset)
    return preset


def unwrap(model: Any) -> nn.Module:
    """Return the model without the wrappers of distributed training and of --heartbeat-timeout."""
    while not isinstance(model, BaseFairseqModel) and hasattr(model, "module"):
        model = model.module
    return model


def gives_attention(model: nn.Module) -> bool:
    """Return whether :func:`attention_weights` works with a model."""
    return isinstance(model, (TranslationModel, TransformerModelBase))


def attention_weights(model: nn.Module, src_tokens: Tensor, prev_output_tokens: Tensor) -> DecoderAttention:
    """Return the attention weights of a model of this plugin or of fairseq's Transformer, for a given translation.

    Raises:
        UserError: the model is of another class, or has been prepared for generation without attention.
    """
    if isinstance(model, TransformerModelBase):
        return transformer_attention(model, src_tokens, prev_output_tokens)
    if isinstance(model, TranslationModel):
        if not model.decoder.need_attn:
            raise UserError("this model gives no attention: call its make_generation_fast_(need_attn=True)")
        return model.attention(src_tokens, prev_output_tokens)
    raise UserError(
        f"{type(model).__name__}: cannot read the attention weights of this model; use one of this plugin's models or "
        "one of fairseq's Transformers"
    )


def transformer_attention(
    model: TransformerModelBase, src_tokens: Tensor, prev_output_tokens: Tensor
) -> DecoderAttention:
    lengths = src_tokens.ne(model.encoder.padding_idx).sum(1)
    layers = model.decoder.layers
    with (
        recorded_heads(layer.encoder_attn for layer in layers) as source,
        recorded_heads(layer.self_attn for layer in layers) as target,
    ):
        model(src_tokens, lengths, prev_output_tokens)
    return DecoderAttention(source, target)


@contextmanager
def recorded_heads(attentions: Iterable[nn.Module]) -> Iterator[list[Tensor]]:
    """Record the weights (B, H, m, n) of fairseq's attention modules, which return means over the heads by default."""
    recorded: list[Tensor] = []

    def ask(module, args, kwargs):
        # Without an incremental state, the module calls torch's own attention, which returns only the mean.
        return args, {**kwargs, "incremental_state": {}, "need_weights": True, "need_head_weights": True}

    def record(module, args, kwargs, output):
        recorded.append(output[1].transpose(0, 1))

    hooks = []
    for attention in attentions:
        hooks.append(attention.register_forward_pre_hook(ask, with_kwargs=True))
        hooks.append(attention.register_forward_hook(record, with_kwargs=True))
    try:
        yield recorded
    finally:
        for hook in hooks:
            hook.remove()


def forward_features(model: nn.Module, net_input: dict[str, Tensor]) -> tuple[Tensor, dict]:
    """Return what a :class:`TranslationModel` returns with `features_only`, also for models of fairseq.

    Args:
        model: a model of this plugin, or a model of fairseq whose decoder takes `features_only` and ends in a linear
            layer. The wrapper of distributed training may surround it.
        net_input: the arguments of the model's `forward`.

    Raises:
        UserError: the model cannot return the input of its output layer.
    """
    plain = unwrap(model)
    if isinstance(plain, TranslationModel):
        return model(**net_input, features_only=True)
    decoder = plain.decoder if isinstance(plain, FairseqEncoderDecoderModel) else plain
    layer = getattr(decoder, "output_projection", None)
    gives_features = takes(plain, "features_only") and takes(decoder, "features_only")
    if not (isinstance(layer, nn.Linear) and getattr(decoder, "adaptive_softmax", None) is None and gives_features):
        raise UserError(
            f"--criterion chunked_cross_entropy does not work with this model ({type(decoder).__name__} returns "
            "no features for a linear output layer): use label_smoothed_cross_entropy or cross_entropy, which compute "
            "the same loss"
        )
    is_shared = layer.weight is getattr(getattr(decoder, "embed_tokens", None), "weight", None)
    if getattr(model, "find_unused_parameters", False) and not is_shared:  # fairseq's wrappers pass the question on
        raise UserError(
            "--criterion chunked_cross_entropy --find-unused-parameters: PyTorch takes the output layer of this model "
            "for unused: add --share-decoder-input-output-embed, or use label_smoothed_cross_entropy"
        )
    features, extra = model(**net_input, features_only=True)
    return features, {**extra, "output_layer": (layer.weight, layer.bias)}


def takes(module: nn.Module, argument: str) -> bool:
    """Return whether a module's `forward` names this argument."""
    return argument in inspect.signature(module.forward).parameters
