"""Moods: what happens to the verb of a clause, which is in the present, in the past, or behind a modal verb."""

from dataclasses import dataclass
from enum import StrEnum

from .conjugation import EnglishVerb, english_verb
from .features import Person


class MoodKind(StrEnum):
    PRESENT = "present"
    PAST = "past"
    FUTURE = "future"
    MODAL = "modal"


class Tense(StrEnum):
    """The time that a clause is about. It decides which adverbials of time fit."""

    PRESENT = "present"
    PAST = "past"
    COMING = "coming"


@dataclass(frozen=True)
class Mood:
    """One of the present, the past, the future and the modal verbs.

    Args:
        german: the forms of the German modal verb: first person singular, third person singular, plural.
        english: the English modal verb; its tail stands before the infinitive ("have to", "be allowed to").
        fixed: whether the English modal verb never changes (can, should, will).
        adverb: "gern", which German puts beside a verb in the present where English says "like to".
    """

    name: str
    kind: MoodKind
    german: tuple[str, str, str] | None = None
    english: EnglishVerb | None = None
    fixed: bool = False
    adverb: str = ""

    @property
    def tense(self) -> Tense:
        simple = {MoodKind.PRESENT: Tense.PRESENT, MoodKind.PAST: Tense.PAST}
        return simple.get(self.kind, Tense.COMING)


def finite(forms: tuple[str, str, str], person: Person) -> str:
    """The form of a German modal verb."""
    first, third, plural = forms
    return {Person.FIRST_SINGULAR: first, Person.THIRD_SINGULAR: third}.get(person, plural)


def modal(name: str, german: str, english: str, fixed: bool = False) -> Mood:
    first, third, plural = german.split()
    return Mood(name, MoodKind.MODAL, (first, third, plural), english_verb(english), fixed)


PRESENT = Mood("present", MoodKind.PRESENT)
PAST = Mood("past", MoodKind.PAST)
LIKING = Mood("liking", MoodKind.PRESENT, english=english_verb("like to"), adverb="gern")
FUTURE = Mood("future", MoodKind.FUTURE, ("werde", "wird", "werden"), english_verb("will"), fixed=True)
CAN = modal("can", "kann kann können", "can", fixed=True)
SHOULD = modal("should", "soll soll sollen", "should", fixed=True)
MUST = modal("must", "muss muss müssen", "have/had to")
WANT = modal("want", "will will wollen", "want to")
MAY = modal("may", "darf darf dürfen", "be allowed to")
MODALS = (CAN, CAN, SHOULD, MUST, WANT, MAY)
"""The modal verbs to draw from; "can" is twice as likely as the others."""
