"""Questions: with the verb first, or with a question word."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from .clauses import Clause
from .complements import Target
from .declension import BARE, I
from .dice import Dice
from .drawing import draw_clause, draw_mood
from .features import Number, Person
from .frame_lexicon import ALL, NUMBER_GROUPS, Frames, draw_frame, of_speakers, select
from .moods import LIKING, MODALS, WANT, MoodKind, Tense
from .noun_classes import ParticipantClass
from .noun_phrases import NounPhrase, Participant, PronounPhrase, QuestionWord
from .numerals import NumberWord
from .phrases import Phrase, pair
from .rendering import Order, render
from .slots import Slot
from .verbs import VERBS

MOOD_SHARES = (
    (55, (MoodKind.PRESENT,)),
    (28, (MoodKind.MODAL, MoodKind.FUTURE)),
    (18, (MoodKind.PAST,)),
)
NOT_ASKED = (VERBS["haben"], VERBS["machen"])
""" "Was macht Paul?" would rather be "What does Paul do?" than "What does Paul make?"."""
ASKED_OF_ONESELF = tuple(mood for mood in MODALS if mood is not WANT)
OF_SPEAKERS = of_speakers(MoodKind.MODAL)
HOW_MANY = NumberWord("wie viele", "how many")


def yes_no_question(dice: Dice) -> Phrase:
    """Kauft Anna das Brot?"""
    kinds = dice.pick_weighted(MOOD_SHARES)
    frame = dice.pick(dice.deal(kinds, askable(kinds)))
    while True:
        clause = draw_clause(dice, frame, draw_mood(dice, frame, kinds), negation=0)
        # "Kaufen wir das Brot?" would be too rare to be learnt.
        common = clause.mood.tense is not Tense.PRESENT or clause.subject.person is Person.THIRD_SINGULAR
        if can_be_asked(clause) and common:
            return render(clause, Order.QUESTION)


def own_question(dice: Dice) -> Phrase:
    """Darf ich das Fenster zumachen?"""
    frame, mood = dice.pick(dice.deal("own question", OF_SPEAKERS)), dice.pick(ASKED_OF_ONESELF)
    clause = draw_clause(dice, frame, mood, negation=0, given={Slot.SUBJECT: PronounPhrase(I)})
    return render(clause, Order.QUESTION)


def word_question(dice: Dice) -> Phrase:
    """Was kauft Anna?"""
    while True:
        clause = draw_clause(dice, draw_frame(dice), negation=0)
        question = dice.pick(QUESTIONS)(clause)
        if question and can_be_asked(clause):
            return render(question.clause, Order.QUESTION, asked=question.slot)


@cache
def askable(kinds: tuple[MoodKind, ...]) -> tuple[Frames, ...]:
    """The frames that can be asked about in a mood of these kinds, grouped by verb.

    "Hatte Anna …?" and the like are left out: they would be too rare to be learnt.
    """
    only_past = kinds == (MoodKind.PAST,)
    return select(
        ALL + NUMBER_GROUPS,
        lambda frame: bool(set(kinds) & set(frame.mood_kinds)) and not (only_past and frame.verb.preterite),
    )


def can_be_asked(clause: Clause) -> bool:
    """One asks about definite agents only, and about oneself only what one should or may do."""
    agent = clause.participants[clause.agent]
    if not agent.definite:
        return False
    if clause.frame.experiencer:
        return not agent.person.is_first
    return agent.person is not Person.FIRST_SINGULAR or clause.mood in ASKED_OF_ONESELF


class Question(NamedTuple):
    """A clause with a question word in one slot."""

    slot: Slot
    clause: Clause


def replaced(clause: Clause, slot: Slot, asked: Participant) -> Question:
    return Question(slot, clause.with_participant(slot, asked))


def added(clause: Clause, slot: Slot, german: str, english: str) -> Question:
    return Question(slot, clause.with_adjunct(slot, pair(german, english)))


def includes_people(source: ParticipantClass | None) -> bool:
    return source is not None and any(noun.human for noun in source.nouns)


def ask_who(clause: Clause) -> Question | None:
    if not includes_people(clause.frame.subject):
        return None
    return replaced(clause, Slot.SUBJECT, QuestionWord("wer", "who"))


def ask_object(clause: Clause) -> Question | None:
    """wen or was"""
    if clause.frame.accusative is None or clause.frame.verb in NOT_ASKED:
        return None
    people = includes_people(clause.frame.accusative)
    return replaced(clause, Slot.ACCUSATIVE, QuestionWord("wen", "whom") if people else QuestionWord("was", "what"))


def ask_receiver(clause: Clause) -> Question | None:
    """wem; what it is in English depends on the verb."""
    if clause.frame.dative is None:
        return None
    english = "who" if clause.frame.experiencer else "to whom" if clause.frame.accusative else "whom"
    return replaced(clause, Slot.DATIVE, QuestionWord("wem", english))


def ask_when(clause: Clause) -> Question | None:
    told = Slot.FREQUENCY in clause.adjuncts or Slot.CLOCK in clause.adjuncts
    if not clause.frame.scales or told or clause.mood is LIKING:
        return None
    return added(clause, Slot.TIME, "wann", "when")


def ask_where(clause: Clause) -> Question | None:
    if not clause.frame.places or clause.mood is LIKING:
        return None
    return added(clause, Slot.PLACE, "wo", "where")


def ask_where_to(clause: Clause) -> Question | None:
    """wohin, which English does not tell apart from wo."""
    if not any(isinstance(complement, Target) for complement in clause.frame.complements):
        return None
    return added(clause, Slot.COMPLEMENT, "wohin", "where")


def ask_why(clause: Clause) -> Question | None:
    if not clause.frame.because and not clause.frame.although:
        return None
    return added(clause, Slot.REASON, "warum", "why")


def ask_how_many(clause: Clause) -> Question | None:
    thing = clause.accusative
    if not isinstance(thing, NounPhrase) or thing.number is Number.SINGULAR or thing.determiner is not BARE:
        return None
    return replaced(clause, Slot.ACCUSATIVE, replace(thing, count=HOW_MANY))


QUESTIONS: tuple[Callable[[Clause], Question | None], ...] = (
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
"""The ways to ask; objects are asked for twice as often."""
