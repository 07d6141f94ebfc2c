"""The grammatical features of words: case, number, gender and person."""

from enum import StrEnum


class Case(StrEnum):
    NOMINATIVE = "nominative"
    ACCUSATIVE = "accusative"
    DATIVE = "dative"


class Number(StrEnum):
    SINGULAR = "singular"
    PLURAL = "plural"


class Gender(StrEnum):
    """The columns of a table of German endings. The plural is a column of its own, the same for all genders."""

    MASCULINE = "masculine"
    FEMININE = "feminine"
    NEUTER = "neuter"
    PLURAL = "plural"


class Person(StrEnum):
    """What a finite verb agrees with. The corpus addresses nobody, so it has no second person."""

    FIRST_SINGULAR = "I"
    THIRD_SINGULAR = "he, she, it"
    FIRST_PLURAL = "we"
    THIRD_PLURAL = "they"

    @property
    def is_first(self) -> bool:
        return self in (Person.FIRST_SINGULAR, Person.FIRST_PLURAL)

    @property
    def is_singular(self) -> bool:
        return self in (Person.FIRST_SINGULAR, Person.THIRD_SINGULAR)
