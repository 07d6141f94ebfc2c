"""Verbs, with their forms in both languages."""

from dataclasses import dataclass

from .declension import english_plural


@dataclass(frozen=True)
class EnglishVerb:
    """An English verb with the words that go with it.

    ``tail`` follows the verb ("look for"), ``suffix`` its objects ("give ... as a present"). ``shifts`` says
    that a pronoun goes before the tail ("picks him up"). ``to_dative`` puts the German dative behind the
    accusative ("explains the rule to the child"). ``ongoing`` is the -ing form of verbs whose present is
    progressive.
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
    def is_be(self):
        return self.base == "be"


def english_third(base):
    """Regular verbs take their -s as nouns do: washes, carries."""
    return {"have": "has", "be": "is", "go": "goes"}.get(base) or english_plural(base)


def english_past(base):
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    return base + "ed"


def english_verb(entry, **more):
    """``english_verb("get/got up")``: base form, past form unless it is regular, and the tail."""
    head, _, tail = entry.partition(" ")
    base, _, past = head.partition("/")
    return EnglishVerb(base, english_third(base), past or english_past(base), tail, **more)


@dataclass(frozen=True)
class Verb:
    """A German verb with its translation. ``particle`` is the separable prefix (an|rufen).

    ``preterite`` (singular, plural) replaces the perfect where German prefers it: war, hatte.
    """

    infinitive: str
    first: str
    third: str
    participle: str
    english: EnglishVerb
    particle: str = ""
    helper: str = "haben"
    preterite: tuple = ()
    plural: str = ""

    def present(self, person):
        return {"1s": self.first, "3s": self.third}.get(person, self.plural or self.infinitive)

    def simple_past(self, person):
        return self.preterite[0 if person.endswith("s") else 1]


def verb(german, third, participle, english, helper="haben", preterite=(), first="", plural="", **english_extras):
    """``verb("an|rufen", "ruft", "gerufen", "call")``: the participle comes without the particle."""
    particle, _, infinitive = german.rpartition("|")
    return Verb(
        infinitive,
        first or infinitive.removesuffix("n").removesuffix("e") + "e",
        third,
        particle + participle,
        english_verb(english, **english_extras),
        particle,
        helper,
        preterite,
        plural,
    )
