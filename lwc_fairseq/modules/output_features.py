"""The input and the weights of a model's output layer."""

from typing import NamedTuple

import torch
from torch import Tensor


class OutputFeatures(NamedTuple):
    """The input and the weights of a linear output layer. Its logits are features · weightᵀ + bias.

    A criterion that computes logits in chunks requests these from a model instead of the logits of all positions.
    """

    features: Tensor  # (Σm, E), one row for each of :func:`target_slots`
    weight: Tensor  # (V, E)
    bias: Tensor | None  # (V,)


def target_slots(target: Tensor, padding_idx: int, count: int) -> Tensor:
    """Return the flat indices of the tokens in padded targets (B, m), sentence by sentence, (Σm,).

    Args:
        count: Σm, the number of tokens that are not padding, which the data loader counted. With it, the host need not
            wait for a GPU to count. On a CPU, a criterion or a task may have edited the padding since.

    Raises:
        RuntimeError: on a GPU, `count` is wrong (an assertion on the device).
    """
    is_padding = target.flatten().eq(padding_idx)
    real = is_padding.numel() - is_padding.sum()
    if target.is_cuda:
        torch._assert_async(real == count, "the padding of the target was edited: update the batch's ntokens as well")
    else:
        count = int(real)
    return torch.sort(is_padding.to(torch.uint8), stable=True).indices[:count]
