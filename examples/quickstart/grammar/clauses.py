"""A clause: what is said, before any language puts it in order."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from .frames import Frame
from .moods import Mood
from .noun_phrases import Participant
from .phrases import NOTHING, Phrase
from .slots import Slot


class Negation(StrEnum):
    NONE = ""
    NICHT = "nicht"
    KEIN = "kein"
    """The determiner of the accusative."""


@dataclass(frozen=True)
class Clause:
    """A frame with its slots filled.

    Args:
        openers: the adverbials that can be the first phrase of a statement.
    """

    frame: Frame
    mood: Mood
    participants: Mapping[Slot, Participant]
    adjuncts: Mapping[Slot, Phrase] = field(default_factory=dict)
    negation: Negation = Negation.NONE
    openers: tuple[Slot, ...] = ()

    @property
    def subject(self) -> Participant:
        return self.participants[Slot.SUBJECT]

    @property
    def dative(self) -> Participant | None:
        return self.participants.get(Slot.DATIVE)

    @property
    def accusative(self) -> Participant | None:
        return self.participants.get(Slot.ACCUSATIVE)

    @property
    def agent(self) -> Slot:
        """The slot of the English subject. What pleases the child in German, the child likes in English."""
        return Slot.DATIVE if self.frame.experiencer else Slot.SUBJECT

    @property
    def patient(self) -> Slot:
        """The slot of the English direct object."""
        return Slot.SUBJECT if self.frame.experiencer else Slot.ACCUSATIVE

    def adjunct(self, slot: Slot) -> Phrase:
        return self.adjuncts.get(slot, NOTHING)

    def with_participant(self, slot: Slot, participant: Participant) -> "Clause":
        return replace(self, participants={**self.participants, slot: participant})

    def with_adjunct(self, slot: Slot, phrase: Phrase, can_open: bool = False) -> "Clause":
        openers = (*self.openers, slot) if can_open else self.openers
        return replace(self, adjuncts={**self.adjuncts, slot: phrase}, openers=openers)

    def without(self, *slots: Slot) -> "Clause":
        """The clause without these adjuncts."""
        adjuncts = {slot: phrase for slot, phrase in self.adjuncts.items() if slot not in slots}
        return replace(self, adjuncts=adjuncts, openers=tuple(slot for slot in self.openers if slot not in slots))
