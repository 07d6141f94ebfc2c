"""What a recurrent decoder remembers of the source.

Letters: S sentences, R = S · beam hypotheses, n source tokens, D width of a memory.
"""

from dataclasses import dataclass

from torch import Tensor

from .attention_memory import ProjectedMemory
from .row_groups import kept_sentences


@dataclass(frozen=True)
class SourceMemory:
    """The output of a recurrent model's encoder.

    It is held once for each sentence, and the hypotheses of a beam share it.
    """

    first_state: Tensor  # (S, width), the decoder's state before the first word
    memories: tuple[ProjectedMemory, ...]  # one for each attention, of (S, n, D)
    beam: int = 1  # consecutive rows that share a sentence

    def first_states(self, rows: int) -> Tensor:
        """`first_state` for each of R hypotheses, (R, width)."""
        return self.first_state.repeat_interleave(rows // len(self.first_state), dim=0)

    def reorder(self, order: Tensor) -> "SourceMemory":
        """The memory for the rows order[0], order[1], ... of the S · beam rows of this one.

        It copies nothing unless sentences are dropped or change places. Reading `order` waits for the device once.
        """
        kept, beam = kept_sentences(order, len(self.first_state), self.beam)
        if kept is None:
            return SourceMemory(self.first_state, self.memories, beam)
        return SourceMemory(
            self.first_state.index_select(0, kept),
            tuple(memory.select(kept) for memory in self.memories),
            beam,
        )
