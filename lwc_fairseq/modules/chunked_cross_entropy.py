"""Label-smoothed cross entropy over a large vocabulary, from the states before the output layer.

    L = Σ_i (1 - ε - e) (-log p_i(y_i)) + e Σ_v -log p_i(v),   e = ε / (V - 1),   p_i = softmax(W t_i + b)

with fairseq's ε and e (`label_smoothed_nll_loss`). The loss is computed for a few rows at a time. Their logits are
overwritten with their gradient

    ∂L/∂logits_i = p_i - e - (1 - ε - e) [y_i]

and this gradient is immediately propagated to t, W and b. So memory never holds all N × V logits, or all of their
gradient.

Letters: N rows, d width, V types.
"""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

CHUNK = 2**23
"""Maximum number of logits in memory at a time, on a CPU."""

CHUNK_ON_GPU = 2**26
"""The same on a GPU, which computes few rows at a time inefficiently."""

HALF_RANGE = 2.0**12
"""Bound on the sums in the float16 product that gives the gradient of W, which is scaled so that they stay below it.
Those in the product that gives the gradient of t are at most 2 max |W| times as large."""


def chunked_cross_entropy(
    features: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Compute L, and L with ε = 0, which is only logged and has no gradient.

    Args:
        features: t, (N, d).
        weight: W, (V, d).
        bias: b, (V), or None.
        target: y, (N), without padding.
        smoothing: ε.

    Returns:
        Two sums over N, float32 unless the features are float64.
    """
    if torch.is_autocast_enabled(features.device.type):
        dtype = torch.get_autocast_dtype(features.device.type)
        features, weight = features.to(dtype), weight.to(dtype)
        bias = None if bias is None else bias.to(dtype)
    with torch.autocast(features.device.type, enabled=False):
        return ChunkedCrossEntropy.apply(features, weight, bias, target, smoothing, torch.is_grad_enabled())


def target_slots(target: Tensor, padding_idx: int, count: int) -> Tensor:
    """Return the flat indices of the tokens in padded targets (B, m), sentence by sentence, (Σm,).

    Args:
        count: Σm, the number of tokens that are not padding, which the data loader counted. With it, the host need not
            wait for a GPU to count. On a CPU, this function counts again, because a criterion or a task may have edited
            the padding since.

    Raises:
        RuntimeError: on a GPU, `count` is wrong (an assertion on the device).
    """
    is_padding = target.flatten().eq(padding_idx)
    real = is_padding.numel() - is_padding.sum()
    if target.is_cuda:
        torch._assert_async(real == count, "the padding of the target was edited: update the batch's ntokens as well")
    else:
        count = int(real)
    return torch.sort(is_padding.to(torch.uint8), stable=True).indices[:count]


class ChunkedCrossEntropy(torch.autograd.Function):
    """Computes both sums. The forward pass also computes the gradients, and the backward pass scales them.

    `with_gradients` is whether autograd records the call. The forward pass itself cannot tell: in it, autograd is off,
    and `needs_input_grad` says only which inputs require gradients.
    """

    @staticmethod
    def forward(ctx, features, weight, bias, target, smoothing, with_gradients):
        wanted = [with_gradients and needed for needed in ctx.needs_input_grad[:3]]
        types = len(weight)
        each = smoothing / (types - 1)
        sums_dtype = torch.float64 if features.dtype == torch.float64 else torch.float32
        loss, nll = features.new_zeros((), dtype=sums_dtype), features.new_zeros((), dtype=sums_dtype)
        grads = [
            torch.zeros_like(x, dtype=sums_dtype) if wants else None
            for x, wants in zip((features, weight, bias), wanted, strict=True)
        ]
        rows = max(32, (CHUNK_ON_GPU if features.is_cuda else CHUNK) // types)
        for start in range(0, len(features), rows):
            part = slice(start, start + rows)
            h, y = features[part], target[part, None]
            log_p = F.linear(h, weight, bias).to(sums_dtype).log_softmax(-1)
            of_target = -log_p.gather(1, y).sum()
            nll += of_target
            loss += (1 - smoothing - each) * of_target
            if smoothing:
                loss -= each * log_p.sum()
            if not any(wanted):
                continue
            grad = log_p.exp_()
            if smoothing:
                grad -= each
            grad.scatter_add_(1, y, grad.new_full(y.shape, -(1 - smoothing - each)))
            add_gradients(grads, grad, h, weight, part)
        ctx.save_for_backward(*grads)
        ctx.dtypes = [x if x is None else x.dtype for x in (features, weight, bias)]
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_loss, _):
        scaled = [
            None if grad is None else (grad * grad_loss).to(dtype)
            for grad, dtype in zip(ctx.saved_tensors, ctx.dtypes, strict=True)
        ]
        return *scaled, None, None, None


def add_gradients(grads: list[Tensor | None], grad: Tensor, features: Tensor, weight: Tensor, part: slice) -> None:
    """Add to the gradients of features, weight and bias what the gradient `grad` of some rows' logits contributes.

    `grads` have the dtype of `grad`. The products are computed in the features' dtype. With float16, `grad` is scaled
    up as far as the sums over these rows allow, so that small entries do not underflow, and the products are scaled
    back before they are added.
    """
    of_features, of_weight, of_bias = grads
    if of_bias is not None:
        of_bias += grad.sum(0)
    if grad.dtype == features.dtype:
        if of_features is not None:
            torch.mm(grad, weight, out=of_features[part])
        if of_weight is not None:
            of_weight.addmm_(grad.T, features)
        return
    scale: Tensor | float = 1.0
    if features.dtype == torch.float16:
        scale = HALF_RANGE / (len(features) * features.abs().amax().float()).clamp(min=1)
    scaled = (grad * scale).to(features.dtype)
    if of_features is not None:
        of_features[part] = (scaled @ weight).to(grad.dtype) / scale
    if of_weight is not None:
        of_weight += (scaled.T @ features).to(grad.dtype) / scale
