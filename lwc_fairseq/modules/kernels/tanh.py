"""A faster hyperbolic tangent."""

from torch import Tensor


def tanh_(x: Tensor) -> Tensor:
    """Replace each entry by its tanh in place, without an autograd graph: tanh x = 2σ(2x) - 1.

    On a CPU, PyTorch's tanh takes up to seven times as long as its σ (2.13, AVX-512, single precision). The absolute
    error is that of σ, about 1e-7 in single precision. In half precision this formula would lose small x, so PyTorch's
    tanh is used there, and on CUDA.
    """
    if x.is_cuda or x.dtype.itemsize < 4:
        return x.tanh_()
    return x.mul_(2).sigmoid_().mul_(2).sub_(1)
