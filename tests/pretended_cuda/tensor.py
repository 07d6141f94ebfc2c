"""A tensor that says it is on ``cuda:0``."""

import torch
from torch import Tensor

from .tally import tally
from .trees import replace

CUDA = torch.device("cuda", 0)


class PretendedTensor(Tensor):
    """Has shape, strides and dtype of `host`, a tensor on the CPU that holds the values, and the device ``cuda:0``."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, host: Tensor):
        layout = {"strides": host.stride(), "storage_offset": host.storage_offset()}
        return Tensor._make_wrapper_subclass(cls, host.shape, **layout, dtype=host.dtype, device=CUDA)

    def __init__(self, host: Tensor):
        self.host = host

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        from .dispatch import dispatch  # which imports this file

        return dispatch(func, args, kwargs or {})

    def __tensor_flatten__(self):
        """With this, `Module.to` exchanges a parameter in place instead of making a new one."""
        return ["host"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return PretendedTensor(inner["host"])

    def __reduce_ex__(self, protocol):
        """A file holds the tensor on the CPU, as if it had been loaded with ``map_location="cpu"``."""
        return self.host.detach().clone().__reduce_ex__(protocol)

    def __repr__(self, **_):
        return f"{repr(self.host).removesuffix(')')}, device='{CUDA}')"

    def __format__(self, spec):
        return format(self.item(), spec) if self.dim() == 0 else super().__format__(spec)

    def tolist(self):
        if self.dim() == 0:
            return self.item()
        tally().wait("tolist")
        return self.host.tolist()

    def numpy(self, *_, **__):
        raise TypeError("can't convert a cuda:0 tensor to numpy: call Tensor.cpu() first")

    __array__ = numpy


def to_host(tree):
    """Replace the pretended tensors in a tree by their values on the CPU."""
    return replace(tree, PretendedTensor, lambda tensor: tensor.host)


def to_pretended(tree):
    """Replace the tensors in a tree by tensors on the simulated device."""
    return replace(tree, Tensor, lambda x: x if isinstance(x, PretendedTensor) else PretendedTensor(x))
