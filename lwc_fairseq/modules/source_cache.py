"""The decoder cache of the layer-wise coordinated Transformer for the source.

Letters: S sentences, H heads, N width of the padded source, d width of the model. True in a padding mask means padding.
"""

from dataclasses import dataclass

from torch import Tensor

from ..data.packing import Packing, pad_rows
from .row_groups import kept_sentences


@dataclass(frozen=True)
class SourceCache:
    """Each layer's keys and values of the source: the output of the encoder.

    They are stored once per sentence, and the hypotheses of a beam share them.
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
        kept, beam = kept_sentences(order, len(self.padding_mask), self.beam)
        if kept is None:
            return SourceCache(self.keys, self.values, self.padding_mask, beam)
        return SourceCache(
            tuple(keys.index_select(0, kept) for keys in self.keys),
            tuple(values.index_select(0, kept) for values in self.values),
            self.padding_mask.index_select(0, kept),
            beam,
        )


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
