"""What the graphs of all models have in common.

Letters: B sentences, K hypotheses of a sentence, H heads, e width of a head, V types.
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

OPSET = 18
"""The version of ONNX's operators."""

GROUP, MANY_GROUPS = 64, 32
"""The number of types in a group, and the number of groups from which on they save time."""

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


class OutputLayer(nn.Module):
    """What a search needs of the next token.

    Args:
        weight: (V, width).
        bias: (V,).
        end: the number of the end symbol.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, end: int):
        super().__init__()
        # A copy, because the weights may also be a table of embeddings, whose rows would stay numbers of 32 bits.
        self.register_buffer("weight", weight.detach().T.clone(memory_format=torch.contiguous_format))
        self.register_buffer("bias", bias)
        self.weight: Tensor
        self.bias: Tensor | None
        self.end = end

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        """Return, of features (B, K, width), the log-probabilities (B, K, 2K + 2) of the best types, these types, and
        the log-probability of the end (B, K). One of the best types may be padding."""
        logits = features @ self.weight
        scores = (logits if self.bias is None else logits + self.bias).log_softmax(-1)
        best, types = largest(scores, 2 * scores.size(1) + 2)
        return {"scores": best, "types": types, "ends": scores[..., self.end]}


def largest(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest entries of x (B, K, V) along the last axis, and their columns, as torch.topk does.

    These entries lie in the k groups with the largest maxima. Computing these maxima is fast, and leaves few to sort.
    """
    groups = groups_of(x.size(2))
    if not groups:
        return x.topk(k)
    whole = x[..., : groups * GROUP].unflatten(2, (groups, GROUP))
    best = whole.amax(3).topk(k).indices  # (B, K, k)
    columns = (best[..., None] * GROUP + torch.arange(GROUP)).flatten(2)
    rest = torch.arange(groups * GROUP, x.size(2)).expand(x.size(0), x.size(1), -1)
    columns = torch.cat([columns, rest], dim=2)
    values, index = x.gather(2, columns).topk(k)
    return values, columns.gather(2, index)


def groups_of(types: int) -> int:
    """Return the number of groups in which :func:`largest` searches first; 0 if there would be only a few."""
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
