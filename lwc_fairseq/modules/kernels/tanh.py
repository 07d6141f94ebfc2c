"""A faster hyperbolic tangent, without an autograd graph: tanh x = 2σ(2x) - 1.

On a CPU, PyTorch's tanh takes up to seven times as long as its σ (2.13, AVX-512, single precision). The absolute error
is that of σ, about 1e-7 in single precision. In half precision this formula would lose small x, so PyTorch's tanh is
used there, and on CUDA.
"""

import torch
from torch import Tensor

MINUS_ONE = torch.tensor(-1.0)


def tanh_(x: Tensor) -> Tensor:
    """Replace each entry by its tanh in place."""
    return x.tanh_() if has_fast_tanh(x) else tanh_of_half_(x.mul_(2))


def tanh_of_sum(x: Tensor, y: Tensor) -> Tensor:
    """Compute tanh(x + y). If one of them is smaller and broadcast, this is faster if that is x."""
    return (x + y).tanh_() if has_fast_tanh(y) else tanh_of_half_(torch.add(x * 2, y, alpha=2))


def has_fast_tanh(x: Tensor) -> bool:
    """Whether PyTorch's tanh is used for x."""
    return x.is_cuda or x.dtype.itemsize < 4


def tanh_of_half_(x: Tensor) -> Tensor:
    """Replace each entry x by tanh(x / 2) = 2σ(x) - 1 in place."""
    return torch.add(MINUS_ONE, x.sigmoid_(), alpha=2, out=x)
