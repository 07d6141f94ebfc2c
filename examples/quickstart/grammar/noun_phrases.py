"""Noun phrases, pronouns and question words: all that can be a subject or an object, ready for any case."""

from dataclasses import dataclass

from .declension import NO, Adjective, Determiner, Noun, Pronoun
from .phrases import Phrase, new_concept, pair, tokens

FIRST_PERSONS = ("1s", "1p")


@dataclass(frozen=True)
class NounPhrase:
    """A noun with what stands before it, and a relative clause; ``count`` is a pair of number words."""

    noun: Noun
    number: str
    determiner: Determiner
    adjective: Adjective | None = None
    count: tuple = ()
    relative: Phrase = Phrase()  # noqa: RUF009  (a Phrase never changes)

    @property
    def person(self):
        return "3" + self.number

    @property
    def definite(self):
        return self.determiner.definite

    def phrase(self, case, english_case="", negation=None):
        """The words in a German case. ``negation`` is the concept that "kein" shares with "not".

        ``english_case`` is "nom" for the subject of the English clause, which matters to pronouns only.
        """
        before = self._determiner(case, negation) + self._count() + self._adjective(case)
        return before + self._noun(case) + self.relative

    def shows_case(self, case):
        """Whether the German words tell this case apart: subject from object, or object from subject."""
        other = "acc" if case == "nom" else "nom"
        forms = [[token.text for token in self.phrase(which).german] for which in (case, other)]
        return forms[0] != forms[1]

    def _determiner(self, case, negation):
        german = self.determiner.german(case, self.noun.column(self.number))
        if not german:
            return Phrase()
        english = self.determiner.in_english(self.number)
        if self.determiner is NO and self.noun.is_mass:
            english = "any"
        following = self.adjective.english if self.adjective else self.noun.in_english(self.number)
        if english == "a" and following[0] in "aeiou":
            english = "an"
        concept = negation if self.determiner is NO else new_concept()
        return Phrase(tokens(german, concept), tokens(english, concept))

    def _count(self):
        return pair(*self.count) if self.count else Phrase()

    def _adjective(self, case):
        if self.adjective is None:
            return Phrase()
        ending = self.determiner.adjectives[case][self.noun.column(self.number)]
        return pair(self.adjective.stem + ending, self.adjective.english)

    def _noun(self, case):
        return pair(self.noun.german(case, self.number), self.noun.in_english(self.number))


@dataclass(frozen=True)
class PronounPhrase:
    """A personal pronoun in the place of a noun phrase."""

    pronoun: Pronoun
    definite: bool = True

    @property
    def person(self):
        return self.pronoun.person

    def phrase(self, case, english_case="", negation=None):
        english = self.pronoun.english if english_case == "nom" else self.pronoun.english_object
        return pair(self.pronoun.forms[case], english)

    def shows_case(self, case):
        return self.pronoun.forms["nom"] != self.pronoun.forms["acc"]


@dataclass(frozen=True)
class QuestionWord:
    """wer, was, wen, wem, or a relative pronoun, in the place of a noun phrase."""

    german: str
    english: str
    person: str = "3s"
    definite: bool = True

    def phrase(self, case, english_case="", negation=None):
        return pair(self.german, self.english)

    def shows_case(self, case):
        return True


def is_human(phrase):
    return not isinstance(phrase, NounPhrase) or phrase.noun.human


def gender_of(phrase):
    """The gender by which a pronoun refers to a noun phrase or pronoun; "" for a question word."""
    if isinstance(phrase, NounPhrase):
        return phrase.noun.gender
    return phrase.pronoun.gender if isinstance(phrase, PronounPhrase) else ""


def same_party(one, other):
    """Whether two phrases could mean the same person, or would sound like it."""
    if isinstance(one, NounPhrase) and isinstance(other, NounPhrase):
        return one.noun.english == other.noun.english
    if isinstance(one, PronounPhrase) and isinstance(other, PronounPhrase):
        both = (one.person, other.person)
        return one == other or all(person in FIRST_PERSONS for person in both)
    return False
