"""The graphs of the layer-wise coordinated Transformer: its encoder, and one step of its decoder. `abd_lwc` has the
same graphs, and a step of the search for its backward translation.

Letters: B sentences, n width of the padded sources, K hypotheses of a sentence, S slots of the cache, H heads, e width
of a head. README.md in this folder defines inputs and outputs.
"""

from pathlib import Path

import torch
from torch import Tensor, nn

from ..data.packing import BACKWARD, SOURCE, TARGET
from ..models.abd_lwc import ABDLWCModel
from ..models.lwc_transformer import CoordinatedStack, LWCTransformerModel
from ..modules.mixed_attention import who_sees_whom
from .graphs import OutputLayer, Tensors, as_mask, attend, write_attention_graphs, write_graph


class EncoderGraph(nn.Module):
    """Each layer's keys and values, (B, H, n, e), of padded sources (B, n)."""

    def __init__(self, stack: CoordinatedStack):
        super().__init__()
        self.stack = stack

    def forward(self, source: Tensor) -> dict[str, Tensor]:
        stack = self.stack
        is_word = source.ne(stack.padding_idx)
        position = torch.arange(source.size(1))
        x = stack.embedding(source, torch.zeros_like(source), position.expand_as(source))
        itself = torch.eye(source.size(1), dtype=torch.bool)  # lets padding attend to something
        masks = {}
        for window in set(stack.windows):
            sees = who_sees_whom(SOURCE, position[:, None], SOURCE, position, window)
            masks[window] = as_mask((sees & is_word[:, None]) | itself)
        memory: dict[str, Tensor] = {}
        for i, (layer, window) in enumerate(zip(stack.layers, stack.windows, strict=True)):
            query, keys, values = heads_of(layer.project(x))
            memory |= {f"memory_keys_{i}": keys, f"memory_values_{i}": values}
            if layer is not stack.layers[-1]:  # nothing reads the output of the last layer
                x = layer.finish(x, attend(query, [(keys, values)], masks[window]))
        return memory


class StepGraph(nn.Module):
    """One step of the decoder, on one side of the target."""

    def __init__(self, stack: CoordinatedStack, end: int, side: int = TARGET):
        super().__init__()
        self.stack, self.side = stack, side
        self.output = OutputLayer(stack.embedding.tokens.weight, None, end)

    def forward(
        self, tokens: Tensor, length: Tensor, source: Tensor, visible: Tensor, memory: Tensors, cache: Tensors
    ) -> Tensors:
        stack, beam = self.stack, tokens.size(1)
        x = stack.embedding(tokens, torch.full_like(tokens, self.side), length.expand(tokens.size(0), beam))
        to_source = source.ne(stack.padding_idx)[:, None].expand(-1, beam, -1)
        to_itself = torch.eye(beam, dtype=torch.bool).expand(tokens.size(0), -1, -1)
        token = torch.arange(visible.size(2)) // beam
        masks = {}
        for window in set(stack.windows):
            to_target = visible & who_sees_whom(TARGET, length, TARGET, token, window)
            masks[window] = as_mask(torch.cat([to_source, to_target, to_itself], dim=2))
        new: dict[str, Tensor] = {}
        for i, (layer, window) in enumerate(zip(stack.layers, stack.windows, strict=True)):
            query, keys, values = heads_of(layer.project(x))
            new |= {f"new_keys_{i}": keys, f"new_values_{i}": values}
            seen = [
                (memory[f"memory_keys_{i}"], memory[f"memory_values_{i}"]),
                (cache[f"cache_keys_{i}"], cache[f"cache_values_{i}"]),
                (keys, values),
            ]
            x = layer.finish(x, attend(query, seen, masks[window]))
        return self.output(stack.norm(x)) | new


class BackwardStepGraph(StepGraph):
    """One step of the greedy search for the backward translation, which is the only hypothesis of its sentence."""

    def forward(
        self, tokens: Tensor, length: Tensor, source: Tensor, visible: Tensor, memory: Tensors, cache: Tensors
    ) -> Tensors:
        outputs = super().forward(tokens, length, source, visible, memory, cache)
        first, second, *_ = outputs["types"].unbind(2)  # one of them may be padding
        new = {name: tensor for name, tensor in outputs.items() if name.startswith("new")}
        return {"types": second.where(first == self.stack.padding_idx, first), **new}


def heads_of(qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values, (B, H, n, e) each, of qkv (B, n, 3, H, e)."""
    query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
    return query, key, value


def write_graphs(model: LWCTransformerModel, folder: Path) -> None:
    """Write `encoder.onnx` and `step.onnx` to a folder and, for `abd_lwc`, `reverse.onnx`."""
    end, stack = model.decoder.dictionary.eos(), model.encoder.stack
    inputs = write_attention_graphs(EncoderGraph(stack), StepGraph(stack, end), end, folder)
    if isinstance(model, ABDLWCModel):
        inputs |= {"tokens": torch.full((2, 1), end), "visible": torch.ones(2, 1, 12, dtype=torch.bool)}
        write_graph(BackwardStepGraph(stack, end, BACKWARD), inputs, folder / "reverse.onnx")
