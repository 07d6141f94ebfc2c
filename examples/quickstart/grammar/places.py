"""Places: where something happens and where somebody goes, with the prepositions both languages want."""

from dataclasses import dataclass

from .declension import THE, Noun
from .noun_phrases import NounPhrase
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


def prepositional(german, english, noun_phrase, case):
    """A preposition with its noun phrase; in + dem becomes im, which then stands for "in the"."""
    concept = new_concept()
    inner = noun_phrase.phrase(case)
    first = inner.german[0]
    contracted = CONTRACTIONS.get((german, first.text))
    if contracted:
        german_tokens = (Token(contracted, (concept, *first.concepts)), *inner.german[1:])
    else:
        german_tokens = tokens(german, concept) + inner.german
    return Phrase(german_tokens, tokens(english, concept) + inner.english)


@dataclass(frozen=True)
class Place:
    """A noun with its prepositions, written German/English: ``at`` for where, ``to`` for where to."""

    noun: Noun
    at: str
    to: str = ""
    adjectives: tuple = ()

    def where(self, dice):
        return self._phrase(dice, self.at, "dat")

    def where_to(self, dice):
        return self._phrase(dice, self.to, "dat" if self.to.startswith("zu/") else "acc")

    def _phrase(self, dice, preposition, case):
        described = self.adjectives and dice.chance(0.25)
        noun_phrase = NounPhrase(self.noun, "s", THE, dice.pick(self.adjectives) if described else None)
        return prepositional(*preposition.split("/"), noun_phrase, case)


@dataclass(frozen=True)
class FixedPlace:
    """A place whose expressions for where and where to are idioms, given as glosses."""

    at: str
    to: str

    def where(self, dice):
        return gloss(self.at)

    def where_to(self, dice):
        return gloss(self.to)


def place(word, at, to="", adjectives_text=""):
    return Place(NOUNS[word], at, to, adjectives(adjectives_text))


PLACES = {
    word: place(word, *prepositions)
    for word, *prepositions in (
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
PLACES["im See"] = place("See", "in/in")
PLACES["im Fluss"] = place("Fluss", "in/in")
PLACES["im Zug"] = FixedPlace("im/on_the Zug/train", "")
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


def places(text):
    """``places("Garten Park")``; an underscore stands for a space."""
    return tuple(PLACES[word.replace("_", " ")] for word in text.split())
