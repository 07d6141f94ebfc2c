"""Padded batches and the packed stream: which real token stands where.

The stream holds, for each sentence of the batch, its n source tokens (with EOS) and then its m target input tokens,
and nothing else: T = Σ (n + m) rows, no padding. In `abd_lwc`, the target consists of several segments. Everything here
is index arithmetic and needs no weights.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

SOURCE, TARGET, BACKWARD, REFERENCE = range(4)
"""The sides: the source, the target and, in `abd_lwc` alone, the backward translation, which the target reads, and the
reversed reference, which no other side reads."""


@dataclass(frozen=True)
class Packing:
    """Where the T tokens of the packed stream come from and belong to.

    Row indices count rows of the stream. Slots are flat indices into a padded layout: one slot for each row of the
    stream or, in `source_slots` and `target_slots`, for each row of one side.
    """

    tokens: Tensor  # (T,) token ids
    positions: Tensor  # (T,) from 0 in each segment
    sides: Tensor  # (T,) SOURCE, TARGET, ...
    source_rows: Tensor  # (Σn,) rows that hold source tokens
    target_rows: Tensor  # (Σm,) all other rows
    source_lengths: Tensor  # (B,) n
    offsets: Tensor  # (B + 1,) row where each sentence begins, int32; the last is T
    slots: Tensor  # (T,) into (B, source_width + target_width): the columns of src_tokens, then of the other segments
    sentence_slots: Tensor  # (T,) into (B, length): sentences side by side, padded on the right
    source_slots: Tensor  # (Σn,) into (B, source_width): the columns of src_tokens
    target_slots: Tensor  # (Σm,) into (B, target_width): the columns of the other segments
    length: int  # max (n + m)
    source_length: int  # max n
    source_width: int
    target_width: int

    @property
    def sentences(self) -> int:
        """B"""
        return self.source_lengths.numel()

    @cached_property
    def padded_sides_and_positions(self) -> tuple[Tensor, Tensor]:
        """The side and the position of each token of the sentences side by side, padded on the right, (B, length)
        each. Padding counts as further target tokens."""
        slots = self.sentences * self.length
        sides, positions = self.sides.new_full((2, slots), self.length).unbind()
        sides = sides.fill_(TARGET).index_copy(0, self.sentence_slots, self.sides)
        positions = positions.index_copy(0, self.sentence_slots, self.positions)
        return sides.view(-1, self.length), positions.view(-1, self.length)


def pack(src_tokens: Tensor, prev_output_tokens: Tensor, padding_idx: int) -> Packing:
    """Pack a batch of sources and targets; padding may stand on either side of either tensor.

    Args:
        src_tokens: (B, source_width) token ids.
        prev_output_tokens: (B, target_width) token ids, the start symbol first; target_width 0 packs sources alone.
        padding_idx: the token that is left out.

    On a GPU the packed length is not known before the device has counted it, so this waits for the device. Batches
    that are packed while they are collated, on the CPU, avoid that.
    """
    return pack_segments({SOURCE: src_tokens, TARGET: prev_output_tokens}, padding_idx)


def pack_segments(segments: dict[int, Tensor], padding_idx: int) -> Packing:
    """Pack a batch in which each sentence consists of several segments; padding may stand anywhere in each.

    Args:
        segments: for each side, (B, width) token ids, in the order in which the stream holds them; the source is first.
        padding_idx: the token that is left out.
    """
    source_width, *target_widths = (tokens.size(1) for tokens in segments.values())
    target_width = sum(target_widths)
    width = source_width + target_width
    grid = torch.cat([*segments.values()], dim=1)  # (B, width)
    real = grid.ne(padding_idx)
    by_segment = real.split([source_width, *target_widths], dim=1)
    position = torch.cat([is_real.cumsum(1) for is_real in by_segment], dim=1) - 1
    side = torch.cat([torch.full_like(tokens[0], side) for side, tokens in segments.items()])  # (width,)

    source_lengths = real[:, :source_width].sum(1)
    lengths = real.sum(1)
    offsets = torch.zeros(lengths.numel() + 1, dtype=torch.long, device=grid.device)
    torch.cumsum(lengths, dim=0, out=offsets[1:])

    grid_slots = real.flatten().nonzero().squeeze(1)  # (T,): row by row, so each source precedes its target
    sentence = grid_slots.div(width, rounding_mode="floor") if width else grid_slots
    column = grid_slots - sentence * width
    index = torch.arange(grid_slots.numel(), device=grid.device) - offsets[sentence]  # within its sentence
    is_target = column >= source_width
    source_rows, target_rows = (~is_target).nonzero().squeeze(1), is_target.nonzero().squeeze(1)

    length = int(lengths.max()) if lengths.numel() else 0
    return Packing(
        tokens=grid.flatten()[grid_slots],
        positions=position.flatten()[grid_slots],
        sides=side[column],
        source_rows=source_rows,
        target_rows=target_rows,
        source_lengths=source_lengths,
        offsets=offsets.int(),
        slots=grid_slots,
        sentence_slots=sentence * length + index,
        source_slots=(sentence * source_width + column)[source_rows],
        target_slots=(sentence * target_width + column - source_width)[target_rows],
        length=length,
        source_length=int(source_lengths.max()) if lengths.numel() else 0,
        source_width=source_width,
        target_width=target_width,
    )


def repack(layout: dict, src_tokens: Tensor, prev_output_tokens: Tensor, padding_idx: int) -> Packing:
    """Return the packing of a batch whose layout is known, with the tokens of the batch itself.

    A criterion or a task may edit the tokens after the data loader has packed them. If the width of the batch has
    changed, this function packs the batch anew. If only padding has changed, it does so on a CPU. On a GPU, padding
    must stay where it is, because the function would have to wait for the device to see the change.

    Args:
        layout: the fields of the packing that the data loader computed.

    Raises:
        RuntimeError: on a GPU, padding was edited (an assertion on the device).
    """
    grid = torch.cat([src_tokens, prev_output_tokens], dim=1)  # (B, width)
    if grid.size(1) != layout["source_width"] + layout["target_width"]:
        return pack(src_tokens, prev_output_tokens, padding_idx)
    tokens = grid.flatten().index_select(0, layout["slots"])
    is_same = (grid.ne(padding_idx).sum() == len(tokens)) & tokens.ne(padding_idx).all()
    if grid.is_cuda:
        torch._assert_async(
            is_same, "the batch's padding was edited after packing: remove net_input['packing'] as well"
        )
    elif not is_same:
        return pack(src_tokens, prev_output_tokens, padding_idx)
    return Packing(**{**layout, "tokens": tokens})


def pad_rows(rows: Tensor, slots: Tensor, sentences: int, width: int) -> Tensor:
    """Lay packed rows out in a padded tensor of zeros.

    Args:
        rows: (R, ...) packed rows.
        slots: (R,) the flat slot of each row in (sentences, width).

    Returns:
        (sentences, width, ...)
    """
    padded = rows.new_zeros(sentences * width, *rows.shape[1:]).index_copy_(0, slots, rows)
    return padded.view(sentences, width, *rows.shape[1:])
