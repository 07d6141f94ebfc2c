"""What criterions and tools ask of a translation model, whichever family it belongs to.

:class:`TranslationModel` is the base class of this plugin's models. The functions below also answer for fairseq's own
models, where these can.

Letters: B sentences, H heads, n source and m target tokens, T steps of a reverse translation, E width of the output
layer's input.
"""

import inspect
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from fairseq.distributed import ModuleProxyWrapper
from fairseq.models import FairseqEncoderDecoderModel
from fairseq.models.transformer import TransformerModelBase
from torch import Tensor, nn

from lwc_fairseq_compat import UserError

from ..modules.output_features import OutputFeatures


@dataclass(frozen=True)
class DecoderAttention:
    """The attention weights of a decoder that is given a translation (B, m): a tensor for each layer, lowest first."""

    source: list[Tensor]  # (B, H, m, n)
    target: list[Tensor] = field(default_factory=list)  # (B, H, m, m), to the tokens read so far, in models with it
    reverse: list[Tensor] = field(default_factory=list)  # (B, H, m, T), to a reverse translation, in models with one


class TranslationModel(FairseqEncoderDecoderModel):
    """The base class of this plugin's models.

    `forward` takes `features_only`; it then returns :class:`OutputFeatures` instead of logits and extra outputs.
    """

    reads_packing = False
    """Whether `forward` takes `packing`, the packed stream that the task `concat_translation` prepares."""

    def attention(self, src_tokens: Tensor, prev_output_tokens: Tensor) -> DecoderAttention:
        """The attention weights for a translation.

        Args:
            src_tokens: (B, n), padding on either side.
            prev_output_tokens: (B, m), the start symbol first, padding on the right.
        """
        raise NotImplementedError


class BidirectionalModel(TranslationModel):
    """A model with a forward and a backward decoder.

    `forward` takes `backward`; with `features_only` it then returns two :class:`OutputFeatures`: those of the forward
    decoder for the target, and those of the backward decoder for the reversed target.
    """


def unwrap(model: nn.Module) -> nn.Module:
    """The model inside the wrapper of distributed training."""
    return model.module.module if isinstance(model, ModuleProxyWrapper) else model


def attention_weights(model: nn.Module, src_tokens: Tensor, prev_output_tokens: Tensor) -> DecoderAttention:
    """The attention weights of a model of this plugin or of fairseq's Transformer, as `TranslationModel.attention`.

    Raises:
        UserError: the attention of this kind of model is not known.
    """
    if isinstance(model, TranslationModel):
        return model.attention(src_tokens, prev_output_tokens)
    if isinstance(model, TransformerModelBase):
        return transformer_attention(model, src_tokens, prev_output_tokens)
    raise UserError(
        f"{type(model).__name__}: the attention of this model is not known here; give one of this plugin's models "
        "or of fairseq's Transformers"
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
    """The weights (B, H, m, n) of fairseq's attention modules, which average over the heads unless asked not to."""
    recorded: list[Tensor] = []

    def ask(module, args, kwargs):
        # Without an incremental state the module calls torch's own attention, which returns the mean alone.
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


def output_features(model: nn.Module, net_input: dict[str, Tensor], real: Tensor) -> OutputFeatures:
    """What goes into a model's output layer for a batch.

    Args:
        model: a model of this plugin, or one of fairseq's whose decoder takes `features_only` and ends in a linear
            layer; in the wrapper of distributed training or without.
        net_input: the arguments of the model's `forward`.
        real: (B, m), True at target positions that are not padding.

    Raises:
        UserError: the model does not give what goes into its output layer.
    """
    plain = unwrap(model)
    if isinstance(plain, TranslationModel):
        return model(**net_input, features_only=True)
    layer = linear_output_layer(plain)
    features, _ = model(**net_input, features_only=True)
    return OutputFeatures(features[real], layer.weight, layer.bias)


def linear_output_layer(model: nn.Module) -> nn.Linear:
    """The output layer of one of fairseq's models that can be called with `features_only`.

    Raises:
        UserError: there is none.
    """
    decoder = model.decoder if isinstance(model, FairseqEncoderDecoderModel) else None
    output = getattr(decoder, "output_projection", None)
    gives_features = decoder is not None and "features_only" in inspect.signature(decoder.forward).parameters
    if gives_features and isinstance(output, nn.Linear) and decoder.adaptive_softmax is None:
        return output
    raise UserError(
        f"--criterion chunked_cross_entropy does not work with this model ({type(decoder or model).__name__} gives no "
        "features for a linear output layer): use label_smoothed_cross_entropy or cross_entropy, which give the same "
        "loss"
    )
