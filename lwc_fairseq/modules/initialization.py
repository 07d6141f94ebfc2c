"""The initial weights of the recurrent models."""

import torch
from torch import nn

from .additive_attention import AdditiveAttention
from .gru import GRUCell


@torch.no_grad()
def initialize_recurrent(model: nn.Module, std: float) -> None:
    """Zhang, Xiong, Su (2018), section 4.2: recurrent weights are random orthogonal matrices, all others are drawn
    from a normal distribution around zero. Biases and the embedding of padding are zero.

    Args:
        std: its standard deviation, in the paper 0.01.
    """
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, AdditiveAttention):
            nn.init.normal_(module.energy, std=std)
        if isinstance(module, GRUCell):
            for block in module.recurrent.chunk(3):  # of the gates and the candidate
                nn.init.orthogonal_(block)
    # last, as a table may be the weight of a linear map, too
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            module.weight[module.padding_idx].zero_()
