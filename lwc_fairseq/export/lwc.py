"""The graphs of the layer-wise coordinated Transformer: its encoder, and one step of its decoder.

Letters: B sentences, n width of the padded sources, K hypotheses of a sentence, S slots of the cache, H heads, e width
of a head, V types. Hypothesis k of a sentence writes the keys and values of its token t into slot t · K + k. Later
steps say which slots a hypothesis continues, so keys and values never move.
"""

from typing import Any

import torch
from torch import Tensor, nn

from ..models.lwc_transformer import CoordinatedStack, LWCTransformerModel
from ..modules.mixed_attention import who_sees_whom

OPSET = 18
"""The version of ONNX's operators."""


class EncoderGraph(nn.Module):
    """Each layer's keys (B, H, e, n) and values (B, H, n, e) of padded sources (B, n), in the order of the layers."""

    def __init__(self, stack: CoordinatedStack):
        super().__init__()
        self.stack = stack

    def forward(self, source: Tensor) -> tuple[Tensor, ...]:
        stack = self.stack
        is_word = source.ne(stack.padding_idx)
        position = torch.arange(source.size(1))
        x = stack.embedding(source, torch.zeros_like(source), position.expand_as(source))
        itself = torch.eye(source.size(1), dtype=torch.bool)  # lets padding attend to something
        masks = {}
        for window in set(stack.windows):
            sees = who_sees_whom(0, position[:, None], 0, position, window)
            masks[window] = ((sees & is_word[:, None]) | itself)[:, None]
        memory: list[Tensor] = []
        for layer, window in zip(stack.layers, stack.windows, strict=True):
            query, keys, values = heads_of(layer.project(x))
            memory += [keys, values]
            if layer is not stack.layers[-1]:  # nothing reads the output of the last layer
                weights = (query @ keys).masked_fill(~masks[window], -torch.inf).softmax(-1)
                x = layer.finish(x, (weights @ values).transpose(1, 2))
        return tuple(memory)


class StepGraph(nn.Module):
    """One step of the decoder.

    Args of the graph:
        tokens: (B, K) the last token of each hypothesis.
        length: () t, the number of tokens before it.
        source: (B, n) the padded sources.
        visible: (B, K, S) True at the slots that hold the hypothesis's own tokens.
        memory: the output of the encoder.
        cache: keys (B, H, e, S) and values (B, H, S, e) of each layer.

    Returns:
        The log-probabilities (B, K, 2K + 1) of the best next tokens without padding, these tokens, the log-probability
        of the end (B, K), and each layer's keys (B, H, e, K) and values (B, H, K, e) of `tokens`.
    """

    def __init__(self, stack: CoordinatedStack, end: int):
        super().__init__()
        self.stack, self.end = stack, end

    def forward(
        self, tokens: Tensor, length: Tensor, source: Tensor, visible: Tensor, memory: list[Tensor], cache: list[Tensor]
    ) -> tuple[Tensor, ...]:
        stack, beam = self.stack, tokens.size(1)
        x = stack.embedding(tokens, torch.ones_like(tokens), length.expand(tokens.size(0), beam))
        to_source = source.ne(stack.padding_idx)[:, None].expand(-1, beam, -1)
        to_itself = torch.ones_like(tokens[:, :, None], dtype=torch.bool)
        token = torch.arange(visible.size(2)) // beam
        masks = {}
        for window in set(stack.windows):
            to_target = visible & who_sees_whom(1, length, 1, token, window)
            masks[window] = torch.cat([to_source, to_target, to_itself], dim=2)[:, None]
        new: list[Tensor] = []
        for i, (layer, window) in enumerate(zip(stack.layers, stack.windows, strict=True)):
            query, keys, values = heads_of(layer.project(x))
            new += [keys, values]
            (source_keys, source_values), (cached_keys, cached_values) = (x[2 * i : 2 * i + 2] for x in (memory, cache))
            own = (query * keys.transpose(2, 3)).sum(-1, keepdim=True)
            scores = torch.cat([query @ source_keys, query @ cached_keys, own], dim=3)
            weights = scores.masked_fill(~masks[window], -torch.inf).softmax(-1)
            of_source, of_target, of_itself = weights.split([source_values.size(2), cached_values.size(2), 1], dim=3)
            context = of_source @ source_values + of_target @ cached_values + of_itself * values
            x = layer.finish(x, context.transpose(1, 2))
        table = stack.embedding.tokens.weight
        scores = nn.functional.linear(stack.norm(x), table).log_softmax(-1)
        is_padding = torch.arange(len(table)) == stack.padding_idx
        best, types = scores.masked_fill(is_padding, -torch.inf).topk(2 * beam + 1)
        return best, types, scores[..., self.end], *new


def heads_of(qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries (B, H, n, e) divided by √e, keys (B, H, e, n) and values (B, H, n, e) of qkv (B, n, 3, H, e)."""
    query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
    return query * query.size(-1) ** -0.5, key.transpose(2, 3), value


def write_graphs(model: LWCTransformerModel, folder: str, end: int) -> None:
    """Write `encoder.onnx` and `step.onnx` to a folder."""
    stack = model.encoder.stack
    layers, any_size = range(len(stack.windows)), torch.export.Dim.DYNAMIC
    keys_and_values = [size for _ in layers for size in ({0: any_size, 3: any_size}, {0: any_size, 2: any_size})]
    source = torch.full((2, 5), end)
    beam, slots = 3, 12
    with torch.no_grad():
        memory = [x.contiguous() for x in EncoderGraph(stack)(source)]
    _, heads, width, _ = memory[0].shape
    cache = [x for _ in layers for x in (torch.zeros(2, heads, width, slots), torch.zeros(2, heads, slots, width))]
    step = torch.full((2, beam), end), torch.tensor(4), source, torch.ones(2, beam, slots, dtype=torch.bool)
    sizes: dict[str, object] = {
        "tokens": {0: any_size, 1: any_size},
        "length": {},
        "source": {0: any_size, 1: any_size},
    }
    sizes |= {"visible": {0: any_size, 1: any_size, 2: any_size}, "memory": keys_and_values, "cache": keys_and_values}

    def names(kind: str) -> list[str]:
        return [f"{kind}_{part}_{layer}" for layer in layers for part in ("keys", "values")]

    settings: dict[str, Any] = {"dynamo": True, "opset_version": OPSET, "external_data": False, "verbose": False}
    torch.onnx.export(
        EncoderGraph(stack),
        (source,),
        f"{folder}/encoder.onnx",
        input_names=["source"],
        output_names=names("memory"),
        dynamic_shapes={"source": {0: any_size, 1: any_size}},
        **settings,
    )
    torch.onnx.export(
        StepGraph(stack, end),
        (*step, memory, cache),
        f"{folder}/step.onnx",
        input_names=["tokens", "length", "source", "visible", *names("memory"), *names("cache")],
        output_names=["scores", "types", "ends", *names("new")],
        dynamic_shapes=sizes,
        **settings,
    )
