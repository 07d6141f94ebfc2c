"""What happens to each operation of PyTorch below autograd: checked, counted, and computed on the CPU."""

import torch
from torch import Tensor
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from .emulated import EMULATED
from .launches import launches_of
from .tally import tally
from .tensor import CUDA, PretendedTensor, to_host, to_pretended
from .trees import leaves, replace
from .waits import INDEXING, wait_of, wait_of_copy

COPIES = frozenset(f"aten::{name}" for name in ("_to_copy", "copy_", "copy"))
PACKING = "aten::_pack_padded_sequence"  # reads lengths, and returns batch sizes, on the host
CPU = torch.device("cpu")


class DeviceMismatch(RuntimeError):
    """An operation on tensors of two devices."""


class PretendedDevice(TorchDispatchMode):
    """While it is active, ``device="cuda"`` makes pretended tensors."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return dispatch(func, args, kwargs or {})


def dispatch(func, args: tuple, kwargs: dict):
    """Run one operation.

    Raises:
        DeviceMismatch: tensors are on two devices.
        RuntimeError: CUDA has no kernel for these arguments, or a generator is on another device.
    """
    given = list(leaves((args, kwargs), PretendedTensor))
    asks_for_cuda = device_type(kwargs) == "cuda"
    if not given and not asks_for_cuda:
        return func(*args, **kwargs)
    name = func._schema.name
    if name == "prim::device":
        return CUDA
    if name in COPIES:
        return copy(func, args, kwargs)
    if asks_for_cuda or "device" not in kwargs or kwargs["device"] is None:
        check(func, args, kwargs)
    stays = asks_for_cuda or kwargs.get("device") is None
    tally().launch(func._schema.name.partition("::")[2], launches_of(func, args))
    out = compute(func, args, kwargs)
    update_shape(func, args)
    if name == PACKING:
        return to_pretended(out[0]), out[1]
    return originals_or_new(out, given) if stays else out


def device_type(kwargs: dict) -> str | None:
    """The type of the device that a call asks for."""
    device = kwargs.get("device")
    return None if device is None else torch.device(device).type


def check(func, args: tuple, kwargs: dict) -> None:
    """Refuse tensors and generators of the CPU, and count a wait of the host."""
    name = func._schema.name
    tensors = list(leaves((args, kwargs), Tensor))
    if name.partition("::")[2] in INDEXING:
        tensors = [args[0], *args[2:3]]  # indices may be on the CPU, which costs a copy
    here = [isinstance(x, PretendedTensor) for x in tensors if isinstance(x, PretendedTensor) or x.dim()]
    if len(set(here)) > 1 and name != PACKING:
        raise DeviceMismatch(f"{func}: expected all tensors to be on the same device, found cuda:0 and cpu")
    generator = kwargs.get("generator")
    if generator is not None and generator.device.type == "cpu":
        raise RuntimeError(f"{func}: expected a 'cuda' device type for generator but found 'cpu'")
    if reason := wait_of(func, args, kwargs):
        tally().wait(reason)


def copy(func, args: tuple, kwargs: dict):
    """Run an operation that may take tensors of two devices, and whose result is where it is written to."""
    is_conversion = func._schema.name == "aten::_to_copy"
    source = args[0] if is_conversion else args[1]
    from_device = isinstance(source, PretendedTensor)
    asked = device_type(kwargs)
    to_device = (asked == "cuda" or (asked is None and from_device)) if is_conversion else on_device(args[0])
    non_blocking = kwargs.get("non_blocking", args[2] if not is_conversion and len(args) > 2 else False)
    if source.dim() == 0 and not is_conversion and not from_device:
        pass  # a number, which a kernel receives as an argument
    elif reason := wait_of_copy(from_device, to_device, non_blocking):
        tally().wait(reason)
    tally().launch(func._schema.name.partition("::")[2], 1)
    out = compute(func, args, kwargs)
    return originals_or_new(out, [x for x in args if on_device(x)]) if to_device else out


def on_device(x) -> bool:
    return isinstance(x, PretendedTensor)


def compute(func, args: tuple, kwargs: dict):
    """Compute an operation on the CPU."""
    here = {**kwargs, "device": CPU} if kwargs.get("device") is not None else kwargs
    here = {key: value for key, value in here.items() if key != "pin_memory"}
    return EMULATED.get(func._schema.name, func)(*to_host(args), **to_host(here))


def update_shape(func, args: tuple) -> None:
    """Give a tensor, whose values were reshaped in place, their new shape."""
    if torch.Tag.inplace_view in func.tags or func._schema.name == "aten::resize_":
        with no_dispatch():
            args[0].as_strided_(args[0].host.shape, args[0].host.stride())


def originals_or_new(out, given: list[PretendedTensor]):
    """The result on the device; what an operation wrote in place is the tensor that it was given.

    Raises:
        RuntimeError: `out=` had another shape, so that PyTorch resized its values.
    """
    written = {id(x.host): x for x in given}
    for x in given:
        if x.shape != x.host.shape:
            raise RuntimeError(f"a tensor of shape {tuple(x.shape)} was resized to {tuple(x.host.shape)}")
    return replace(out, Tensor, lambda x: written[id(x)] if id(x) in written else to_pretended(x))
