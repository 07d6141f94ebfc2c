"""Functions of PyTorch above autograd that CUDA computes with one call of a library."""

import functools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from .dispatch import DeviceMismatch
from .tally import tally
from .tensor import PretendedTensor, to_pretended
from .trees import leaves

ATTENTION = "scaled_dot_product_attention"


def replace_functions() -> None:
    """Make attention and cuDNN's recurrent layers one operation each."""
    torch._C._nn.scaled_dot_product_attention = as_one_call(F.scaled_dot_product_attention)
    F.scaled_dot_product_attention = torch._C._nn.scaled_dot_product_attention
    torch._VF.lstm = as_one_call(torch._VF.lstm)
    torch._VF.gru = as_one_call(torch._VF.gru)


def as_one_call(func: Callable) -> Callable:
    """The function that computes `func` with all that it consists of as one operation, if tensors are on the device."""

    @functools.wraps(func)
    def on_either_device(*args, **kwargs):
        return one_call(func, args, kwargs) if list(leaves((args, kwargs), PretendedTensor)) else func(*args, **kwargs)

    return on_either_device


def one_call(func: Callable, args: tuple, kwargs: dict):
    """Compute a function as one operation.

    Raises:
        DeviceMismatch: the attention's tensors are on two devices.
    """
    flat, structure = tree_flatten((args, kwargs))
    on_host = [x for x in flat if isinstance(x, Tensor) and not isinstance(x, PretendedTensor)]
    if on_host and func.__name__ == ATTENTION:
        raise DeviceMismatch(f"{ATTENTION}: expected all tensors to be on the same device, found cuda:0 and cpu")

    def call(*flat_args):
        host_args, host_kwargs = tree_unflatten(list(flat_args), structure)
        return func(*host_args, **host_kwargs)

    out = LibraryCall.apply(func.__name__, call, *flat)
    return out[0] if func.__name__ == ATTENTION else out


class LibraryCall(torch.autograd.Function):
    """A function whose forward and backward passes are one launch each, computed on the CPU."""

    @staticmethod
    def forward(ctx, name, call, *flat):
        ctx.name = name
        ctx.given = [
            x.host.detach().requires_grad_(x.requires_grad) if isinstance(x, PretendedTensor) else x for x in flat
        ]
        with torch.enable_grad():
            out = call(*ctx.given)
        ctx.made = out if isinstance(out, tuple) else (out,)
        tally().launch(name, 1)
        return tuple(to_pretended(x.detach()) for x in ctx.made)

    @staticmethod
    def backward(ctx, *grads):
        tally().launch(f"{ctx.name}_backward", 2)
        wanted = [x for x in ctx.given if isinstance(x, Tensor) and x.requires_grad]
        pairs = [
            (made, grad.host)
            for made, grad in zip(ctx.made, grads, strict=True)
            if grad is not None and made.requires_grad
        ]
        made, above = zip(*pairs, strict=True)
        found = iter(torch.autograd.grad(made, wanted, above, allow_unused=True))
        of_given = [next(found) if isinstance(x, Tensor) and x.requires_grad else None for x in ctx.given]
        return None, None, *(None if grad is None else to_pretended(grad) for grad in of_given)
