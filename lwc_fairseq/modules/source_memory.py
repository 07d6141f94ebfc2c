"""What a recurrent decoder reads: a recurrent encoder's output, and what the decoder computes of it before any step.

Both are held once a sentence. When fairseq's generator asks for a beam, they get a larger `beam`, not copies.

Letters: S sentences, R = S · beam hypotheses, n source tokens, L decoder layers, d width of a state.
"""

from dataclasses import dataclass, replace

from torch import Tensor

from .attention_memory import Memory, ProjectedMemory
from .row_groups import kept_sentences


@dataclass(frozen=True)
class SourceMemory:
    """A recurrent encoder's output."""

    memories: tuple[Memory, ...]  # what the decoder's attentions read, in their order
    final_state: Tensor  # (S, d), what the decoder's first state is made of
    beam: int = 1  # consecutive rows that share a sentence

    def reorder(self, order: Tensor) -> "SourceMemory":
        """The output for the rows order[0], order[1], … of this one's S · beam rows.

        Reordering hypotheses within their sentences, or repeating sentences for a beam, copies nothing. Leaving out
        finished sentences copies what remains. Waits for the device once, to read `order`.
        """
        kept, beam = kept_sentences(order, len(self.final_state), self.beam)
        if kept is None:
            return replace(self, beam=beam)
        memories = tuple(memory.select(kept) for memory in self.memories)
        return SourceMemory(memories, self.final_state.index_select(0, kept), beam)


@dataclass(frozen=True)
class DecodingState:
    """What a recurrent decoder remembers between two steps. It changes with every step; the memories do not."""

    states: Tensor  # (R, L · d), of the layers; before the first step (S, L · d)
    memories: tuple[ProjectedMemory, ...]  # one for each attention
    length: int = 0  # tokens read
    beam: int = 1  # consecutive rows that share a sentence

    def for_rows(self, rows: int) -> "DecodingState":
        """The state before the first step, repeated for the R rows that begin with it."""
        beam = rows // len(self.states)
        return replace(self, states=self.states.repeat_interleave(beam, dim=0), beam=beam)

    def reorder(self, order: Tensor) -> "DecodingState":
        """As :meth:`SourceMemory.reorder`; the states follow their rows."""
        states = self.states.index_select(0, order)
        kept, beam = kept_sentences(order, len(self.states) // self.beam, self.beam)
        if kept is None:
            return replace(self, states=states, beam=beam)
        return replace(self, states=states, memories=tuple(memory.select(kept) for memory in self.memories), beam=beam)
