"""Verbs, with their forms in both languages."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from .declension import english_plural
from .features import Person

Auxiliary = Literal["haben", "sein"]
IRREGULAR_THIRD = {"have": "has", "be": "is", "go": "goes"}


@dataclass(frozen=True)
class EnglishVerb:
    """An English verb with the words that go with it.

    Args:
        third: the third person singular of the present.
        tail: what follows the verb ("look for").
        suffix: what follows its objects ("give … as a present").
        shifts: whether a pronoun stands before the tail ("picks him up").
        to_dative: whether the German dative follows the accusative, with "to" ("explains the rule to the child").
        ongoing: the -ing form of a verb whose present is progressive ("raining").
    """

    base: str
    third: str
    past: str
    tail: str = ""
    suffix: str = ""
    shifts: bool = False
    to_dative: bool = False
    ongoing: str = ""

    @property
    def is_be(self) -> bool:
        return self.base == "be"


def english_third(base: str) -> str:
    """Regular verbs take their -s as nouns do: washes, carries."""
    return IRREGULAR_THIRD.get(base) or english_plural(base)


def english_past(base: str) -> str:
    """The regular past."""
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    return base + "ed"


def english_verb(
    entry: str, suffix: str = "", shifts: bool = False, to_dative: bool = False, ongoing: str = ""
) -> EnglishVerb:
    """``english_verb("get/got up")``: the base form, the past if it is irregular, and the tail."""
    head, _, tail = entry.partition(" ")
    base, _, past = head.partition("/")
    return EnglishVerb(base, english_third(base), past or english_past(base), tail, suffix, shifts, to_dative, ongoing)


class Preterite(NamedTuple):
    """The simple past of a German verb."""

    singular: str
    plural: str

    def form(self, person: Person) -> str:
        return self.singular if person.is_singular else self.plural


@dataclass(frozen=True)
class Verb:
    """A German verb with its translation.

    Args:
        first, third: the first and third person singular of the present.
        particle: the separable prefix (an|rufen).
        auxiliary: the verb that forms its perfect.
        preterite: replaces the perfect where German prefers it (war, hatte).
        plural: the plural of the present where it differs from the infinitive (sind).
    """

    infinitive: str
    first: str
    third: str
    participle: str
    english: EnglishVerb
    particle: str = ""
    auxiliary: Auxiliary = "haben"
    preterite: Preterite | None = None
    plural: str = ""

    def present(self, person: Person) -> str:
        singular = {Person.FIRST_SINGULAR: self.first, Person.THIRD_SINGULAR: self.third}
        return singular.get(person, self.plural or self.infinitive)


def verb(
    german: str,
    third: str,
    participle: str,
    english: EnglishVerb | str,
    auxiliary: Auxiliary = "haben",
    preterite: Preterite | None = None,
    first: str = "",
    plural: str = "",
) -> Verb:
    """``verb("an|rufen", "ruft", "gerufen", "call")``: the participle comes without the particle.

    The first person singular is regular unless it is given.
    """
    particle, _, infinitive = german.rpartition("|")
    return Verb(
        infinitive,
        first or infinitive.removesuffix("n").removesuffix("e") + "e",
        third,
        particle + participle,
        english if isinstance(english, EnglishVerb) else english_verb(english),
        particle,
        auxiliary,
        preterite,
        plural,
    )
