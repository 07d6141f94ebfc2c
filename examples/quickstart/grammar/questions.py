"""Questions: with the verb first, or with a question word."""

from dataclasses import replace
from functools import cache

from . import people as who
from .casting import draw_clause, draw_mood
from .clauses import QUESTION, render
from .complements import Target
from .declension import BARE, I
from .noun_phrases import FIRST_PERSONS, NounPhrase, PronounPhrase, QuestionWord
from .phrases import pair
from .repertoire import ALL, NUMBER_GROUPS, draw_scene
from .verbs import LIKING, MODALS, VERBS

KINDS = ((55, ("present",)), (28, ("modal", "future")), (18, ("past",)))
# "Was macht Paul?" is rather "What does Paul do?" than "What does he make?".
NOT_ASKED = (VERBS["haben"], VERBS["machen"])
ASKED_OF_ONESELF = tuple(mood for mood in MODALS if mood.name != "want")
HOW_MANY = ("wie viele", "how many")


def yes_no_question(dice):
    """A question that begins with the verb."""
    kinds = dice.pick_weighted(KINDS)
    scene = dice.pick(dice.deal(kinds, askable(kinds)))
    while True:
        clause = draw_clause(dice, scene, draw_mood(dice, scene, kinds), negation=0)
        # Kauft Anna das Brot? "Kaufen wir" would be too rare to be learnt.
        if can_be_asked(clause) and (clause.mood.tense != "present" or clause.subject.person == "3s"):
            return render(clause, QUESTION)


def own_question(dice):
    """Darf ich das Fenster zumachen?"""
    scene, mood = dice.pick(dice.deal("own question", OWN)), dice.pick(ASKED_OF_ONESELF)
    return render(draw_clause(dice, scene, mood, negation=0, subject=PronounPhrase(I)), QUESTION)


def word_question(dice):
    """A question with a question word for one slot of the clause."""
    while True:
        clause = draw_clause(dice, draw_scene(dice), negation=0)
        asked = dice.pick(QUESTIONS)(clause)
        if asked is not None and can_be_asked(clause):
            slot, clause = asked
            return render(clause, QUESTION, asked=slot)


def can_be_own(scene):
    return "modal" in scene.moods and who.SPEAKERS in scene.subject.classes


OWN = tuple(fitting for group in ALL if (fitting := tuple(filter(can_be_own, group))))


@cache
def askable(kinds):
    """The scenes that can be asked about in a mood of these kinds, grouped by verb.

    Left out are "Hatte Anna ...?" and the like, which would be too rare to be learnt.
    """
    groups = []
    for group in (*ALL, *NUMBER_GROUPS):
        fitting = tuple(scene for scene in group if set(kinds) & set(scene.moods))
        if fitting and not (kinds == ("past",) and group[0].verb.preterite):
            groups.append(fitting)
    return tuple(groups)


def can_be_asked(clause):
    """One asks what a certain person does; about oneself, only what one should or may do."""
    agent = getattr(clause, clause.agent)
    if not agent.definite:
        return False
    if clause.scene.experiencer:
        return agent.person not in FIRST_PERSONS
    return agent.person != "1s" or clause.mood in ASKED_OF_ONESELF


def human(nouns):
    return nouns is not None and any(noun.human for noun in nouns.nouns)


def ask_who(clause):
    if human(clause.scene.subject):
        return "subject", replace(clause, subject=QuestionWord("wer", "who"))
    return None


def ask_object(clause):
    """wen or was."""
    if clause.scene.accusative is None or clause.scene.verb in NOT_ASKED:
        return None
    word = QuestionWord("wen", "whom") if human(clause.scene.accusative) else QuestionWord("was", "what")
    return "accusative", replace(clause, accusative=word)


def ask_receiver(clause):
    """wem: what it is in English depends on the verb."""
    if clause.scene.dative is None:
        return None
    english = "who" if clause.scene.experiencer else "to whom" if clause.scene.accusative else "whom"
    return "dative", replace(clause, dative=QuestionWord("wem", english))


def ask_when(clause):
    if not clause.scene.when or clause.frequency.german or clause.clock.german or clause.mood is LIKING:
        return None
    return "time", replace(clause, time=pair("wann", "when"))


def ask_where(clause):
    if not clause.scene.places or clause.mood is LIKING:
        return None
    return "place", replace(clause, place=pair("wo", "where"))


def ask_where_to(clause):
    """wohin is "where" as well."""
    if not any(isinstance(complement, Target) for complement in clause.scene.also):
        return None
    return "complement", replace(clause, complement=pair("wohin", "where"))


def ask_why(clause):
    if not clause.scene.because and not clause.scene.although:
        return None
    return "reason", replace(clause, reason=pair("warum", "why"))


def ask_how_many(clause):
    thing = clause.accusative
    if not isinstance(thing, NounPhrase) or thing.number != "p" or thing.determiner is not BARE:
        return None
    return "accusative", replace(clause, accusative=replace(thing, count=HOW_MANY))


QUESTIONS = (
    ask_who,
    ask_object,
    ask_object,
    ask_receiver,
    ask_when,
    ask_where,
    ask_where_to,
    ask_why,
    ask_how_many,
)
