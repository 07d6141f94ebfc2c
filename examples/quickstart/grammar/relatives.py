"""Relative clauses, and the noun phrases that carry them."""

from dataclasses import replace
from functools import cache

from .casting import draw_clause, draw_mood, is_common_at_the_end
from .clauses import NOTHING, SUBORDINATE, render
from .declension import THE, endings
from .noun_phrases import NounPhrase, QuestionWord
from .phrases import COMMA
from .repertoire import ALL
from .verbs import VERBS

RELATIVE_PRONOUNS = endings("der die das die", "den die das die", "dem der dem denen")
CASES = {"subject": "nom", "accusative": "acc", "dative": "dat"}
ROLES = ((50, "subject"), (30, "accusative"), (20, "dative"))


def draw_described(dice, nouns):
    """A noun phrase of the class, the relative clause that says which one is meant, and the verb of that."""
    phrase = nouns.draw(dice)
    phrase = NounPhrase(phrase.noun, phrase.number, THE, phrase.adjective)
    relative, verb = relative_clause(dice, phrase)
    return phrase, relative, verb


def relative_clause(dice, phrase):
    """The clause with its relative pronoun and the comma before it, which only German has."""
    roles = [(weight, role) for weight, role in ROLES if scenes_for(phrase.noun, role)]
    role = dice.pick_weighted(roles)
    column = phrase.noun.column(phrase.number)
    german = RELATIVE_PRONOUNS[CASES[role]][column]
    while True:
        scene = dice.pick(dice.pick(scenes_for(phrase.noun, role)))
        mood = draw_mood(dice, scene, ("present", "past"))
        pronoun = QuestionWord(german, english_pronoun(scene, role, phrase.noun), phrase.person)
        clause = draw_clause(dice, scene, mood, negation=0.08, adverbials=0.5, **{role: pronoun})
        if not phrase.noun.human:
            clause = replace(clause, frequency=NOTHING)
        repeats = mentions(clause, phrase.noun) or clause.negation == "kein"
        if is_clear(clause, role, column) and is_common_at_the_end(clause) and not repeats:
            break
    return COMMA + render(clause, SUBORDINATE, asked=role), scene.verb


def is_clear(clause, role, column):
    """Whether "die" is the subject or the object: "die Frau, die das Kind sieht" sees the child."""
    return role != "accusative" or column == "m" or clause.subject.shows_case("nom")


def mentions(clause, noun):
    return any(party.noun.english == noun.english for party in clause.parties if isinstance(party, NounPhrase))


def english_pronoun(scene, role, noun):
    if not noun.human:
        return "that"
    if role == ("dative" if scene.experiencer else "subject"):
        return "who"
    return "to whom" if role == "dative" and scene.accusative else "whom"


@cache
def scenes_for(noun, role):
    """The scenes in which the noun can play the role, grouped by verb."""
    groups = []
    for group in ALL:
        fitting = tuple(scene for scene in group if plays(noun, role, scene))
        if fitting:
            groups.append(fitting)
    return tuple(groups)


def plays(noun, role, scene):
    cast = getattr(scene, role)
    # "the man whom the book belongs to" is no good English.
    clumsy = role == "dative" and scene.verb is VERBS["gehören"]
    return cast is not None and noun in cast.nouns and not clumsy
