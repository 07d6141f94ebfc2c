"""What the graphs of all models have in common.

Letters: B sentences, K hypotheses of a sentence, H heads, e width of a head, V types.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

OPSET = 18
"""The version of ONNX's operators."""

Inputs = Mapping[str, Tensor | dict[str, Tensor]]


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


def best_types(logits: Tensor, padding: int, end: int) -> dict[str, Tensor]:
    """Return what a search needs of logits (B, K, V): the log-probabilities (B, K, 2K + 1) of the best types without
    padding, these types, and the log-probability of the end (B, K)."""
    scores = logits.log_softmax(-1)
    is_padding = torch.arange(scores.size(-1)) == padding
    best, types = scores.masked_fill(is_padding, -torch.inf).topk(2 * scores.size(1) + 1)
    return {"scores": best, "types": types, "ends": scores[..., end]}


def attend(query: Tensor, memories: list[tuple[Tensor, Tensor]], mask: Tensor) -> Tensor:
    """Attend to several memories in one softmax.

    Args:
        query: (B, H, rows, e).
        memories: keys and values, (B, H, columns, e) each.
        mask: True where a row may attend to a column, (B, 1, rows, columns of all memories).

    Returns:
        Contexts (B, rows, H, e).
    """
    query = query * query.size(-1) ** -0.5
    scores = torch.cat([query @ keys.transpose(2, 3) for keys, _ in memories], dim=3)
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    columns = [keys.size(2) for keys, _ in memories]
    contexts = [part @ values for part, (_, values) in zip(weights.split(columns, dim=3), memories, strict=True)]
    return sum(contexts[1:], contexts[0]).transpose(1, 2)


def write_attention_graphs(encoder: nn.Module, step: nn.Module, end: int, folder: Path) -> None:
    """Write `encoder.onnx` and `step.onnx` of a model whose decoder has a cache of keys and values."""
    sentences, beam, slots = 2, 3, 12
    source = torch.full((sentences, 5), end)
    memory = write_graph(encoder, {"source": source}, folder / "encoder.onnx")
    cache = {name.replace("memory", "cache"): x.new_zeros(*x.shape[:2], slots, x.size(3)) for name, x in memory.items()}
    inputs: Inputs = {
        "tokens": torch.full((sentences, beam), end),
        "length": torch.tensor(4),
        "source": source,
        "visible": torch.ones(sentences, beam, slots, dtype=torch.bool),
        "memory": memory,
        "cache": cache,
    }
    write_graph(step, inputs, folder / "step.onnx")
