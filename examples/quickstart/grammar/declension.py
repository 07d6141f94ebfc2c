"""Nouns, adjectives, determiners and pronouns, with their forms in both languages."""

from dataclasses import dataclass

# The columns of every table of endings: masculine, feminine, neuter, plural.
COLUMNS = "mfnp"
GENDER_OF_ARTICLE = {"der": "m", "die": "f", "das": "n"}
WEAK_CASES = ("acc", "dat")


def endings(nominative, accusative, dative):
    """A table case -> column -> ending; "-" stands for no ending."""
    rows = {"nom": nominative, "acc": accusative, "dat": dative}
    return {case: dict(zip(COLUMNS, row.split(), strict=True)) for case, row in rows.items()}


def attach(stem, ending):
    return stem if ending == "-" else stem + ending


# Adjectives after der/dieser, after ein/kein/mein, and with no determiner before them.
AFTER_THE = endings("e e e en", "en e e en", "en en en en")
AFTER_A = endings("er e es en", "en e es en", "en en en en")
ALONE = endings("er e es e", "en e es e", "em er em en")


@dataclass(frozen=True)
class Determiner:
    stem: str
    forms: dict
    adjectives: dict
    english: str
    english_plural: str
    definite: bool = True

    def german(self, case, column):
        return attach(self.stem, self.forms[case][column])

    def in_english(self, number):
        return self.english if number == "s" else self.english_plural


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
    """A noun; an empty plural means that the corpus uses none.

    ``weak`` is the form of all singular cases but the nominative (der Junge, den Jungen).
    """

    singular: str
    gender: str
    plural: str
    english: str
    english_plural: str
    weak: str = ""
    human: bool = False

    @property
    def is_mass(self):
        return not self.english_plural

    def column(self, number):
        return self.gender if number == "s" else "p"

    def german(self, case, number):
        if number == "s":
            return self.weak if self.weak and case in WEAK_CASES else self.singular
        dative_n = case == "dat" and not self.plural.endswith(("n", "s"))
        return self.plural + "n" if dative_n else self.plural

    def in_english(self, number):
        return self.english if number == "s" else self.english_plural


def english_plural(word):
    if word.endswith(("s", "sh", "ch", "x")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def compounds(modifiers, head, plural=True):
    """``compounds("Winter/winter Regen/rain", JACKET)``: the head inflects, the modifier is put before it."""
    for modifier in modifiers.split():
        german, english = modifier.split("/")
        german_forms = [form and german + form.lower() for form in (head.singular, head.plural, head.weak)]
        english_forms = [form and f"{english} {form}" for form in (head.english, head.english_plural)]
        singular, glued_plural, weak = german_forms
        yield Noun(singular, head.gender, glued_plural if plural else "", *english_forms, weak, head.human)


@dataclass(frozen=True)
class Adjective:
    """An adjective; ``stem`` takes the endings: teuer, but der teure Mantel."""

    german: str
    english: str
    stem: str


@dataclass(frozen=True)
class Pronoun:
    """A personal pronoun. ``person`` selects verb forms: 1s, 3s, 1p or 3p."""

    forms: dict
    english: str
    english_object: str
    person: str
    gender: str = ""


def pronoun(german, english, person, gender=""):
    forms = dict(zip(("nom", "acc", "dat"), german.split(), strict=True))
    return Pronoun(forms, *english.split(), person, gender)


I = pronoun("ich mich mir", "I me", "1s")  # noqa: E741 - that is its name
WE = pronoun("wir uns uns", "we us", "1p")
HE = pronoun("er ihn ihm", "he him", "3s", "m")
SHE = pronoun("sie sie ihr", "she her", "3s", "f")
IT = pronoun("es es ihm", "it it", "3s", "n")
THEY = pronoun("sie sie ihnen", "they them", "3p")
