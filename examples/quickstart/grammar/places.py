"""Places: where something happens and where somebody goes, with the prepositions of both languages."""

from dataclasses import dataclass
from typing import NamedTuple

from .declension import THE, Adjective, Noun
from .dice import Dice
from .features import Case, Number
from .noun_phrases import NounPhrase, Participant
from .phrases import Phrase, Token, gloss, new_concept, tokens
from .vocabulary import NOUNS, adjectives

CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("an", "das"): "ans",
    ("bei", "dem"): "beim",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
}


class Preposition(NamedTuple):
    german: str
    english: str


def preposition(text: str) -> Preposition:
    """``preposition("in/into")``"""
    german, english = text.split("/")
    return Preposition(german, english)


def prepositional(before: Preposition, participant: Participant, case: Case) -> Phrase:
    """A preposition with its participant. German "in dem" becomes "im", which is linked to both "in" and "the"."""
    concept = new_concept()
    inner = participant.phrase(case, new_concept())
    first = inner.german[0]
    contracted = CONTRACTIONS.get((before.german, first.text))
    if contracted:
        german = (Token(contracted, (concept, *first.concepts)), *inner.german[1:])
    else:
        german = tokens(before.german, concept) + inner.german
    return Phrase(german, tokens(before.english, concept) + inner.english)


@dataclass(frozen=True)
class Place:
    """A noun with its prepositions.

    Args:
        at: the preposition of "where", which takes the dative.
        to: the preposition of "where to", which takes the dative if it is "zu", else the accusative.
    """

    noun: Noun
    at: Preposition
    to: Preposition
    adjectives: tuple[Adjective, ...]

    def where(self, dice: Dice) -> Phrase:
        return self._phrase(dice, self.at, Case.DATIVE)

    def where_to(self, dice: Dice) -> Phrase:
        return self._phrase(dice, self.to, Case.DATIVE if self.to.german == "zu" else Case.ACCUSATIVE)

    def _phrase(self, dice: Dice, before: Preposition, case: Case) -> Phrase:
        described = self.adjectives and dice.chance(0.25)
        adjective = dice.pick(self.adjectives) if described else None
        return prepositional(before, NounPhrase(self.noun, Number.SINGULAR, THE, adjective), case)


@dataclass(frozen=True)
class FixedPlace:
    """A place with idioms for "where" and "where to", given as glosses."""

    at: str
    to: str

    def where(self, dice: Dice) -> Phrase:
        return gloss(self.at)

    def where_to(self, dice: Dice) -> Phrase:
        return gloss(self.to)


AnyPlace = Place | FixedPlace


def place(word: str, at: str, to: str, adjectives_text: str = "") -> Place:
    return Place(NOUNS[word], preposition(at), preposition(to), adjectives(adjectives_text))


PLACES: dict[str, AnyPlace] = {
    word: place(word, *more)
    for word, *more in (
        ("Garten", "in/in", "in/into", "alt klein groß schön"),
        ("Küche", "in/in", "in/into", "klein groß"),
        ("Wohnzimmer", "in/in", "in/into", "klein groß"),
        ("Keller", "in/in", "in/into"),
        ("Haus", "in/in", "in/into", "alt neu klein groß"),
        ("Garage", "in/in", "in/into"),
        ("Park", "in/in", "in/to", "klein groß schön"),
        ("Stadtpark", "in/in", "in/to"),
        ("Wald", "in/in", "in/into"),
        ("Stadt", "in/in", "in/to"),
        ("Dorf", "in/in", "in/to", "alt klein schön"),
        ("Markt", "auf/at", "auf/to"),
        ("Wochenmarkt", "auf/at", "auf/to"),
        ("Fischmarkt", "auf/at", "auf/to"),
        ("Blumenmarkt", "auf/at", "auf/to"),
        ("Supermarkt", "in/in", "in/to", "neu groß"),
        ("Bäckerei", "in/at", "in/to", "neu klein"),
        ("Restaurant", "in/in", "in/to", "neu klein gut"),
        ("Café", "in/in", "in/to", "neu klein"),
        ("Hotel", "in/in", "in/to", "alt neu klein"),
        ("Krankenhaus", "in/at", "in/to", "neu"),
        ("Büro", "in/in", "in/to", "neu klein"),
        ("Bibliothek", "in/in", "in/to", "neu alt"),
        ("Stadtbibliothek", "in/in", "in/to"),
        ("Museum", "in/in", "in/to"),
        ("Stadtmuseum", "in/in", "in/to"),
        ("Bahnhof", "an/at", "zu/to", "alt neu"),
        ("Haltestelle", "an/at", "zu/to"),
        ("See", "an/by", "zu/to", "klein groß"),
        ("Fluss", "an/by", "zu/to"),
        ("Fest", "auf/at", "zu/to"),
        ("Arzt", "bei/at", "zu/to"),
        ("Buchhandlung", "in/in", "in/to", "neu klein"),
        ("Blumenladen", "in/in", "in/to", "neu klein"),
        ("Schuhladen", "in/in", "in/to", "neu"),
        ("Fahrradladen", "in/in", "in/to", "neu"),
        ("Fahrradwerkstatt", "in/in", "in/to", "alt neu"),
        ("Autowerkstatt", "in/in", "in/to", "alt neu"),
        ("Musikschule", "in/at", "in/to", "neu"),
        ("Tanzschule", "in/at", "in/to", "neu"),
    )
}
PLACES["im See"] = place("See", "in/in", "in/into")
PLACES["im Fluss"] = place("Fluss", "in/in", "in/into")
PLACES["im Zug"] = FixedPlace("im/on_the Zug/train", "in_den/onto_the Zug/train")
PLACES["zu Hause"] = FixedPlace("zu/at Hause/home", "nach_Hause/home")
PLACES["Schule"] = FixedPlace("in_der/at Schule/school", "in_die/to Schule/school")
PLACES["Kirche"] = FixedPlace("in_der/in Kirche/church", "in_die/to Kirche/church")
CITIES = (
    "Berlin/Berlin",
    "Hamburg/Hamburg",
    "München/Munich",
    "Köln/Cologne",
    "Wien/Vienna",
    "Leipzig/Leipzig",
)
for city in CITIES:
    PLACES[city.partition("/")[0]] = FixedPlace(f"in/in {city}", f"nach/to {city}")


def places(text: str) -> tuple[AnyPlace, ...]:
    """``places("Garten im_Zug")``: an underscore stands for a space."""
    return tuple(PLACES[word.replace("_", " ")] for word in text.split())
