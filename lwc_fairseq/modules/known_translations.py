"""A memory of the reverse translations that training has found.

Letters: S sentences, n source tokens, T tokens of the longest reverse translation.
"""

from array import array
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


class KnownTranslations:
    """The translations that a frozen model has made, by their source.

    The model translates a source in the same way in every epoch, so training searches for it once. Source and
    translation of 25 tokens each take about 400 bytes of the host's memory.

    Args:
        source_pad, target_pad: the padding of sources and of translations.
    """

    def __init__(self, source_pad: int, target_pad: int):
        self.source_pad, self.target_pad = source_pad, target_pad
        self.found: dict[bytes, array] = {}

    def forget(self) -> None:
        self.found.clear()

    def look_up(self, src_tokens: Tensor, search: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the translations (S, T), with padding on the right.

        Args:
            src_tokens: (S, n), padding on either side.
            search: called with the indices of the rows whose source is unknown, if there are any. Returns their
                translations, with padding on the right.
        """
        sources = [row.tobytes() for row in without_padding(src_tokens, self.source_pad)]
        unknown = [i for i, source in enumerate(sources) if source not in self.found]
        if unknown:
            translations = search(torch.tensor(unknown, device=src_tokens.device))
            for i, translation in zip(unknown, without_padding(translations, self.target_pad), strict=True):
                self.found[sources[i]] = translation
        rows = [torch.tensor(self.found[source]) for source in sources]
        return pad_sequence(rows, batch_first=True, padding_value=self.target_pad).to(src_tokens)


def without_padding(tokens: Tensor, pad: int) -> list[array]:
    """Return the tokens of each row (S, n) that are not padding, as 32-bit integers."""
    return [array("i", (token for token in row if token != pad)) for row in tokens.tolist()]
