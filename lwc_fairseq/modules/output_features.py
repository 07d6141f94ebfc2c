"""What a model computes before its output layer."""

from typing import NamedTuple

from torch import Tensor


class OutputFeatures(NamedTuple):
    """The input and the weights of a linear output layer, whose logits are features · weightᵀ + bias.

    A criterion that computes logits in chunks asks a model for these instead of for the logits of all positions.
    """

    features: Tensor  # (Σm, E), of the target positions that are not padding, sentence by sentence
    weight: Tensor  # (V, E)
    bias: Tensor | None  # (V,)
