"""Recurrent encoders over padded sentences.

The GRUs process whole columns of a batch. :class:`SourceOrder` moves each sentence to the front of its row, and
reverses it within its columns for GRUs that read backward. So padding always follows the sentence, no state of a word
depends on padding, and the loops need no mask.

Letters: B sentences, n source tokens, d state width. Sequences are time-major in this module, (n, B, width).
"""

import torch
from torch import Tensor, nn

from .gru import GRULayer, run_together


class SourceOrder:
    """The places of the tokens in a padded batch, and how to reorder them.

    Args:
        tokens: (B, n), with padding on either side of each row.
        padding_idx: the id of the padding token.
    """

    def __init__(self, tokens: Tensor, padding_idx: int):
        real = tokens.ne(padding_idx)
        width = tokens.size(1)
        lengths = real.sum(1, keepdim=True)
        column = torch.arange(width, device=tokens.device).expand_as(tokens)
        first = real.int().argmax(1, keepdim=True)
        # Rotate each row until its first token comes first; `columns` rotates it back.
        self.tokens = tokens.gather(1, (column + first) % width)
        self.columns = (column - first) % width
        self.padding_mask = column >= lengths
        last = lengths - 1
        self._backward = torch.where(self.padding_mask, column, last - column).T  # (n, B)
        self._last = last.clamp(min=0).T

    def reverse(self, sequence: Tensor) -> Tensor:
        """Reverse each sentence of (n, B, width). Padding stays at the end, so a second call restores the order."""
        return sequence.gather(0, self._backward[:, :, None].expand_as(sequence))

    def last(self, sequence: Tensor) -> Tensor:
        """Return the entry at each sentence's last token, (B, width)."""
        return sequence.gather(0, self._last[:, :, None].expand(1, -1, sequence.size(-1))).squeeze(0)


class BidirectionalEncoder(nn.Module):
    """h_i = [GRU(h_{i-1}, x_i); GRU(h_{i+1}, x_i)], the encoder of Bahdanau et al. (2015).

    Args:
        input_dim: width of x.
        dim: d of each direction.
        plain: compute the equations with autograd instead of the kernel.
    """

    def __init__(self, input_dim: int, dim: int, plain: bool = False):
        super().__init__()
        self.dims = [2 * dim]
        self.plain = plain
        self.forward_layer = GRULayer([input_dim], dim, plain)
        self.backward_layer = GRULayer([input_dim], dim, plain)

    def forward(self, x: Tensor, order: SourceOrder) -> tuple[list[Tensor], Tensor]:
        """Map x (n, B, input_dim) to [h (n, B, 2d)] and the last state of the backward GRU, at the first word, (B,
        d)."""
        layers, inputs = [self.forward_layer, self.backward_layer], [x, order.reverse(x)]
        if x.is_cuda and not self.plain:
            forward, backward = run_together(layers, inputs)
        else:
            forward, backward = (layer([one]) for layer, one in zip(layers, inputs, strict=True))
        return [torch.cat([forward, order.reverse(backward)], dim=-1)], order.last(backward)


class DeepEncoder(nn.Module):
    """The encoder of DeepAtt (Zhang, Xiong, Su, 2018), eq. 1-3: K layers above the layer 0.

        h⁰_i = GRU(h⁰_{i-1}, x_i)
        h^k_i = GRU_higher(GRU_lower(h^k_{i-1}, x_i), h^{k-1}_i)    for even k
        h^k_i = GRU_higher(GRU_lower(h^k_{i+1}, x_i), h^{k-1}_i)    for odd k

    The word enters every layer (the shortcut).

    Args:
        input_dim: width of x.
        dim: d.
        layers: K.
        one_way: all layers read forward, eq. 14.
        plain: compute the equations with autograd instead of the kernel.
    """

    def __init__(self, input_dim: int, dim: int, layers: int, one_way: bool = False, plain: bool = False):
        super().__init__()
        self.dims = [dim] * layers
        self.one_way = one_way
        self.layers = nn.ModuleList(
            [GRULayer([input_dim], dim, plain)] + [GRULayer([input_dim, dim], dim, plain) for _ in range(layers)]
        )

    def forward(self, x: Tensor, order: SourceOrder) -> tuple[list[Tensor], Tensor]:
        """(n, B, input_dim) to [H^1, ..., H^K], (n, B, d) each, and the last state of layer K, (B, d)."""
        reversed_x = None if self.one_way else order.reverse(x)
        states = [self.layers[0]([x])]
        for k, layer in enumerate(self.layers[1:], start=1):
            if self.one_way or k % 2 == 0:
                read = layer([x, states[-1]])
                states.append(read)
            else:
                read = layer([reversed_x, order.reverse(states[-1])])
                states.append(order.reverse(read))
        return states[1:], order.last(read)
