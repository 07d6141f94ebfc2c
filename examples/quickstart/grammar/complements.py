"""Complements: what a verb demands besides its objects, such as where to, with whom, or in which state."""

from dataclasses import dataclass

from .dice import Dice
from .features import Case
from .noun_classes import ParticipantClass
from .noun_phrases import Participant, could_be_same
from .numerals import number_word
from .phrases import Phrase, gloss, pair
from .places import AnyPlace, Preposition, places, preposition, prepositional


@dataclass(frozen=True)
class FixedExpression:
    """The same words every time, given as a gloss: "Fußball/football"."""

    text: str

    def draw(self, dice: Dice, subject: Participant) -> Phrase:
        return gloss(self.text)


@dataclass(frozen=True)
class Location:
    """Where somebody is."""

    places: tuple[AnyPlace, ...]

    def draw(self, dice: Dice, subject: Participant) -> Phrase:
        return dice.pick(self.places).where(dice)


@dataclass(frozen=True)
class Target:
    """Where somebody goes."""

    places: tuple[AnyPlace, ...]

    def draw(self, dice: Dice, subject: Participant) -> Phrase:
        return dice.pick(self.places).where_to(dice)


@dataclass(frozen=True)
class Journey:
    """Where somebody goes, and by what. German names the means first, English the target."""

    target: Target
    means: tuple[str, ...]

    def draw(self, dice: Dice, subject: Participant) -> Phrase:
        target = self.target.draw(dice, subject)
        means = gloss(dice.pick(self.means))
        return Phrase(means.german + target.german, target.english + means.english)


@dataclass(frozen=True)
class PrepositionalObject:
    """A participant behind a preposition that the verb governs: warten auf, wait for."""

    preposition: Preposition
    case: Case
    participants: ParticipantClass

    def draw(self, dice: Dice, subject: Participant) -> Phrase:
        while True:
            drawn = self.participants.draw(dice, subject)
            if not could_be_same(drawn, subject):
                return prepositional(self.preposition, drawn, self.case)


@dataclass(frozen=True)
class Measure:
    """A number of something, from ``low`` to ``high`` in steps: "Jahre/years alt/old"."""

    low: int
    high: int
    text: str
    step: int = 1

    def draw(self, dice: Dice, subject: Participant) -> Phrase:
        number = dice.deal(self, range(self.low, self.high + 1, self.step))
        return pair(*number_word(number)) + gloss(self.text)


Complement = FixedExpression | Location | Target | Journey | PrepositionalObject | Measure


def expressions(text: str) -> tuple[FixedExpression, ...]:
    """``expressions("müde/tired krank/ill")``: each word is an expression of its own."""
    return tuple(FixedExpression(entry) for entry in text.split())


def location(names: str) -> Location:
    return Location(places(names))


def target(names: str) -> Target:
    return Target(places(names))


def prepositional_object(text: str, case: Case, participants: ParticipantClass) -> PrepositionalObject:
    """``prepositional_object("auf/for", Case.ACCUSATIVE, people.ANYBODY)``"""
    return PrepositionalObject(preposition(text), case, participants)
