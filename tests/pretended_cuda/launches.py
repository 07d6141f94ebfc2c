"""How many kernels CUDA launches for an operation: an estimate, which is 1 for most of them."""

import torch
from torch import Tensor

FREE = frozenset(
    "empty empty_like empty_strided empty_permuted new_empty new_empty_strided detach detach_ alias lift lift_fresh "
    "view _unsafe_view reshape _reshape_alias resize_ set_ is_same_size _local_scalar_dense item "
    "_record_function_enter_new _record_function_exit".split()
)
"""Operations that launch nothing. Other views are known by their schema."""

SEVERAL = {
    "nonzero": 4,
    "masked_select": 5,
    "topk": 2,
    "sort": 2,
    "embedding_dense_backward": 6,
    "native_layer_norm_backward": 2,
    "_varlen_attn_backward": 3,
}
BOOLEAN_INDEX = 5  # those of nonzero, and the gather

TENSORS_PER_LAUNCH = (110, 64, 48, 36, 30)
"""Tensors for which one launch of a `_foreach_` or `_fused_` kernel suffices, by the number of lists, 1 to 5."""


def launches_of(func, args: tuple) -> int:
    """Estimate the number of launches of an operation with these positional arguments."""
    name = func._schema.name.partition("::")[2]
    if name in FREE or is_view(func):
        return 0
    if "foreach" in name or name.startswith("_fused_"):
        return launches_of_lists([x for x in args if isinstance(x, list | tuple) and x and isinstance(x[0], Tensor)])
    if name in ("addmm", "baddbmm") and args[0].dim() > 1:
        return 2  # the addend is copied to the output first
    if name.startswith(("index", "_index_put")) and len(args) > 1 and isinstance(args[1], list | tuple):
        is_boolean = any(isinstance(i, Tensor) and i.dtype == torch.bool for i in args[1])
        return BOOLEAN_INDEX if is_boolean else 1
    return SEVERAL.get(name, 1)


def is_view(func) -> bool:
    """Whether an operation returns a view of an argument: it shares its memory and writes nothing."""
    aliases = [result.alias_info for result in func._schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)


def launches_of_lists(lists: list) -> int:
    """Launches of a kernel that goes over lists of tensors."""
    if not lists:
        return 1
    per_launch = TENSORS_PER_LAUNCH[min(len(lists), len(TENSORS_PER_LAUNCH)) - 1]
    return -(-len(lists[0]) // per_launch)
