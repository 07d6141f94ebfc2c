"""What the graphs of all models have in common.

Letters: B sentences, K hypotheses of a sentence, H heads, e width of a head, V types.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..search.beam_search import GROUP, columns_of_best_groups, largest_in_columns

OPSET = 18
"""The version of ONNX's operators."""

MANY_GROUPS = 32
"""The number of groups from which on they save time."""

Tensors = dict[str, Tensor]
Inputs = Mapping[str, Tensor | Tensors]


def write_graph(graph: nn.Module, inputs: Inputs, path: Path) -> dict[str, Tensor]:
    """Write a graph, and return what it computes from these inputs.

    Args:
        graph: a module that returns its outputs by name.
        inputs: examples of the arguments of `graph.forward`. Their sizes differ wherever two axes may differ. The
            tensors of a dictionary become inputs of the graph, with their own names.
    """
    names = [name for key, value in inputs.items() for name in (value if isinstance(value, dict) else [key])]
    with torch.no_grad():
        outputs = {name: tensor.contiguous() for name, tensor in graph(**inputs).items()}
        torch.onnx.export(
            graph,
            kwargs=dict(inputs),
            f=path,
            input_names=names,
            output_names=list(outputs),
            dynamic_shapes={key: any_sizes(value) for key, value in inputs.items()},
            opset_version=OPSET,
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    return outputs


def any_sizes(value: Tensor | dict[str, Tensor]) -> dict:
    """Let every axis have any size, except for those whose size the weights of the model determine."""
    if isinstance(value, Tensor):
        return dict.fromkeys(range(value.dim()), torch.export.Dim.AUTO)
    return {name: any_sizes(tensor) for name, tensor in value.items()}


class OutputLayer(nn.Module):
    """What a search needs of the next token.

    Args:
        weight: (V, width).
        bias: (V,), or None.
        end: the number of the end symbol.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, end: int):
        super().__init__()
        # Further types, which have probability 0, make the last group whole. The weights are a copy, because those of
        # the model may also be a table of embeddings, whose rows would stay numbers of 32 bits.
        more = -len(weight) % GROUP if groups_of(len(weight)) else 0
        weight, bias = weight.detach(), weight.new_zeros(len(weight)) if bias is None else bias.detach()
        self.weight = nn.Buffer(F.pad(weight.T, (0, more)).contiguous())
        self.bias = nn.Buffer(F.pad(bias, (0, more), value=-torch.inf))
        self.end = end

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        """Return, of features (B, K, width), the log-probabilities (B, K, 2K + 2) of the best types, these types, and
        the log-probability of the end (B, K). One of the best types may be padding."""
        sentences, beam = features.shape[:2]
        scores = torch.addmm(self.bias, features.flatten(0, 1), self.weight).log_softmax(-1)
        candidates = 2 * beam + 2
        if groups_of(scores.size(1)):  # as in the plugin's own search
            best, types = largest_in_columns(scores, columns_of_best_groups(scores, candidates), candidates)
        else:
            best, types = scores.topk(candidates)
        outputs = {"scores": best, "types": types, "ends": scores[:, self.end]}
        return {name: x.unflatten(0, (sentences, beam)) for name, x in outputs.items()}


def groups_of(types: int) -> int:
    """Return the number of groups in which a graph searches first; 0 if there would be only a few."""
    groups = types // GROUP
    return groups if groups >= MANY_GROUPS else 0


def largest_beam(types: int) -> int:
    """Return the largest K for which V types, or their groups, have 2K + 2 candidates."""
    return (groups_of(types) or types) // 2 - 1


def as_mask(visible: Tensor) -> Tensor:
    """Return the mask of a softmax, (B, 1, rows, columns), for all heads: 0 where `visible` (B, rows, columns) is true,
    and -∞ elsewhere."""
    return torch.zeros_like(visible, dtype=torch.float).masked_fill(~visible, -torch.inf)[:, None]


def attend(query: Tensor, memories: list[tuple[Tensor, Tensor]], mask: Tensor) -> Tensor:
    """Attend to several memories in one softmax.

    Args:
        query: (B, H, rows, e).
        memories: keys and values, (B, H, columns, e) each.
        mask: 0 where a row may attend to a column and -∞ elsewhere, (B, 1, rows, columns of all memories).

    Returns:
        Contexts (B, rows, H, e).
    """
    query = query * query.size(-1) ** -0.5
    scores = torch.cat([query @ keys.transpose(2, 3) for keys, _ in memories], dim=3)
    weights = (scores + mask).softmax(-1)
    columns = [keys.size(2) for keys, _ in memories]
    contexts = [part @ values for part, (_, values) in zip(weights.split(columns, dim=3), memories, strict=True)]
    return sum(contexts[1:], contexts[0]).transpose(1, 2)


def write_attention_graphs(encoder: nn.Module, step: nn.Module, end: int, folder: Path) -> dict[str, Tensor | Tensors]:
    """Write `encoder.onnx` and `step.onnx` of a model whose decoder has a cache of keys and values. Return examples of
    the inputs of `step`."""
    sentences, beam, slots = 2, 3, 12
    source = torch.full((sentences, 5), end)
    memory = write_graph(encoder, {"source": source}, folder / "encoder.onnx")
    cache = {name.replace("memory", "cache"): x.new_zeros(*x.shape[:2], slots, x.size(3)) for name, x in memory.items()}
    inputs: dict[str, Tensor | Tensors] = {
        "tokens": torch.full((sentences, beam), end),
        "length": torch.tensor(4),
        "source": source,
        "visible": torch.ones(sentences, beam, slots, dtype=torch.bool),
        "memory": memory,
        "cache": cache,
    }
    write_graph(step, inputs, folder / "step.onnx")
    return inputs
