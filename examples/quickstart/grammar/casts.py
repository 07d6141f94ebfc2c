"""Casts: sets of people or things from which noun phrases are drawn."""

from dataclasses import dataclass

from .declension import BARE, HIS, MY, NAME, OUR, THE, THIS, A
from .noun_phrases import FIRST_PERSONS, NounPhrase, PronounPhrase, gender_of, is_human
from .numerals import number_word

DETERMINERS = {"the": THE, "this": THIS, "a": A, "bare": BARE, "name": NAME}
COUNTS = {"some": range(2, 6), "few": range(2, 13), "many": range(13, 100)}


@dataclass(frozen=True)
class NounClass:
    """Nouns that can stand in the same places, with the adjectives and determiners that suit them all.

    ``articles`` lists the determiners for the singular and, after a slash, for the plural, for example
    "the a my / the bare few"; what is listed twice is drawn twice as often. "my" is somebody's, "own" the
    subject's. ``described`` is the chance of an adjective.
    """

    nouns: tuple
    adjectives: tuple = ()
    articles: str = "the the a / the bare"
    described: float = 0.45

    def draw(self, dice, subject=None):
        """A noun phrase; ``subject`` decides whether "my" comes out as mein, unser or sein."""
        noun = dice.pick(self.nouns)
        number, article = dice.pick(self._articles(noun))
        adjective = dice.pick(self.adjectives) if self.adjectives and dice.chance(self.described) else None
        if article in COUNTS:
            return NounPhrase(noun, number, BARE, adjective, number_word(dice.deal(article, COUNTS[article])))
        return NounPhrase(noun, number, self._determiner(dice, article, subject), adjective)

    @property
    def classes(self):
        return (self,)

    def _determiner(self, dice, article, subject):
        if article == "my":
            return possessive(dice, subject)
        return own(subject) if article == "own" else DETERMINERS[article]

    def _articles(self, noun):
        """(number, determiner) for all that the noun can have."""
        singular, _, plural = self.articles.partition("/")
        options = [("s", word) for word in singular.split() if noun.singular]
        return options + [("p", word) for word in plural.split() if noun.plural]


@dataclass(frozen=True)
class PronounClass:
    pronouns: tuple
    nouns = ()

    @property
    def classes(self):
        return (self,)

    def draw(self, dice, subject=None):
        return PronounPhrase(dice.pick(self.pronouns))


@dataclass(frozen=True)
class Cast:
    """Several classes under one roof, each with its weight."""

    members: tuple

    @property
    def classes(self):
        return tuple(single for _, member in self.members for single in member.classes)

    @property
    def nouns(self):
        return tuple(noun for _, member in self.members for noun in member.nouns)

    def draw(self, dice, subject=None):
        return dice.pick_weighted(self.members).draw(dice, subject)


@dataclass(frozen=True)
class Single:
    """A cast of which only one person at a time comes on."""

    cast: Cast

    @property
    def nouns(self):
        return self.cast.nouns

    @property
    def classes(self):
        return self.cast.classes

    def draw(self, dice, subject=None):
        while True:
            drawn = self.cast.draw(dice, subject)
            if drawn.person.endswith("s"):
                return drawn


def possessive(dice, subject):
    """mein or unser, or sein where it can only mean the subject's own."""
    if subject is None:
        return dice.pick((MY, OUR))
    if subject.person in FIRST_PERSONS:
        return own(subject)
    return dice.pick((own(subject), own(subject), MY, OUR)) if own(subject) is HIS else dice.pick((MY, OUR))


def own(subject):
    """The possessive of the subject; just "the" for women and groups, since "ihr" is her and their."""
    if subject.person in FIRST_PERSONS:
        return MY if subject.person == "1s" else OUR
    masculine = subject.person == "3s" and gender_of(subject) == "m" and is_human(subject)
    return HIS if masculine else THE
