"""For which operations the host waits until the device has finished.

A wait costs the time in which the host could have issued further kernels, so that a GPU runs idle.
"""

import torch
from torch import Tensor

from .tensor import PretendedTensor

READS = frozenset(
    "_local_scalar_dense item is_nonzero nonzero argwhere masked_select equal bincount "
    "_unique _unique2 unique_dim unique_consecutive".split()
)
"""Operations whose result, or the shape of it, is on the host."""

INDEXING = frozenset("index index_put index_put_ _index_put_impl_ _unsafe_index _unsafe_index_put".split())


def wait_of(func, args: tuple, kwargs: dict) -> str | None:
    """Return why the host waits for an operation on tensors of the device; None if it does not.

    Copies between devices are not among them (:func:`wait_of_copy`).
    """
    name = func._schema.name.partition("::")[2]
    if name in READS:
        return name
    if name in INDEXING:
        return wait_of_index(name, args)
    if name == "repeat_interleave" and "Tensor" in func._overloadname and kwargs.get("output_size") is None:
        return "repeat_interleave without output_size"
    return None


def wait_of_index(name: str, args: tuple) -> str | None:
    """As :func:`wait_of`, for ``x[indices]`` and ``x[indices] = values``: a boolean index is turned into numbers."""
    indices = [index for index in args[1] if isinstance(index, Tensor)]
    if any(not isinstance(index, PretendedTensor) for index in indices):
        return "index on the CPU"
    if any(index.dtype in (torch.bool, torch.uint8) for index in indices) and not is_fill(name, args):
        return "boolean index"
    return None


def is_fill(name: str, args: tuple) -> bool:
    """Whether an assignment is ``x[mask] = number``, which PyTorch computes as `masked_fill`."""
    if "put" not in name or len(args[1]) != 1:
        return False
    return args[2].numel() == 1 and not isinstance(args[2], PretendedTensor)


def wait_of_copy(from_device: bool, to_device: bool, non_blocking: bool) -> str | None:
    """Why the host waits for a copy. One to the host waits in any case, since the host's memory is pageable."""
    if from_device and not to_device:
        return "copy to the host"
    return "copy to the device" if to_device and not from_device and not non_blocking else None
