"""Softmax kernels of CUDA that read half precision and write single precision; a CPU has none of these."""

from collections.abc import Callable

import torch

aten = torch.ops.aten


def forward_of(operation: str) -> Callable:
    """``aten::_softmax`` or ``aten::_log_softmax`` with `half_to_float`."""
    compute = getattr(aten, operation)

    def softmax(x, dim, half_to_float):
        return compute(x.float() if half_to_float else x, dim, False)

    return softmax


def backward_of(operation: str) -> Callable:
    """The backward pass, whose gradient has the dtype of the input."""
    compute = getattr(aten, f"{operation}_backward_data")

    def softmax_backward(grad, out, dim, dtype):
        return compute(grad, out, dim, grad.dtype).to(dtype)

    return softmax_backward
