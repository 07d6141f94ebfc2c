"""Verb frames: which verb goes with whom, with what, where and when, so that every sentence makes sense."""

from dataclasses import dataclass
from typing import NamedTuple

from .complements import Complement
from .conjugation import Verb
from .moods import MoodKind
from .noun_classes import ParticipantClass
from .places import AnyPlace, places
from .slots import Slot
from .times import Scale
from .verbs import VERBS


class Motive(NamedTuple):
    """The name of a circumstance (circumstances.py), and whether it is a state of the object instead of the subject."""

    name: str
    of_object: bool


@dataclass(frozen=True)
class Frame:
    """A verb with everything that can be said around it.

    Args:
        complements: one of them is always said.
        places: one of them may be said.
        scales: how exactly its time can be told; what is listed twice is drawn twice as often.
        mood_kinds: the moods that suit it.
        because, although: the circumstances under which it is, or is not, to be expected.
        liking: whether "gern" suits it.
        negatable: whether it can be negated.
        experiencer: whether the German dative is the English subject (das Buch gefällt ihm: he likes the book).
    """

    verb: Verb
    subject: ParticipantClass
    accusative: ParticipantClass | None
    dative: ParticipantClass | None
    complements: tuple[Complement, ...]
    places: tuple[AnyPlace, ...]
    scales: tuple[Scale, ...]
    mood_kinds: tuple[MoodKind, ...]
    because: tuple[Motive, ...]
    although: tuple[Motive, ...]
    liking: bool
    negatable: bool
    experiencer: bool

    def participants(self, slot: Slot) -> ParticipantClass | None:
        """What can fill the slot of a participant; None if the frame does not have it."""
        return {Slot.SUBJECT: self.subject, Slot.DATIVE: self.dative, Slot.ACCUSATIVE: self.accusative}[slot]


def frame(
    verb: str,
    subject: ParticipantClass,
    accusative: ParticipantClass | None = None,
    dative: ParticipantClass | None = None,
    also: Complement | tuple[Complement, ...] = (),
    where: str = "",
    when: str = "day",
    moods: str = "present past future modal",
    because: str = "",
    although: str = "",
    liking: bool = False,
    negatable: bool = True,
    experiencer: bool = False,
) -> Frame:
    """A frame in words. A space separates several places, scales, moods or motives."""
    return Frame(
        VERBS[verb],
        subject,
        accusative,
        dative,
        also if isinstance(also, tuple) else (also,),
        places(where),
        tuple(Scale(word) for word in when.split()),
        tuple(MoodKind(word) for word in moods.split()),
        tuple(motive(word) for word in because.split()),
        tuple(motive(word) for word in although.split()),
        liking,
        negatable,
        experiencer,
    )


def motive(text: str) -> Motive:
    """``motive("ill")`` is a state of the subject, ``motive("object:ill")`` one of the object."""
    whose, _, name = text.rpartition(":")
    return Motive(name, of_object=whose == "object")
