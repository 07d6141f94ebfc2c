"""Pieces of a sentence in both languages at once, with the links between their words.

A token carries the numbers of the concepts it expresses. Two tokens are aligned if they share a concept;
nothing else decides about links, so whatever moves a token about cannot break an alignment.
"""

import itertools
from collections import defaultdict
from dataclasses import dataclass

new_concept = itertools.count().__next__


@dataclass(frozen=True)
class Token:
    text: str
    concepts: tuple = ()


@dataclass(frozen=True)
class Phrase:
    """The same thing said in German and in English."""

    german: tuple = ()
    english: tuple = ()

    def __add__(self, other):
        return Phrase(self.german + other.german, self.english + other.english)

    def alignment(self):
        """The links (German index, English index), sorted."""
        places = defaultdict(set)
        for j, token in enumerate(self.english):
            for concept in token.concepts:
                places[concept].add(j)
        links = set()
        for i, token in enumerate(self.german):
            links.update((i, j) for concept in token.concepts for j in places[concept])
        return sorted(links)


def tokens(text, *concepts):
    return tuple(Token(word, concepts) for word in text.split())


def pair(german, english):
    """Words that only as a whole mean the same: each is linked with each."""
    concept = new_concept()
    return Phrase(tokens(german, concept), tokens(english, concept))


def gloss(text):
    """``gloss("im/in_the Sommer/summer")``: word by word, in the same order in both languages."""
    phrase = Phrase()
    for entry in text.split():
        phrase += pair(*entry.replace("_", " ").split("/"))
    return phrase


# The comma that only German puts before a subordinate clause.
COMMA = Phrase(german=(Token(","),))
