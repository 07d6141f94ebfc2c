"""Mixed attention, eq. 3 of He et al., *Layer-Wise Coordination between Encoder and Decoder for NMT* (NeurIPS 2018).

    Mixed_Attention(Q, K, V) = softmax(Q Kᵀ / √d + M) V
    M(i, j) = 0 if j < n or j <= n + i, and -∞ otherwise

for target token i of m, over the n source tokens and the m target tokens in one softmax. The paper writes √d_model
for a single head; with H heads each scales by √(d/H), as in the Transformer. Counted along the concatenated sentence,
target token i has index n + i; in that index the rule is `j < n or j <= i`, and then it holds for source tokens as
well, which see the whole source and nothing of the target.

:class:`MixedAttention` has the weights. What a token may attend to is a callable that it is given, one for each
layout of the same rule: :class:`PaddedAttention` and :class:`FlashAttention` for the packed stream,
:class:`StepAttention` for decoding step by step.
"""

import functools
import inspect
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..data.packing import Packing, pad_rows

Attend = Callable[[Tensor], Tensor]
"""Queries, keys and values (..., 3, H, d/H) to contexts (..., H, d/H)."""


class MixedAttention(nn.Module):
    """The projections of mixed attention: one set of weights for source and target.

    Args:
        embed_dim: d.
        heads: H, a divisor of d.
    """

    def __init__(self, embed_dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.out = nn.Linear(embed_dim, embed_dim)
        # over the fused (3d, d) matrix Xavier's bound is √(6 / 4d): fairseq's gain of 1/√2 for each of the three
        nn.init.xavier_uniform_(self.qkv.weight)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.qkv.bias)
        nn.init.zeros_(self.out.bias)

    def forward(self, x: Tensor, attend: Attend) -> Tensor:
        """(..., d) to (..., d)."""
        return self.combine(attend(self.project(x)))

    def project(self, x: Tensor) -> Tensor:
        """(..., d) to queries, keys and values (..., 3, H, d/H)."""
        return self.qkv(x).unflatten(-1, (3, self.heads, -1))

    def combine(self, contexts: Tensor) -> Tensor:
        """The heads' contexts (..., H, d/H) to (..., d)."""
        return self.out(contexts.flatten(-2))


def mixed_attention_mask(source_lengths: Tensor, length: int) -> Tensor:
    """Eq. 3 for sentences padded on the right to `length`.

    Args:
        source_lengths: (B,) n of each sentence.

    Returns:
        (B, length, length), True where token i (second axis) may attend to token j (third axis). Rows beyond a
        sentence's end are never used; they see something, so that no softmax is empty.
    """
    index = torch.arange(length, device=source_lengths.device)
    causal = index <= index[:, None]
    return causal | (index < source_lengths[:, None, None])


@functools.cache
def flash_kernel() -> Callable | None:
    """PyTorch's variable-length flash attention, or None where it has none that can be told a window.

    It is imported where it is used: the import takes a second, which each command would wait for, on a CPU too.
    """
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    # its first release had another signature; there, as before it, the mask path serves
    return varlen_attn if "window_size" in inspect.signature(varlen_attn).parameters else None


def attend_packed(packing: Packing, qkv_like: Tensor, dropout: float) -> Attend:
    """The quickest way to attend within the packed stream, for tensors of this device and precision.

    Args:
        qkv_like: any tensor with the device and dtype of the queries.
        dropout: probability with which an attention weight is dropped; the flash kernel has none, so it takes 0.
    """
    half = qkv_like.dtype in (torch.float16, torch.bfloat16) or torch.is_autocast_enabled(qkv_like.device.type)
    if qkv_like.is_cuda and half and dropout == 0 and flash_kernel() is not None:
        return FlashAttention(packing)
    return PaddedAttention(packing, mixed_attention_mask(packing.source_lengths, packing.length), dropout)


class PaddedAttention:
    """Attention of the packed stream through `scaled_dot_product_attention` with a mask, such as that of eq. 3.

    Args:
        mask: (B, length, length), True where the token of the second axis may attend to that of the third.
        dropout: probability with which an attention weight is dropped.
    """

    def __init__(self, packing: Packing, mask: Tensor, dropout: float = 0.0):
        self.packing = packing
        self.dropout = dropout
        self.mask = mask.unsqueeze(1)

    def __call__(self, qkv: Tensor) -> Tensor:
        """(T, 3, H, d/H) to (T, H, d/H)."""
        packing, dtype = self.packing, qkv.dtype
        if not qkv.is_cuda and dtype.itemsize < 4:
            qkv = qkv.float()  # on a CPU the kernel's backward pass takes twice as long in half precision
        padded = pad_rows(qkv, packing.sentence_slots, packing.sentences, packing.length)
        query, key, value = padded.permute(2, 0, 3, 1, 4).unbind()  # each (B, H, length, d/H)
        with torch.autocast(qkv.device.type, enabled=False):  # which would make it half precision again
            context = F.scaled_dot_product_attention(query, key, value, attn_mask=self.mask, dropout_p=self.dropout)
        return context.transpose(1, 2).flatten(0, 1).index_select(0, packing.sentence_slots).to(dtype)


class FlashAttention:
    """Mixed attention of the packed stream through variable-length flash attention: no padding, no mask.

    The whole stream attends causally, of which the target rows are kept: target token i at n + i sees j <= n + i.
    The source attends to itself without a mask in a second call.
    """

    def __init__(self, packing: Packing):
        self.packing = packing
        self.source_rows = (packing.sides == 0).nonzero().squeeze(1) if packing.target_width else None
        self.source_offsets = F.pad(packing.source_lengths.cumsum(0), (1, 0)).int()

    def __call__(self, qkv: Tensor) -> Tensor:
        """(T, 3, H, d/H) in half precision to (T, H, d/H)."""
        packing = self.packing
        if self.source_rows is None:
            return self._attend(qkv, self.source_offsets, packing.source_length, causal=False)
        context = self._attend(qkv, packing.offsets, packing.length, causal=True)
        source = qkv.index_select(0, self.source_rows)
        source_context = self._attend(source, self.source_offsets, packing.source_length, causal=False)
        return context.index_copy(0, self.source_rows, source_context)

    @staticmethod
    def _attend(qkv: Tensor, offsets: Tensor, length: int, causal: bool) -> Tensor:
        query, key, value = qkv.unbind(1)
        window = (-1, 0) if causal else (-1, -1)
        return flash_kernel()(query, key, value, offsets, offsets, length, length, window_size=window)


class StepAttention:
    """Mixed attention of m new target tokens to cached source and target tokens, in one layer.

    The rows of a step are grouped by sentence: `beam` consecutive rows share one sentence's source keys and values,
    and the memory of all that its hypotheses have read, so that nothing is copied per beam nor per step. S sentences,
    R = S · beam rows, L slots of that memory.

    Args:
        source_keys, source_values: (S, H, N, d/H).
        source_padding: (S, N), True at padding.
        target: a :class:`~.decoding_cache.TargetLayer`: takes the new keys and values (R, m, H, d/H) and gives those of
            all slots (S, H, L, d/H), and which of these each new token may not see, (S, beam · m, L).
    """

    def __init__(self, source_keys: Tensor, source_values: Tensor, source_padding: Tensor, target):
        self.source_keys = source_keys
        self.source_values = source_values
        self.source_padding = source_padding
        self.target = target
        self._last: Tensor | None = None  # (S, H, beam, m, N + L), weights

    def __call__(self, qkv: Tensor) -> Tensor:
        """(R, m, 3, H, d/H) to (R, m, H, d/H)."""
        query, new_keys, new_values = qkv.unbind(2)
        keys, values, hidden = self.target.extend(new_keys, new_values)
        query = query.unflatten(0, (len(self.source_keys), -1)).permute(0, 3, 1, 2, 4)  # (S, H, beam, m, d/H)
        beam, new = query.shape[2:4]
        query = query.flatten(2, 3) * query.size(-1) ** -0.5  # (S, H, beam · m, d/H)

        width = self.source_keys.size(2)
        source = query @ self.source_keys.transpose(2, 3)
        source = source.masked_fill(self.source_padding[:, None, None], -torch.inf)
        target = (query @ keys.transpose(2, 3)).masked_fill(hidden[:, None], -torch.inf)
        scores = torch.cat([source, target], dim=-1)
        weights = scores.float().softmax(-1).type_as(scores) if scores.dtype.itemsize < 4 else scores.softmax(-1)
        self._last = weights.unflatten(2, (beam, new))

        context = weights[..., :width] @ self.source_values + weights[..., width:] @ values
        return context.unflatten(2, (beam, new)).permute(0, 2, 3, 1, 4).flatten(0, 1)

    @property
    def weights(self) -> Tensor | None:
        """(R, m, H, N + t + m) of the last call: of a token's slots, one has weight."""
        if self._last is None:
            return None
        width, beam = self.source_keys.size(2), self._last.size(2)
        source, target = self._last[..., :width], self._last[..., width:].unflatten(-1, (-1, beam)).sum(-1)
        return torch.cat([source, target], dim=-1).permute(0, 2, 3, 1, 4).flatten(0, 1)
