"""Pieces of a sentence in both languages at once, with the links between their words.

Each token carries the concepts that it expresses. Two tokens are linked if they share a concept, and nothing else
decides about links: code that moves a token to another place cannot break the word alignment.
"""

import itertools
from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple, NewType

Concept = NewType("Concept", int)
_numbers = itertools.count()


def new_concept() -> Concept:
    """A concept that no other token expresses yet."""
    return Concept(next(_numbers))


@dataclass(frozen=True)
class Token:
    text: str
    concepts: tuple[Concept, ...] = ()


Tokens = tuple[Token, ...]


class Link(NamedTuple):
    """A German word and the English word that it is aligned to, both counted from 0."""

    german: int
    english: int


@dataclass(frozen=True)
class Phrase:
    """The same thing said in German and in English."""

    german: Tokens = ()
    english: Tokens = ()

    def __add__(self, other: "Phrase") -> "Phrase":
        return Phrase(self.german + other.german, self.english + other.english)

    def links(self) -> tuple[Link, ...]:
        """The word alignment, sorted."""
        places: dict[Concept, list[int]] = defaultdict(list)
        for j, token in enumerate(self.english):
            for concept in token.concepts:
                places[concept].append(j)
        links: set[Link] = set()
        for i, token in enumerate(self.german):
            links.update(Link(i, j) for concept in token.concepts for j in places[concept])
        return tuple(sorted(links))


NOTHING = Phrase()
COMMA = Phrase(german=(Token(","),))
"""The comma before a subordinate clause, which English does not write."""


def tokens(text: str, *concepts: Concept) -> Tokens:
    """The words of a text, each with the same concepts."""
    return tuple(Token(word, concepts) for word in text.split())


def pair(german: str, english: str) -> Phrase:
    """Words that translate each other only as a whole: each German word is linked to each English one."""
    concept = new_concept()
    return Phrase(tokens(german, concept), tokens(english, concept))


def gloss(text: str) -> Phrase:
    """A phrase with the same word order in both languages: ``gloss("im/in_the Sommer/summer")``."""
    phrase = NOTHING
    for entry in text.split():
        german, english = entry.replace("_", " ").split("/")
        phrase += pair(german, english)
    return phrase
