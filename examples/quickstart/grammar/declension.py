"""Nouns, adjectives, determiners and pronouns, with their forms in both languages."""

from collections.abc import Iterator
from dataclasses import dataclass

from .features import Case, Gender, Number, Person

GENDER_OF_ARTICLE = {"der": Gender.MASCULINE, "die": Gender.FEMININE, "das": Gender.NEUTER}
Endings = dict[Case, dict[Gender, str]]


def endings(nominative: str, accusative: str, dative: str) -> Endings:
    """A table of endings. Each row has masculine, feminine, neuter and plural; "-" stands for no ending."""
    rows = zip(Case, (nominative, accusative, dative), strict=True)
    return {case: dict(zip(Gender, row.split(), strict=True)) for case, row in rows}


def attach(stem: str, ending: str) -> str:
    return stem if ending == "-" else stem + ending


AFTER_THE = endings("e e e en", "en e e en", "en en en en")
AFTER_A = endings("er e es en", "en e es en", "en en en en")
ALONE = endings("er e es e", "en e es e", "em er em en")
"""The endings of adjectives after der and dieser, after ein, kein and mein, and without a determiner."""


@dataclass(frozen=True)
class Determiner:
    """An article, a possessive, or nothing.

    Args:
        forms: the endings that the stem takes.
        adjectives: the endings of an adjective after it.
    """

    stem: str
    forms: Endings
    adjectives: Endings
    english: str
    english_plural: str
    definite: bool = True

    def german(self, case: Case, gender: Gender) -> str:
        return attach(self.stem, self.forms[case][gender])

    def in_english(self, number: Number) -> str:
        return self.english if number is Number.SINGULAR else self.english_plural


EIN_FORMS = endings("- e - e", "en e - e", "em er em en")
THE = Determiner("d", endings("er ie as ie", "en ie as ie", "em er em en"), AFTER_THE, "the", "the")
THIS = Determiner("dies", endings("er e es e", "en e es e", "em er em en"), AFTER_THE, "this", "these")
A = Determiner("ein", EIN_FORMS, AFTER_A, "a", "", definite=False)
NO = Determiner("kein", EIN_FORMS, AFTER_A, "a", "any", definite=False)
MY = Determiner("mein", EIN_FORMS, AFTER_A, "my", "my")
OUR = Determiner("unser", EIN_FORMS, AFTER_A, "our", "our")
HIS = Determiner("sein", EIN_FORMS, AFTER_A, "his", "his")
NO_FORMS = endings("- - - -", "- - - -", "- - - -")
BARE = Determiner("", NO_FORMS, ALONE, "", "", definite=False)
NAME = Determiner("", NO_FORMS, ALONE, "", "")


@dataclass(frozen=True)
class Noun:
    """A noun with its forms. The corpus does not use forms that are empty here.

    Args:
        weak: the accusative and dative singular where they differ from the nominative (der Junge, den Jungen).
        human: whether a pronoun asks for it by "who" rather than "what".
    """

    singular: str
    gender: Gender
    plural: str
    english: str
    english_plural: str
    weak: str = ""
    human: bool = False

    @property
    def is_mass(self) -> bool:
        return not self.english_plural

    def has(self, number: Number) -> bool:
        return bool(self.singular if number is Number.SINGULAR else self.plural)

    def gender_in(self, number: Number) -> Gender:
        """The column of the tables of endings that its determiner and adjective agree with."""
        return self.gender if number is Number.SINGULAR else Gender.PLURAL

    def german(self, case: Case, number: Number) -> str:
        if number is Number.SINGULAR:
            return self.weak if self.weak and case is not Case.NOMINATIVE else self.singular
        takes_n = case is Case.DATIVE and not self.plural.endswith(("n", "s"))
        return self.plural + "n" if takes_n else self.plural

    def in_english(self, number: Number) -> str:
        return self.english if number is Number.SINGULAR else self.english_plural


def english_plural(word: str) -> str:
    """The regular plural."""
    if word.endswith(("s", "sh", "ch", "x")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def compounds(modifiers: str, head: Noun, plural: bool = True) -> Iterator[Noun]:
    """The head with each of the modifiers before it: ``compounds("Winter/winter Regen/rain", JACKET)``.

    Only the head inflects. Without ``plural`` the compounds have no plural.
    """
    for modifier in modifiers.split():
        german, english = modifier.split("/")
        singular, german_plural, weak = (
            form and german + form.lower() for form in (head.singular, head.plural if plural else "", head.weak)
        )
        one, several = (form and f"{english} {form}" for form in (head.english, head.english_plural))
        yield Noun(singular, head.gender, german_plural, one, several, weak, head.human)


@dataclass(frozen=True)
class Adjective:
    """An adjective. ``stem`` takes the endings: teuer, but der teure Mantel."""

    german: str
    english: str
    stem: str


@dataclass(frozen=True)
class Pronoun:
    """A personal pronoun, with its English subject and object forms."""

    forms: dict[Case, str]
    english: str
    english_object: str
    person: Person
    gender: Gender | None = None


def pronoun(german: str, english: str, person: Person, gender: Gender | None = None) -> Pronoun:
    subject, other = english.split()
    return Pronoun(dict(zip(Case, german.split(), strict=True)), subject, other, person, gender)


I = pronoun("ich mich mir", "I me", Person.FIRST_SINGULAR)  # noqa: E741 - that is its name
WE = pronoun("wir uns uns", "we us", Person.FIRST_PLURAL)
HE = pronoun("er ihn ihm", "he him", Person.THIRD_SINGULAR, Gender.MASCULINE)
SHE = pronoun("sie sie ihr", "she her", Person.THIRD_SINGULAR, Gender.FEMININE)
IT = pronoun("es es ihm", "it it", Person.THIRD_SINGULAR, Gender.NEUTER)
THEY = pronoun("sie sie ihnen", "they them", Person.THIRD_PLURAL)
