"""The input and the weights of a model's output layer."""

from typing import NamedTuple

from torch import Tensor


class OutputFeatures(NamedTuple):
    """The input and the weights of a linear output layer. Its logits are features · weightᵀ + bias.

    A criterion that computes logits in chunks requests these from a model instead of the logits of all positions.
    """

    features: Tensor  # (Σm, E), one row per target position that is not padding, sentence by sentence
    weight: Tensor  # (V, E)
    bias: Tensor | None  # (V,)
