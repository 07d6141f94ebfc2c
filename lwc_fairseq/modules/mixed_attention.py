"""Mixed attention, eq. 3 of He et al., *Layer-Wise Coordination between Encoder and Decoder for NMT* (NeurIPS 2018).

    Mixed_Attention(Q, K, V) = softmax(Q Kᵀ / √d + M) V
    M(i, j) = 0 if j < n or j <= n + i, and -∞ otherwise

Here i is one of the m target tokens, and j is one of the n source tokens or m target tokens; all of them share one
softmax. The paper writes √d_model, for a single head. With H heads, each head scales by √(d/H), as in the Transformer.
A source token attends to the whole source and to no target token. A layer may have a window, as in Fonollosa et al.,
*Joint Source-Target Self Attention with Locality Constraints* (2019). :func:`who_sees_whom` says which token attends to
which. All masks are made from it; :class:`FlashAttention` needs no mask.

:class:`MixedAttention` holds the projections. The softmax has no parameters. For each layout of the tokens, a
callable computes it: :class:`PaddedAttention` or :class:`FlashAttention` for the packed stream, :class:`StepAttention`
for new target tokens in decoding, which attend to a :class:`SourceCache` and a :class:`TargetCache`.

Letters: B sentences, T packed tokens, H heads, d width of the model. In decoding, S sentences, R = S · beam hypotheses,
t target tokens decoded before, m new tokens, N width of the padded source, L = (t + m) · beam slots of the target
cache. True in a padding mask means padding.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from fairseq.modules.fairseq_dropout import FairseqDropout
from torch import Tensor, nn

from ..data.packing import BACKWARD, SOURCE, TARGET, Packing, pad_rows
from .row_groups import kept_sentences

Attend = Callable[[Tensor], Tensor]
"""A function from queries, keys and values, (..., 3, H, d/H), to contexts, (..., H, d/H)."""


class MixedAttention(nn.Module):
    """The projections before and after the softmax, with one set of weights for source and target.

    Args:
        embed_dim: d.
        heads: H, a divisor of d.
    """

    def __init__(self, embed_dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.out = nn.Linear(embed_dim, embed_dim)
        # Over the fused (3d, d) matrix, Xavier's bound is √(6 / 4d): that of a (d, d) matrix with fairseq's gain, 1/√2.
        nn.init.xavier_uniform_(self.qkv.weight)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.qkv.bias)
        nn.init.zeros_(self.out.bias)

    def project(self, x: Tensor) -> Tensor:
        """Project states (..., d) to queries, keys and values, (..., 3, H, d/H)."""
        return self.qkv(x).unflatten(-1, (3, self.heads, -1))

    def combine(self, contexts: Tensor) -> Tensor:
        """Project the heads' contexts, (..., H, d/H), to (..., d)."""
        return self.out(contexts.flatten(-2))


def who_sees_whom(
    side: Tensor | int, position: Tensor, other_side: Tensor | int, other_position: Tensor, window: int | None = None
) -> Tensor:
    """Return whether a token attends to another token of its sentence pair.

    A target token i attends to the whole source and to the target tokens j <= i. In a layer with a window of k, it
    attends to the whole source and to the k target tokens i - k < j <= i. A source token i attends to the whole source
    or, with a window, to k source tokens around itself: from i - ⌊k/2⌋ to i + ⌈k/2⌉ - 1.

    In `abd_lwc`, a token of the backward translation or of the reversed reference attends to the source and to its own
    side as a target token does, and a target token also attends to the whole backward translation.

    Args:
        side: SOURCE, TARGET, BACKWARD or REFERENCE.
        position: its position in its segment, from 0.
        other_side, other_position: those of the other token. All four are broadcast.
        window: k, or None.

    Returns:
        A tensor of the broadcast shape, True where the token attends to the other one.
    """
    before = other_position <= position
    around: Tensor | bool = True
    if window is not None:
        before = before & (other_position > position - window)
        around = (other_position >= position - window // 2) & (other_position < position + (window + 1) // 2)
    within_source = (side == SOURCE) & (other_side == SOURCE) & around
    within_other_side = (side != SOURCE) & (side == other_side) & before
    to_whole_side = ((side != SOURCE) & (other_side == SOURCE)) | ((side == TARGET) & (other_side == BACKWARD))
    return within_source | to_whole_side | within_other_side


def mixed_attention_mask(packing: Packing, window: int | None = None) -> Tensor:
    """Return eq. 3, by :func:`who_sees_whom`, for the sentences of a packed stream, padded on the right.

    Args:
        window: that of the layer, or None.

    Returns:
        (B, length, length), True where token i (second axis) may attend to token j (third axis). Rows beyond a
        sentence's end are never used; they may attend to some token, so that no softmax is empty.
    """
    sides, positions = packing.padded_sides_and_positions
    return who_sees_whom(sides[:, :, None], positions[:, :, None], sides[:, None], positions[:, None], window)


@functools.cache
def flash_kernel() -> Callable | None:
    """Return PyTorch's variable-length flash attention, or None if this release has none that takes a window.

    The import is inside the function because it takes a second, which would delay every command, even on a CPU.
    """
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    # In its first release, this function takes no window; PaddedAttention replaces it there.
    return varlen_attn if "window_size" in inspect.signature(varlen_attn).parameters else None


def flash_runs_on(capability: tuple[int, int]) -> bool:
    """Return whether PyTorch's flash attention has a kernel for GPUs of this compute capability: Ampere and later."""
    return capability >= (8, 0)


def attend_packed(
    packing: Packing, qkv_like: Tensor, head_dim: int, dropout: float, window: int | None = None
) -> Attend:
    """Return the fastest implementation of eq. 3 for the packed stream on this device and in this precision.

    This is :class:`FlashAttention` on CUDA in half precision, if PyTorch has the kernel for this GPU and this width of
    a head, `dropout` is 0, and there is no window; it is :class:`PaddedAttention` otherwise. (No window of the kernel
    holds the whole source and the last k target tokens.)

    Args:
        qkv_like: any tensor with the device and the dtype of the queries.
        head_dim: width of a head, d/H.
        dropout: probability of dropping an attention weight; the flash kernel supports only 0.
        window: that of the layer, or None.
    """
    half = qkv_like.dtype in (torch.float16, torch.bfloat16) or torch.is_autocast_enabled(qkv_like.device.type)
    if (
        qkv_like.is_cuda
        and half
        and dropout == 0
        and window is None
        and head_dim % 8 == 0
        and head_dim <= 192  # up to 256, not all GPUs have the backward kernel
        and flash_runs_on(torch.cuda.get_device_capability(qkv_like.device))
        and flash_kernel() is not None
    ):
        return FlashAttention(packing)
    return PaddedAttention(packing, mixed_attention_mask(packing, window), dropout)


class PaddedAttention:
    """Attention within the packed stream under any mask. It runs `scaled_dot_product_attention` on padded sentences.

    Args:
        mask: (B, length, length), True where the token of the second axis may attend to that of the third.
        dropout: probability of dropping an attention weight.
    """

    def __init__(self, packing: Packing, mask: Tensor, dropout: float = 0.0):
        self.packing = packing
        self.dropout = dropout
        self.mask = mask.unsqueeze(1)

    def __call__(self, qkv: Tensor) -> Tensor:
        """Map queries, keys and values (T, 3, H, d/H) to contexts (T, H, d/H)."""
        packing, dtype = self.packing, qkv.dtype
        if not qkv.is_cuda and dtype.itemsize < 4:
            qkv = qkv.float()  # the kernel's backward pass on a CPU is twice as slow in half precision
        padded = pad_rows(qkv, packing.sentence_slots, packing.sentences, packing.length)
        query, key, value = (x.transpose(1, 2) for x in padded.unbind(2))  # each (B, H, length, d/H)
        with torch.autocast(qkv.device.type, enabled=False):  # autocast would return to half precision
            context = F.scaled_dot_product_attention(query, key, value, attn_mask=self.mask, dropout_p=self.dropout)
        return context.transpose(1, 2).flatten(0, 1).index_select(0, packing.sentence_slots).to(dtype)


class FlashAttention:
    """Mixed attention within the packed stream. It runs variable-length flash attention, without padding or a mask.

    Two calls compute eq. 3. In the first call, the whole stream attends causally, which is correct for the target:
    token i, at index n + i, attends to j <= n + i. In the second call, the source attends to the whole source; its
    contexts replace those of the first call.
    """

    def __init__(self, packing: Packing):
        self.packing = packing
        self.source_rows = packing.source_rows if packing.target_width else None
        self.source_offsets = F.pad(packing.source_lengths.cumsum(0), (1, 0)).int()

    def __call__(self, qkv: Tensor) -> Tensor:
        """Map queries, keys and values (T, 3, H, d/H) in half precision to contexts (T, H, d/H)."""
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
        kernel = flash_kernel()
        assert kernel is not None  # attend_packed has seen to it
        return kernel(query, key, value, offsets, offsets, length, length, window_size=window)


@dataclass(frozen=True)
class SourceCache:
    """The output of the encoder: each layer's keys and values of the source, once per sentence.

    The hypotheses of a beam share them.
    """

    keys: tuple[Tensor, ...]  # one for each layer, (S, H, N, d/H)
    values: tuple[Tensor, ...]  # the same shapes
    padding_mask: Tensor  # (S, N), True at padding
    beam: int = 1  # consecutive rows that share a sentence

    def reorder(self, order: Tensor) -> "SourceCache":
        """Return the cache for the rows order[0], order[1], ... of this cache, which has S · beam rows.

        Nothing is copied unless sentences are dropped or change places. Reading `order` synchronizes with the device
        once.
        """
        sentences, beam = kept_sentences(order, len(self.padding_mask), self.beam)

        def select(x: Tensor) -> Tensor:
            return x if sentences is None else x.index_select(0, sentences)

        keys, values = (tuple(map(select, tensors)) for tensors in (self.keys, self.values))
        return replace(self, keys=keys, values=values, padding_mask=select(self.padding_mask), beam=beam)


def pad_keys_and_values(qkv: Tensor, packing: Packing) -> tuple[Tensor, Tensor]:
    """Return one layer's keys and values in the layout of a :class:`SourceCache`.

    Args:
        qkv: (Σn, 3, H, d/H), queries, keys and values of a stream of sources without targets.

    Returns:
        Keys and values, (S, H, N, d/H) each, zero at padding.
    """
    padded = pad_rows(qkv[:, 1:], packing.source_slots, packing.sentences, packing.source_width)
    keys, values = padded.permute(2, 0, 3, 1, 4).unbind()
    return keys.contiguous(), values.contiguous()  # each decoding step multiplies them, which is faster in this layout


FIRST_TOKENS = 32
"""Number of target tokens for which a cache initially allocates memory."""


class TargetCache:
    """Each layer's keys and values of the target tokens decoded so far.

    Reordering hypotheses does not move keys and values. Each sentence has `beam` slots for every token. A hypothesis
    writes each new token into its own slot, and the table `slots` stores which slots hold the tokens of each
    hypothesis. Attention computes scores for all slots of a sentence and hides those of other hypotheses. Its cost
    therefore grows with the square of the beam; up to a beam of about ten, this is cheaper than copying.

    The cache allocates memory in advance, and doubles it when it is full.

    Args:
        source: the cache of the sources to which the hypotheses attend.
        rows: R, the number of hypotheses. Consecutive ones belong to the same sentence.
    """

    def __init__(self, source: SourceCache, rows: int):
        sentences, heads, _, head_dim = source.keys[0].shape
        beam = rows // sentences
        # (layer, keys or values, S, H, token, slot, d/H): for each head, the slots of all cached tokens are contiguous
        self.memory = source.keys[0].new_empty(len(source.keys), 2, sentences, heads, 0, beam, head_dim)
        self.slots = source.keys[0].new_empty(sentences, beam, 0, dtype=torch.long)

    @property
    def length(self) -> int:
        """t, the number of cached tokens."""
        return self.slots.size(2)

    @property
    def beam(self) -> int:
        return self.slots.size(1)

    def reserve(self, new: int) -> None:
        """Allocate space for m new tokens, each in its hypothesis's own slot.

        `with_new`, (S, beam, t + m), becomes the table of slots with these tokens. `others`, (S, beam, t + m, beam),
        becomes True at the slots of other hypotheses.
        """
        needed, capacity = self.length + new, self.memory.size(4)
        if needed > capacity:
            shape = list(self.memory.shape)
            shape[4] = max(needed, 2 * capacity, FIRST_TOKENS)
            grown = self.memory.new_empty(shape)
            grown[:, :, :, :, : self.length] = self.memory[:, :, :, :, : self.length]
            self.memory = grown
        of_beam = torch.arange(self.beam, device=self.slots.device)
        self.with_new = torch.cat([self.slots, of_beam[:, None].expand(len(self.slots), -1, new)], dim=2)
        self.others = self.with_new[..., None] != of_beam

    def extend(self, layer: int, new: Tensor) -> tuple[Tensor, Tensor]:
        """Write a layer's keys and values of the m new tokens, (R, m, 2, H, d/H). Gradients do not flow through the
        cache.

        Returns:
            Views of the layer's keys and values in all slots, (S, H, (t + m) · beam, d/H) each.
        """
        total = self.length + new.size(1)
        by_slot = new.detach().unflatten(0, (-1, self.beam)).permute(3, 0, 4, 2, 1, 5)  # (2, S, H, m, beam, d/H)
        self.memory[layer, :, :, :, self.length : total] = by_slot
        keys, values = self.memory[layer, :, :, :, :total].flatten(3, 4)
        return keys, values

    def advance(self) -> None:
        """Count the new tokens as cached, after every layer has written them."""
        self.slots = self.with_new

    def reorder_hypotheses(self, order: Tensor) -> None:
        """Continue with the rows order[0], order[1], ... Row order[i] must be of the same sentence as row i."""
        self.slots = self.slots.flatten(0, 1).index_select(0, order).unflatten(0, (-1, self.beam))

    def reorder(self, order: Tensor) -> None:
        """Continue with the rows order[0], order[1], ...

        Keys and values are copied only if sentences are dropped or change places, or if the beam changes. Reading
        `order` synchronizes with the device once.
        """
        sentences, beam = kept_sentences(order, self.memory.size(2), self.beam)
        if beam != self.beam:
            self._regroup(order, beam)
            return
        self.reorder_hypotheses(order)
        if sentences is not None:
            shape = list(self.memory.shape)
            shape[2] = len(sentences)
            fewer = self.memory.new_empty(shape)
            fewer[:, :, :, :, : self.length] = self.memory[:, :, :, :, : self.length].index_select(2, sentences)
            self.memory = fewer

    def _regroup(self, order: Tensor, beam: int) -> None:
        """Copy the tokens of each row into its own slots, for a new beam."""
        index = self.slots.transpose(1, 2)[None, None, :, None, :, :, None]  # (1, 1, S, 1, t, beam, 1)
        by_slot = self.memory[:, :, :, :, : self.length].take_along_dim(index, dim=5)
        by_row = by_slot.movedim(5, 3).flatten(2, 3)  # (layer, 2, R, H, t, d/H)
        self.memory = by_row.index_select(2, order).unflatten(2, (-1, beam)).movedim(3, 5)
        slots = torch.arange(beam, device=order.device)[:, None]
        self.slots = slots.expand(self.memory.size(2), beam, self.length)


def step_mask(source: SourceCache, target: TargetCache, window: int | None) -> Tensor:
    """Return M of eq. 3 for the new target tokens of a step. All layers with this window have the same M.

    With a window of k, the mask has no columns for target tokens that no new token sees. L is then at most
    (k + m - 1) · beam.

    Returns:
        (S, 1, beam · m, N + L), -∞ where a token must not attend, and 0 elsewhere.
    """
    total = target.others.size(2)
    new = total - target.length
    first = 0 if window is None else max(0, target.length + 1 - window)  # the first token that the first new one sees
    token = torch.arange(total, device=target.others.device)
    sees = who_sees_whom(TARGET, token[target.length :, None], TARGET, token[first:], window)  # (m, tokens)
    hidden = target.others[:, :, None, first:] | ~sees[..., None]  # (S, beam, m, tokens, slot)
    hidden = hidden.flatten(3).flatten(1, 2)
    padding = source.padding_mask[:, None].expand(-1, target.beam * new, -1)
    hidden = torch.cat([padding, hidden], dim=-1)
    return torch.zeros_like(hidden, dtype=source.keys[0].dtype).masked_fill_(hidden, -torch.inf)[:, None]


def step_masks(source: SourceCache, target: TargetCache, windows: Iterable[int | None]) -> dict[int | None, Tensor]:
    """Return :func:`step_mask` for each window.

    A single new token sees its whole window. Its masks are therefore columns of one mask, which takes a CPU a sixth of
    the time of making each of ten windows anew.
    """
    width, beam = source.padding_mask.size(1), target.beam
    if target.others.size(2) - target.length > 1:
        return {window: step_mask(source, target, window) for window in set(windows)}
    mask = step_mask(source, target, None)

    def columns(window: int | None) -> Tensor:
        if window is None or window > target.length:
            return mask
        return torch.cat([mask[..., :width], mask[..., -window * beam :]], dim=-1)

    return {window: columns(window) for window in set(windows)}


class StepAttention:
    """Mixed attention in one layer, from m new target tokens to the source and target tokens in the caches.

    Each call writes the new tokens' keys and values into the target cache. All `beam` hypotheses of a sentence share
    its source keys and values and the slots of its target cache, so nothing is copied for a hypothesis or a step.

    Args:
        source: the encoder's output.
        target: the target cache, in which `reserve` has allocated space for the new tokens.
        mask: the step's :func:`step_mask`.
        layer: the number of the layer, from 0.
        dropout: the rate of dropout of the weights, above 0 with --retain-dropout.
    """

    def __init__(self, source: SourceCache, target: TargetCache, mask: Tensor, layer: int, dropout: float = 0.0):
        self.source, self.target, self.mask, self.layer, self.dropout = source, target, mask, layer, dropout

    def __call__(self, qkv: Tensor) -> Tensor:
        """Map queries, keys and values (R, m, 3, H, d/H) to contexts (R, m, H, d/H)."""
        query = self.group_by_sentence(qkv[:, :, 0])
        source_keys, source_values = self.cached_source()
        width = source_keys.size(1)
        target_keys, target_values = self.extended_target(qkv, self.mask.size(-1) - width)

        # CPUs are several times slower at writing both products into one tensor than at joining them.
        to_source = attention_scores(query, source_keys)
        to_target = attention_scores(query, target_keys.flatten(0, 1))
        scores = torch.cat([to_source, to_target], dim=-1)
        weights = self.masked(scores, self.mask).softmax(-1).type_as(scores)  # autocast would return single precision
        self._source_weights, self._target_weights = weights[..., :width], weights[..., width:]
        weights = self.dropped(weights)
        context = weights[..., :width] @ source_values
        return self.ungroup(context.baddbmm_(weights[..., width:], target_values.flatten(0, 1)))

    def extended_target(self, qkv: Tensor, slots: int) -> tuple[Tensor, Tensor]:
        """Write the new tokens into the target cache, and return the keys and values of its last slots.

        Returns:
            (S, H, slots, d/H) each.
        """
        keys, values = self.target.extend(self.layer, qkv[:, :, 1:])
        return keys[:, :, -slots:], values[:, :, -slots:]

    @property
    def source_weights(self) -> Tensor:
        """The weights of the source tokens in the last call, (R, H, m, N)."""
        return self.ungroup(self._source_weights).transpose(1, 2)

    @property
    def target_weights(self) -> Tensor:
        """The weights of the target tokens in the last call, (R, H, m, t + m)."""
        by_slot = self.ungroup(self._target_weights).transpose(1, 2).unflatten(-1, (-1, self.target.beam))
        by_token = by_slot.sum(-1)  # a hypothesis sees one slot of each token; the other slots have weight 0
        return F.pad(by_token, (self.target.others.size(2) - by_token.size(-1), 0))  # tokens before the window

    def cached_source(self) -> tuple[Tensor, Tensor]:
        """Return this layer's keys and values of the source, (S · H, N, d/H) each."""
        return self.source.keys[self.layer].flatten(0, 1), self.source.values[self.layer].flatten(0, 1)

    def masked(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Add a mask (S, 1, beam · m, columns) to the scores (S · H, beam · m, columns) in place."""
        scores.unflatten(0, (len(mask), -1)).add_(mask)
        return scores

    def dropped(self, weights: Tensor) -> Tensor:
        """Apply dropout to weights, if there is any."""
        return F.dropout(weights, self.dropout) if self.dropout else weights

    def group_by_sentence(self, query: Tensor) -> Tensor:
        """Rearrange queries (R, m, H, d/H) to (S · H, beam · m, d/H)."""
        return query.unflatten(0, (-1, self.target.beam)).permute(0, 3, 1, 2, 4).flatten(2, 3).flatten(0, 1)

    def ungroup(self, x: Tensor) -> Tensor:
        """Rearrange (S · H, beam · m, size) to (R, m, H, size)."""
        by_head = x.unflatten(0, (len(self.mask), -1)).unflatten(2, (self.target.beam, -1))  # (S, H, beam, m, size)
        return by_head.permute(0, 2, 3, 1, 4).flatten(0, 1)


def active_rate(dropout: FairseqDropout) -> float:
    """Return the rate of a dropout, or 0 where it is not applied. It is applied in training, and in generation with
    --retain-dropout."""
    return dropout.p if dropout.training or dropout.apply_during_inference else 0.0


def attention_scores(query: Tensor, keys: Tensor) -> Tensor:
    """Compute q · k / √(d/H) for queries (S · H, rows, d/H) and keys (S · H, columns, d/H)."""
    scale = query.size(-1) ** -0.5
    return torch.baddbmm(query.new_empty(()), query, keys.transpose(1, 2), beta=0, alpha=scale)
