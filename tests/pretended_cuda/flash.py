"""Variable-length flash attention: what PyTorch's kernels refuse, and the same function computed on a CPU.

Letters: T tokens of all sentences in a row, H heads, d/H size of a head.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from .capability import capability

LARGEST_HEAD = 256


def check_flash(query: Tensor, key: Tensor, value: Tensor, *offsets: Tensor) -> None:
    """Refuse what `_flash_attention_forward` and `_flash_attention_backward` refuse.

    Raises:
        RuntimeError: the device, a dtype, a stride, the head size or the offsets are not supported.
    """
    if capability() < (8, 0):
        raise RuntimeError("FlashAttention only supports Ampere GPUs or newer.")
    if query.dtype not in (torch.float16, torch.bfloat16) or not query.dtype == key.dtype == value.dtype:
        raise RuntimeError("FlashAttention only support fp16 and bf16 data type")
    if any(x.stride(-1) != 1 for x in (query, key, value)):
        raise RuntimeError("Input tensor must have contiguous last dimension")
    if query.size(-1) % 8:
        raise RuntimeError(f"head_size must be a multiple of 8, not {query.size(-1)}")
    if query.size(-1) > LARGEST_HEAD:
        raise RuntimeError(f"FlashAttention only supports head dimension at most {LARGEST_HEAD}, not {query.size(-1)}")
    for x in offsets:
        if x.dtype != torch.int32 or not x.is_contiguous() or x.numel() < 2:
            raise RuntimeError("cu_seqlens must be contiguous, have dtype int32, and name at least one sentence")


def check_lengths(tokens: int, offsets: Tensor, longest: int) -> None:
    """Raise an error for arguments that a GPU accepts, and with which it would read or leave out wrong rows."""
    if offsets[-1] != tokens or offsets.diff().max() != longest:
        raise RuntimeError(f"{tokens} tokens and a longest sentence of {longest} do not fit the offsets {offsets}")


def flash_forward(query, key, value, query_offsets, key_offsets, longest_query, longest_key, *rest):
    """``torch_attn::_varlen_attn``: contexts (T, H, d/H), and two results that only the backward kernel reads."""
    is_causal, scale, window = (*rest, None, None, None)[:3]
    check_flash(query, key, value, query_offsets, key_offsets)
    check_lengths(len(query), query_offsets, longest_query)
    check_lengths(len(key), key_offsets, longest_key)
    context = torch.empty_like(query)
    for rows, columns in sentences(query_offsets, key_offsets):
        weights = attention_weights(query[rows], key[columns], scale, is_causal, window)
        context[rows] = (weights @ by_head(value[columns])).transpose(0, 1).to(query.dtype)
    log_sums = query.new_zeros(query.size(1), query.size(0), dtype=torch.float)
    return context, log_sums, torch.zeros(2, dtype=torch.uint64)


def flash_backward(grad, query, key, value, out, log_sums, query_offsets, key_offsets, *rest):
    """``torch_attn::_varlen_attn_backward``: gradients of queries, keys and values.

    With weights P = softmax(S), ∂L/∂P = dO Vᵀ and ∂L/∂S = P ∘ (∂L/∂P - Σ ∂L/∂P ∘ P).
    """
    _, _, is_causal, _, scale, window = (*rest, None, None)[:6]
    check_flash(query, key, value, query_offsets, key_offsets)
    grads = torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(value)
    scaled = query.size(-1) ** -0.5 if scale is None else scale
    for rows, columns in sentences(query_offsets, key_offsets):
        weights = attention_weights(query[rows], key[columns], scale, is_causal, window)
        above = by_head(grad[rows])
        of_weights = above @ by_head(value[columns]).mT
        of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdim=True)) * scaled
        grads[0][rows] = (of_scores @ by_head(key[columns])).transpose(0, 1).to(query.dtype)
        grads[1][columns] = (of_scores.mT @ by_head(query[rows])).transpose(0, 1).to(query.dtype)
        grads[2][columns] = (weights.mT @ above).transpose(0, 1).to(query.dtype)
    return grads


def sentences(query_offsets: Tensor, key_offsets: Tensor) -> Iterator[tuple[slice, slice]]:
    """The rows of the queries and of the keys of each sentence."""
    starts = [offsets.tolist() for offsets in (query_offsets, key_offsets)]
    ranges = [list(map(slice, start[:-1], start[1:])) for start in starts]
    return zip(*ranges, strict=True)


def by_head(x: Tensor) -> Tensor:
    """(rows, H, d/H) as (H, rows, d/H) in single precision."""
    return x.transpose(0, 1).float()


def attention_weights(query: Tensor, key: Tensor, scale: float | None, is_causal: bool, window: list | None) -> Tensor:
    """Weights (H, rows, columns) of one sentence; a window of (-1, 0) hides later tokens, as `is_causal` does."""
    scores = by_head(query) @ by_head(key).mT * (query.size(-1) ** -0.5 if scale is None else scale)
    if window is not None and tuple(window) not in ((-1, -1), (-1, 0)):
        raise NotImplementedError(f"the pretended flash attention has no window {window}")
    if is_causal or (window is not None and window[1] == 0):
        later = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1 + scores.size(2) - scores.size(1))
        scores = scores.masked_fill(later, -torch.inf)
    return scores.softmax(-1)
