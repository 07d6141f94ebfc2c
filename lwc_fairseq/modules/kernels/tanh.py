"""The hyperbolic tangent, in less time."""

from torch import Tensor


def tanh_(x: Tensor) -> Tensor:
    """tanh of each entry, in place and without a graph: tanh x = 2σ(2x) - 1.

    On a CPU PyTorch's own takes up to seven times as long as its σ (2.13, AVX-512, single precision). The absolute
    error is that of σ, about 1e-7; in half precision that would be too much for small x.
    """
    if x.is_cuda or x.dtype.itemsize < 4:
        return x.tanh_()
    return x.mul_(2).sigmoid_().mul_(2).sub_(1)
