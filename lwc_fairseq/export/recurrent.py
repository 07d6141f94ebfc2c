"""The graphs of the recurrent models: the encoder, one step of the decoder and, with asynchronous bidirectional
decoding, one step of the backward decoder.

Letters: B sentences, K hypotheses of a sentence, T steps of a loop, n source tokens, L layers of the decoder, d width
of a state. README.md in this folder defines inputs and outputs.
"""

import copy
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan

from ..models.abd import ABDDecoder, ABDModel
from ..models.rnnsearch import RecurrentModel
from ..modules.recurrent import (
    GRULayer,
    Memory,
    ProjectedMemory,
    RecurrentDecoder,
    RecurrentEncoder,
    Steps,
)
from .graphs import OutputLayer, write_graph


class ScannedGRULayer(nn.Module):
    """A :class:`GRULayer` whose loop over time becomes an operator of the graph."""

    def __init__(self, layer: GRULayer):
        super().__init__()
        self.cells = layer.cells

    def forward(self, inputs: list[Tensor]) -> Tensor:
        projected = [cell.input(x) for cell, x in zip(self.cells, inputs, strict=True)]

        def step(state: Tensor, given: list[Tensor]) -> tuple[Tensor, Tensor]:
            for cell, x in zip(self.cells, given, strict=True):
                state = cell(state, x)
            return state, state.clone()  # scan wants two tensors

        start = torch.zeros_like(projected[0][0].chunk(3, dim=1)[0])
        return scan(step, start, projected)[1]


def scanned(encoder: RecurrentEncoder) -> RecurrentEncoder:
    """Return a copy of an encoder with loops that can be exported."""
    encoder = copy.deepcopy(encoder)
    for parent in list(encoder.modules()):
        for name, child in parent.named_children():
            if isinstance(child, GRULayer):
                setattr(parent, name, ScannedGRULayer(child))
    return encoder


class EncoderGraph(nn.Module):
    """The projected memories of padded sources (B, n), and the initial state of the decoder, (B, L · d)."""

    def __init__(self, model: RecurrentModel):
        super().__init__()
        self.encoder, self.decoder = scanned(model.encoder), model.decoder

    def forward(self, source: Tensor) -> dict[str, Tensor]:
        start = self.decoder.begin(self.encoder(source))
        return by_name("memory", start.memories) | {"state": start.states}


class BidirectionalEncoderGraph(EncoderGraph):
    """The same for both decoders of asynchronous bidirectional decoding."""

    decoder: ABDDecoder

    def forward(self, source: Tensor) -> dict[str, Tensor]:
        encoder_out = self.encoder(source)
        backward = self.decoder.begin_backward(encoder_out)
        # The reverse translation is not known yet, so this one stands in for it; nothing reads its projection.
        forward = self.decoder.begin_forward(encoder_out, Memory(backward.states[:, None]))
        outputs = by_name("memory", [forward.memories[0], *backward.memories])
        del outputs["memory_values_1"]  # both decoders attend to the same values
        return outputs | {"state": forward.states, "reverse_state": backward.states}


class StepGraph(nn.Module):
    """One step of the decoder, for K hypotheses of each sentence."""

    def __init__(self, decoder: RecurrentDecoder):
        super().__init__()
        self.decoder = decoder
        self.output = OutputLayer(decoder.output.weight, decoder.output.bias, decoder.dictionary.eos())

    def forward(self, tokens: Tensor, source: Tensor, memory: dict[str, Tensor], state: Tensor) -> dict[str, Tensor]:
        count = sum(len(layer.attentions) for layer in self.decoder.layers)
        padding_mask = source.eq(self.decoder.dictionary.pad())
        return self.step(tokens, state, from_names("memory", range(count), memory, padding_mask))

    def step(self, tokens: Tensor, state: Tensor, memories: list[ProjectedMemory]) -> dict[str, Tensor]:
        decoder = self.decoder
        steps, after = run_step(decoder, tokens, state, memories)
        return self.output(decoder.read_out(steps).unflatten(0, tokens.shape)[:, :, 0]) | {"new_state": after}


class ForwardStepGraph(StepGraph):
    """One step of the forward decoder, which also attends to a reverse translation of T tokens."""

    def forward(  # type: ignore[override]
        self,
        tokens: Tensor,
        source: Tensor,
        memory: dict[str, Tensor],
        reverse: dict[str, Tensor],
        reverse_visible: Tensor,
        state: Tensor,
    ) -> dict[str, Tensor]:
        memories = from_names("memory", [0], memory, source.eq(self.decoder.dictionary.pad()))
        return self.step(tokens, state, memories + from_names("reverse", [0], reverse, ~reverse_visible))


class BackwardStepGraph(nn.Module):
    """One step of the greedy search of the backward decoder, and the projections of its new state (B, 1, d), to which
    the forward decoder attends."""

    def __init__(self, decoder: ABDDecoder):
        super().__init__()
        self.decoder = decoder

    def forward(self, tokens: Tensor, source: Tensor, memory: dict[str, Tensor], state: Tensor) -> dict[str, Tensor]:
        backward, padding = self.decoder.backward_decoder, self.decoder.dictionary.pad()
        memory = {**memory, "memory_values_1": memory["memory_values_0"]}
        (memory_of_source,) = from_names("memory", [1], memory, source.eq(padding))
        steps, after = run_step(backward, tokens, state, [memory_of_source])
        logits = backward.output_layer(backward.read_out(steps))[:, 0]
        is_padding = torch.arange(logits.size(-1)) == padding
        types = logits.masked_fill(is_padding, -torch.inf).argmax(-1, keepdim=True)
        (layer,) = self.decoder.layers
        _, projected = layer.project([Memory(memory_of_source.values), Memory(steps.states)])
        return by_name("reverse", [projected]) | {"types": types, "new_state": after}


def run_step(
    decoder: RecurrentDecoder, tokens: Tensor, state: Tensor, memories: list[ProjectedMemory]
) -> tuple[Steps, Tensor]:
    """Compute what :meth:`RecurrentDecoder.run` does for one token, in operations that can be exported.

    Args:
        tokens: (B, K).
        state: the states of all layers, (B, K, L · d).

    Returns:
        The hidden values of R = B · K rows, and the states after the step, (B, K, L · d).
    """
    x = words = decoder.embedding(tokens.flatten())
    first_states = state.unflatten(2, (len(decoder.layers), -1)).unbind(2)
    states, contexts = [], []
    for (layer, group), first_state in zip(decoder.by_layer(memories), first_states, strict=True):
        x, read, _ = layer.step(first_state.flatten(0, 1), layer.cells[0].input(x), group)
        states.append(x)
        contexts += read
    steps = Steps(words[:, None], x[:, None], [context[:, None] for context in contexts], [])
    return steps, torch.cat(states, dim=1).unflatten(0, tokens.shape)


PARTS = ("keys", "values", "gates")
"""The fields of a projected memory that graphs exchange."""


def by_name(kind: str, memories: Sequence[ProjectedMemory]) -> dict[str, Tensor]:
    """Name the parts of memories, as in `memory_keys_0`."""
    parts = {f"{kind}_{part}_{i}": getattr(memory, part) for i, memory in enumerate(memories) for part in PARTS}
    return {name: tensor for name, tensor in parts.items() if tensor is not None}


def from_names(
    kind: str, numbers: Sequence[int], tensors: dict[str, Tensor], padding_mask: Tensor
) -> list[ProjectedMemory]:
    """Return the memories of the given numbers."""
    for tensor in tensors.values():  # otherwise, the export looks for relations between the sizes of all memories
        torch._check((tensor.size(0), tensor.size(-2)) == padding_mask.shape)
    return [
        ProjectedMemory(
            padding_mask=padding_mask,
            columns=None,
            **{part: tensors.get(f"{kind}_{part}_{i}") for part in PARTS},  # type: ignore[arg-type]
        )
        for i in numbers
    ]


def write_graphs(model: RecurrentModel, folder: Path) -> None:
    """Write `encoder.onnx` and `step.onnx` to a folder and, for asynchronous bidirectional decoding, `reverse.onnx`."""
    decoder, bidirectional = model.decoder, isinstance(model, ABDModel)
    source = torch.full((2, 5), decoder.dictionary.eos())
    tokens = torch.full((2, 3), decoder.dictionary.eos())
    graph = BidirectionalEncoderGraph(model) if bidirectional else EncoderGraph(model)
    start = write_graph(graph, {"source": source}, folder / "encoder.onnx")
    memory = {name: tensor for name, tensor in start.items() if name.startswith("memory")}
    given: dict[str, Tensor | dict[str, Tensor]] = {"tokens": tokens, "source": source}
    given["state"] = start["state"][:, None].repeat(1, 3, 1)
    if not bidirectional:
        write_graph(StepGraph(decoder), {**given, "memory": memory}, folder / "step.onnx")
        return
    of_forward, of_backward = (
        {name: x for name, x in memory.items() if name.endswith(number) or name == "memory_values_0"}
        for number in ("_0", "_1")
    )
    first: dict[str, Tensor | dict[str, Tensor]] = {
        "tokens": tokens[:, :1].contiguous(),
        "state": start["reverse_state"][:, None],
        "memory": of_backward,
    }
    after = write_graph(BackwardStepGraph(decoder), {"source": source, **first}, folder / "reverse.onnx")
    given["reverse"] = {name: x.repeat(1, 4, 1) for name, x in after.items() if name.startswith("reverse")}
    given["reverse_visible"] = torch.ones(2, 4, dtype=torch.bool)
    write_graph(ForwardStepGraph(decoder), {**given, "memory": of_forward}, folder / "step.onnx")
