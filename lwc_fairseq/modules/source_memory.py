"""The output of a recurrent encoder, and the state that a recurrent decoder computes from it.

Memories are stored once per sentence. When fairseq's generator repeats sentences for a beam, only `beam` grows; nothing
is copied.

Letters: S sentences, R = S · beam hypotheses, n source tokens, L decoder layers, d state width.
"""

from dataclasses import dataclass, replace

from torch import Tensor

from .attention_memory import Memory, ProjectedMemory
from .row_groups import kept_sentences


@dataclass(frozen=True)
class SourceMemory:
    """A recurrent encoder's output."""

    memories: tuple[Memory, ...]  # one for each attention of the decoder, in order
    final_state: Tensor  # (S, d); the decoder computes its initial state from it
    beam: int = 1  # consecutive rows that share a sentence

    def __getitem__(self, index: int) -> Tensor:
        """Return the final state as the first item: there torch's backward hooks, which fairseq uses to find the source
        of NaN gradients, look for a tensor."""
        return (self.final_state,)[index]

    def reorder(self, order: Tensor) -> "SourceMemory":
        """Return the output for the rows order[0], order[1], … of this output, which has S · beam rows.

        Reordering hypotheses within their sentences, or repeating sentences for a beam, copies nothing. Dropping
        finished sentences copies the others. Reading `order` synchronizes with the device once.
        """
        kept, beam = kept_sentences(order, len(self.final_state), self.beam)
        if kept is None:
            return replace(self, beam=beam)
        memories = tuple(memory.select(kept) for memory in self.memories)
        return SourceMemory(memories, self.final_state.index_select(0, kept), beam)


@dataclass(frozen=True)
class DecodingState:
    """The state of a recurrent decoder between two steps. `memories` are the same in all steps."""

    states: Tensor  # (R, L · d), states of the layers; (S, L · d) before the first step
    memories: tuple[ProjectedMemory, ...]  # one for each attention
    length: int = 0  # number of tokens read
    beam: int = 1  # consecutive rows that share a sentence

    def for_rows(self, rows: int) -> "DecodingState":
        """Return the state before the first step, repeated for R rows."""
        beam = rows // len(self.states)
        return replace(self, states=self.states.repeat_interleave(beam, dim=0), beam=beam)

    def reorder_hypotheses(self, order: Tensor) -> "DecodingState":
        """Reorder the rows, where each row continues one of the same sentence."""
        return replace(self, states=self.states.index_select(0, order))

    def reorder(self, order: Tensor) -> "DecodingState":
        """Reorder the rows, as :meth:`SourceMemory.reorder` does. Each row keeps its states."""
        states = self.states.index_select(0, order)
        kept, beam = kept_sentences(order, len(self.states) // self.beam, self.beam)
        if kept is None:
            return replace(self, states=states, beam=beam)
        return replace(self, states=states, memories=tuple(memory.select(kept) for memory in self.memories), beam=beam)
