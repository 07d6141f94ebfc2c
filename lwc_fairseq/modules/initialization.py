"""The initial weights of the recurrent models."""

import torch
from torch import nn

from .recurrent import AdditiveAttention, GRUCell


@torch.no_grad()
def initialize_recurrent(model: nn.Module, std: float) -> None:
    """Draw the initial weights as Zhang, Xiong, Su (2018), section 4.2, do: recurrent weights are random orthogonal
    matrices, and all other weights come from a normal distribution with mean zero. Biases and the embedding of padding
    are zero.

    Args:
        std: the standard deviation of the normal distribution (paper: 0.01).
    """
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, AdditiveAttention):
            nn.init.normal_(module.energy, std=std)
        if isinstance(module, GRUCell):
            for block in module.recurrent.chunk(3):  # update gate, reset gate, candidate
                nn.init.orthogonal_(block)
    # This comes last, because an embedding may also be the weight of a linear layer.
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            module.weight[module.padding_idx].zero_()
