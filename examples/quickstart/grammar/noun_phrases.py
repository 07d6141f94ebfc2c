"""Participants: what can be the subject or an object of a clause, ready for any case.

A participant is a noun phrase, a personal pronoun, or a question word.
"""

from dataclasses import dataclass
from typing import ClassVar

from .declension import NO, Adjective, Determiner, Noun, Pronoun
from .features import Case, Gender, Number, Person
from .numerals import NumberWord
from .phrases import NOTHING, Concept, Phrase, new_concept, pair, tokens


@dataclass(frozen=True)
class NounPhrase:
    """A noun with a determiner, and maybe a number word, an adjective and a relative clause."""

    noun: Noun
    number: Number
    determiner: Determiner
    adjective: Adjective | None = None
    count: NumberWord | None = None
    relative: Phrase = NOTHING

    @property
    def person(self) -> Person:
        return Person.THIRD_SINGULAR if self.number is Number.SINGULAR else Person.THIRD_PLURAL

    @property
    def gender(self) -> Gender | None:
        return self.noun.gender

    @property
    def human(self) -> bool:
        return self.noun.human

    @property
    def definite(self) -> bool:
        return self.determiner.definite

    def phrase(self, case: Case, denial: Concept, english_subject: bool = False) -> Phrase:
        """The words in a German case.

        Args:
            denial: the concept of "not", which "kein" expresses.
            english_subject: whether it is the subject of the English clause, which changes pronouns only.
        """
        return (
            self._determiner(case, denial)
            + (pair(*self.count) if self.count else NOTHING)
            + self._adjective(case)
            + pair(self.noun.german(case, self.number), self.noun.in_english(self.number))
            + self.relative
        )

    def shows_case(self, case: Case) -> bool:
        """Whether the German words tell the case apart: a subject from an object, or an object from a subject."""
        other = Case.ACCUSATIVE if case is Case.NOMINATIVE else Case.NOMINATIVE
        return self._german(case) != self._german(other)

    def _german(self, case: Case) -> list[str]:
        return [token.text for token in self.phrase(case, new_concept()).german]

    def _determiner(self, case: Case, denial: Concept) -> Phrase:
        german = self.determiner.german(case, self.noun.gender_in(self.number))
        if not german:
            return NOTHING
        english = self.determiner.in_english(self.number)
        if self.determiner is NO and self.noun.is_mass:
            english = "any"
        following = self.adjective.english if self.adjective else self.noun.in_english(self.number)
        if english == "a" and following[0] in "aeiou":
            english = "an"
        concept = denial if self.determiner is NO else new_concept()
        return Phrase(tokens(german, concept), tokens(english, concept))

    def _adjective(self, case: Case) -> Phrase:
        if self.adjective is None:
            return NOTHING
        ending = self.determiner.adjectives[case][self.noun.gender_in(self.number)]
        return pair(self.adjective.stem + ending, self.adjective.english)


@dataclass(frozen=True)
class PronounPhrase:
    """A personal pronoun."""

    pronoun: Pronoun
    human: ClassVar[bool] = True
    definite: ClassVar[bool] = True

    @property
    def person(self) -> Person:
        return self.pronoun.person

    @property
    def gender(self) -> Gender | None:
        return self.pronoun.gender

    def phrase(self, case: Case, denial: Concept, english_subject: bool = False) -> Phrase:
        return pair(self.pronoun.forms[case], self.pronoun.english if english_subject else self.pronoun.english_object)

    def shows_case(self, case: Case) -> bool:
        return self.pronoun.forms[Case.NOMINATIVE] != self.pronoun.forms[Case.ACCUSATIVE]


@dataclass(frozen=True)
class QuestionWord:
    """wer, was, wen or wem, or a relative pronoun."""

    german: str
    english: str
    person: Person = Person.THIRD_SINGULAR
    gender: ClassVar[Gender | None] = None
    human: ClassVar[bool] = True
    definite: ClassVar[bool] = True

    def phrase(self, case: Case, denial: Concept, english_subject: bool = False) -> Phrase:
        return pair(self.german, self.english)

    def shows_case(self, case: Case) -> bool:
        return True


Participant = NounPhrase | PronounPhrase | QuestionWord


def could_be_same(one: Participant, other: Participant) -> bool:
    """Whether two participants could be the same person or thing, or would sound like it."""
    if isinstance(one, NounPhrase) and isinstance(other, NounPhrase):
        return one.noun.english == other.noun.english
    if isinstance(one, PronounPhrase) and isinstance(other, PronounPhrase):
        return one == other or (one.person.is_first and other.person.is_first)
    return False
