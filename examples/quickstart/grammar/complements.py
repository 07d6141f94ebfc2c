"""What a verb needs besides its objects: where to, with whom, in which state."""

from dataclasses import dataclass

from .casts import Cast, NounClass
from .noun_phrases import same_party
from .numerals import number_word
from .phrases import Phrase, gloss, pair
from .places import places, prepositional


@dataclass(frozen=True)
class Saying:
    """A fixed expression: "Fußball/football"."""

    text: str

    def draw(self, dice, subject):
        return gloss(self.text)


@dataclass(frozen=True)
class Location:
    """A place to be at; the names are those of ``places``."""

    names: str

    def draw(self, dice, subject):
        return dice.pick(places(self.names)).where(dice)


@dataclass(frozen=True)
class Target:
    """A place to go to."""

    names: str

    def draw(self, dice, subject):
        return dice.pick(places(self.names)).where_to(dice)


@dataclass(frozen=True)
class Journey:
    """A means of transport with a target. German names the means first, English the target."""

    names: str
    means: tuple

    def draw(self, dice, subject):
        target = Target(self.names).draw(dice, subject)
        means = gloss(dice.pick(self.means))
        return Phrase(means.german + target.german, target.english + means.english)


@dataclass(frozen=True)
class Preposition:
    """A preposition that the verb governs, as in "auf/for" for warten, with its noun phrase."""

    gloss: str
    case: str
    nouns: Cast | NounClass

    def draw(self, dice, subject):
        german, english = self.gloss.split("/")
        while True:
            drawn = self.nouns.draw(dice, subject)
            if not same_party(drawn, subject):
                return prepositional(german, english, drawn, self.case)


@dataclass(frozen=True)
class Measure:
    """A number of something: "Jahre/years alt/old"; ``step`` is 100 for round hundreds."""

    low: int
    high: int
    text: str
    step: int = 1

    def draw(self, dice, subject):
        number = dice.deal(self, range(self.low, self.high + 1, self.step))
        return pair(*number_word(number)) + gloss(self.text)


def sayings(text):
    """``sayings("müde/tired krank/ill")``: each word is a saying of its own."""
    return tuple(Saying(entry) for entry in text.split())
