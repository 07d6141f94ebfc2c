"""Relative clauses, and the noun phrases that carry them."""

from functools import cache
from typing import NamedTuple

from .clauses import Clause, Negation
from .conjugation import Verb
from .declension import THE, Noun, endings
from .dice import Dice
from .drawing import draw_clause, draw_mood, is_common_at_the_end
from .features import Case, Gender
from .frame_lexicon import ALL, Frames, select
from .frames import Frame
from .moods import MoodKind
from .noun_classes import NounClass
from .noun_phrases import NounPhrase, QuestionWord
from .phrases import COMMA, Phrase
from .rendering import Order, render
from .slots import CASES, Slot
from .verbs import VERBS

RELATIVE_PRONOUNS = endings("der die das die", "den die das die", "dem der dem denen")
SHARES = ((50, Slot.SUBJECT), (30, Slot.ACCUSATIVE), (20, Slot.DATIVE))
"""The slots of the relative clause that the noun can fill."""


class Described(NamedTuple):
    """A noun phrase, the relative clause that says which one is meant, and the verb of that clause."""

    phrase: NounPhrase
    relative: Phrase
    verb: Verb


def draw_described(dice: Dice, nouns: NounClass) -> Described:
    drawn = nouns.draw(dice)
    phrase = NounPhrase(drawn.noun, drawn.number, THE, drawn.adjective)
    return Described(phrase, *draw_relative(dice, phrase))


def draw_relative(dice: Dice, phrase: NounPhrase) -> tuple[Phrase, Verb]:
    """The relative clause with the comma before it, which only German has, and its verb."""
    slot = dice.pick_weighted([(weight, slot) for weight, slot in SHARES if frames_for(phrase.noun, slot)])
    gender = phrase.noun.gender_in(phrase.number)
    german = RELATIVE_PRONOUNS[CASES[slot]][gender]
    while True:
        frame = dice.pick(dice.pick(frames_for(phrase.noun, slot)))
        mood = draw_mood(dice, frame, (MoodKind.PRESENT, MoodKind.PAST))
        pronoun = QuestionWord(german, english_pronoun(frame, slot, phrase.noun), phrase.person)
        clause = draw_clause(dice, frame, mood, negation=0.08, adverbials=0.5, given={slot: pronoun})
        if not phrase.noun.human:
            clause = clause.without(Slot.FREQUENCY)
        repeats = mentions(clause, phrase.noun) or clause.negation is Negation.KEIN
        if is_clear(clause, slot, gender) and is_common_at_the_end(clause) and not repeats:
            return COMMA + render(clause, Order.SUBORDINATE, asked=slot), frame.verb


def is_clear(clause: Clause, slot: Slot, gender: Gender) -> bool:
    """Whether a reader can tell the subject from the object: in "die Frau, die das Kind sieht" he cannot."""
    return slot is not Slot.ACCUSATIVE or gender is Gender.MASCULINE or clause.subject.shows_case(Case.NOMINATIVE)


def mentions(clause: Clause, noun: Noun) -> bool:
    return any(
        participant.noun.english == noun.english
        for participant in clause.participants.values()
        if isinstance(participant, NounPhrase)
    )


def english_pronoun(frame: Frame, slot: Slot, noun: Noun) -> str:
    if not noun.human:
        return "that"
    if slot is (Slot.DATIVE if frame.experiencer else Slot.SUBJECT):
        return "who"
    return "to whom" if slot is Slot.DATIVE and frame.accusative else "whom"


@cache
def frames_for(noun: Noun, slot: Slot) -> tuple[Frames, ...]:
    """The frames in which the noun can fill the slot, grouped by verb."""
    return select(ALL, lambda frame: fits(noun, slot, frame))


def fits(noun: Noun, slot: Slot, frame: Frame) -> bool:
    source = frame.participants(slot)
    # "The man whom the book belongs to" is no good English.
    clumsy = slot is Slot.DATIVE and frame.verb is VERBS["gehören"]
    return source is not None and noun in source.nouns and not clumsy
