"""Classes of nouns: sets of people or things from which a participant is drawn."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from .declension import BARE, HIS, MY, NAME, OUR, THE, THIS, A, Adjective, Determiner, Noun, Pronoun
from .dice import Dice
from .features import Gender, Number, Person
from .noun_phrases import NounPhrase, Participant, PronounPhrase
from .numerals import number_word
from .vocabulary import adjectives, nouns


class Article(StrEnum):
    """What can stand before a noun: a determiner, or a number word."""

    THE = "the"
    THIS = "this"
    A = "a"
    BARE = "bare"
    NAME = "name"
    MY = "my"
    """A possessive: mein, unser, or that of the subject."""
    OWN = "own"
    """The possessive of the subject."""
    SOME = "some"
    """A number from 2 to 5."""
    FEW = "few"
    """A number from 2 to 12."""
    MANY = "many"
    """A number from 13 to 99."""


DETERMINERS = {
    Article.THE: THE,
    Article.THIS: THIS,
    Article.A: A,
    Article.BARE: BARE,
    Article.NAME: NAME,
}
COUNTS = {Article.SOME: range(2, 6), Article.FEW: range(2, 13), Article.MANY: range(13, 100)}


class Form(NamedTuple):
    """A number with what can stand before the noun in it."""

    number: Number
    article: Article


@dataclass(frozen=True)
class NounClass:
    """Nouns that can stand in the same places, with the adjectives and forms that suit them all.

    Args:
        forms: each is as likely as the next; a form that is listed twice is twice as likely.
        described: the probability of an adjective.
    """

    nouns: tuple[Noun, ...]
    adjectives: tuple[Adjective, ...]
    forms: tuple[Form, ...]
    described: float

    @property
    def classes(self) -> tuple["NounClass | PronounClass", ...]:
        return (self,)

    def draw(self, dice: Dice, subject: Participant | None = None) -> NounPhrase:
        """A noun phrase. The subject decides between mein, unser and sein; it is None for the subject itself."""
        noun = dice.pick(self.nouns)
        number, article = dice.pick([form for form in self.forms if noun.has(form.number)])
        adjective = dice.pick(self.adjectives) if self.adjectives and dice.chance(self.described) else None
        if article in COUNTS:
            count = number_word(dice.deal(article, COUNTS[article]))
            return NounPhrase(noun, number, BARE, adjective, count)
        return NounPhrase(noun, number, draw_determiner(dice, article, subject), adjective)


@dataclass(frozen=True)
class PronounClass:
    """Personal pronouns."""

    pronouns: tuple[Pronoun, ...]

    @property
    def nouns(self) -> tuple[Noun, ...]:
        return ()

    @property
    def classes(self) -> tuple["NounClass | PronounClass", ...]:
        return (self,)

    def draw(self, dice: Dice, subject: Participant | None = None) -> PronounPhrase:
        return PronounPhrase(dice.pick(self.pronouns))


@dataclass(frozen=True)
class Mixture:
    """Several classes, each with its weight."""

    members: tuple[tuple[int, "ParticipantClass"], ...]

    @property
    def nouns(self) -> tuple[Noun, ...]:
        return tuple(noun for _, member in self.members for noun in member.nouns)

    @property
    def classes(self) -> tuple[NounClass | PronounClass, ...]:
        return tuple(single for _, member in self.members for single in member.classes)

    def draw(self, dice: Dice, subject: Participant | None = None) -> Participant:
        return dice.pick_weighted(self.members).draw(dice, subject)


@dataclass(frozen=True)
class SingularOnly:
    """A mixture of which only the singular is drawn."""

    mixture: Mixture

    @property
    def nouns(self) -> tuple[Noun, ...]:
        return self.mixture.nouns

    @property
    def classes(self) -> tuple[NounClass | PronounClass, ...]:
        return self.mixture.classes

    def draw(self, dice: Dice, subject: Participant | None = None) -> Participant:
        while True:
            drawn = self.mixture.draw(dice, subject)
            if drawn.person.is_singular:
                return drawn


ParticipantClass = NounClass | PronounClass | Mixture | SingularOnly


def noun_class(nouns_text: str, adjectives_text: str, articles: str, described: float = 0.45) -> NounClass:
    """``noun_class("Apfel Ei", "frisch klein", "the a a / the few")``.

    ``articles`` lists what stands before the singular and, after the slash, before the plural.
    """
    singular, _, plural = articles.partition("/")
    forms = [Form(Number.SINGULAR, Article(word)) for word in singular.split()]
    forms += [Form(Number.PLURAL, Article(word)) for word in plural.split()]
    return NounClass(nouns(nouns_text), adjectives(adjectives_text), tuple(forms), described)


def draw_determiner(dice: Dice, article: Article, subject: Participant | None) -> Determiner:
    if article is Article.MY:
        return draw_possessive(dice, subject)
    if article is Article.OWN and subject is not None:
        return own(subject)
    return DETERMINERS[article]


def draw_possessive(dice: Dice, subject: Participant | None) -> Determiner:
    """mein or unser; also sein, where it can only mean the subject."""
    if subject is None:
        return dice.pick((MY, OUR))
    possessive = own(subject)
    if subject.person.is_first:
        return possessive
    return dice.pick((possessive, possessive, MY, OUR)) if possessive is HIS else dice.pick((MY, OUR))


def own(subject: Participant) -> Determiner:
    """The possessive of the subject. Women and groups get "the", because "ihr" means both her and their."""
    if subject.person is Person.FIRST_SINGULAR:
        return MY
    if subject.person is Person.FIRST_PLURAL:
        return OUR
    masculine = subject.person.is_singular and subject.gender is Gender.MASCULINE and subject.human
    return HIS if masculine else THE
