"""Sentences of two clauses, joined by dass, ob, weil, obwohl, wenn, während, und or aber."""

from dataclasses import replace
from typing import Literal, NamedTuple

from .circumstances import CIRCUMSTANCES, PRESSING
from .clauses import Clause, Negation
from .declension import HE, SHE, THEY
from .dice import Dice
from .drawing import draw_clause, draw_front, draw_mood, is_common_at_the_end
from .features import Gender, Person
from .frame_lexicon import ALL, REPORTED, SEPARABLE, draw_frame
from .frames import Frame, Motive
from .moods import CAN, MAY, MUST, PAST, PRESENT, SHOULD, Mood, MoodKind
from .noun_phrases import Participant, PronounPhrase, could_be_same
from .phrases import COMMA, Phrase, gloss, pair
from .rendering import Order, render
from .slots import Slot
from .times import Scale
from .verbs import VERBS

Conjunction = Literal["because", "although"]


class Report(NamedTuple):
    """A verb of saying or thinking, its mood, and the moods of the clause that it reports."""

    verb: str
    mood: Mood
    kinds: tuple[MoodKind, ...]


ANY = (MoodKind.PRESENT, MoodKind.PAST, MoodKind.MODAL, MoodKind.FUTURE)
REPORTS = (
    Report("glauben", PRESENT, ANY),
    Report("wissen", PRESENT, (MoodKind.PRESENT, MoodKind.PAST, MoodKind.MODAL)),
    Report("wissen", PRESENT, (MoodKind.PRESENT,)),
    Report("sagen", PRESENT, (MoodKind.PRESENT,)),
    Report("sagen", PRESENT, ANY),
    Report("hoffen", PRESENT, (MoodKind.FUTURE,)),
    Report("sagen", PAST, (MoodKind.PAST,)),
    Report("glauben", PAST, (MoodKind.PAST,)),
)
LASTING_VERBS = [
    VERBS[name]
    for name in (
        "schlafen arbeiten tanzen schwimmen spielen fern|sehen ein|kaufen warten kochen backen essen trinken lesen "
        "schreiben singen hören lernen reparieren waschen putzen auf|räumen pflanzen füttern"
    ).split()
]
LASTING = tuple(group for group in ALL if group[0].verb in LASTING_VERBS)
"""The frames of what takes a while, so that something else can happen meanwhile."""


class TwoClauses(NamedTuple):
    """A main clause, and the circumstance that explains it or speaks against it."""

    main: Clause
    circumstance: Clause


def reported(dice: Dice) -> Phrase:
    """Anna sagt, dass Paul das Brot gekauft hat. Anna weiß nicht, ob Paul das Brot gekauft hat."""
    verb, mood, kinds = dice.pick(REPORTS)
    main = draw_clause(dice, REPORTED[verb], mood, negation=0, adverbials=0)
    doubtful = verb == "wissen" and dice.chance(0.6)
    if doubtful:
        main = replace(main, negation=Negation.NICHT)
    clause = draw_reported(dice, main, kinds, negation=0 if doubtful else 0.12)
    conjunction = gloss("ob/whether" if doubtful else "dass/that")
    return render(main) + COMMA + conjunction + render(clause, Order.SUBORDINATE)


def draw_reported(dice: Dice, main: Clause, kinds: tuple[MoodKind, ...], negation: float) -> Clause:
    """A clause of any frame, but often one with a separable verb, which is written as one word here."""
    while True:
        frame = dice.pick(dice.deal("separable", SEPARABLE)) if dice.chance(0.45) else draw_frame(dice)
        if not set(kinds) & set(frame.mood_kinds):
            continue
        clause = draw_clause(dice, frame, draw_mood(dice, frame, kinds), negation, adverbials=0.6)
        confusing = could_be_same(clause.subject, main.subject) or misleads(clause, main.subject)
        if is_common_at_the_end(clause) and not confusing:
            return clause


def misleads(clause: Clause, subject: Participant) -> bool:
    """Whether a reader would take "er" or "ihm" in the clause for the child that is the other clause's subject."""
    return subject.gender is Gender.NEUTER and PronounPhrase(HE) in clause.participants.values()


def reasoned(dice: Dice) -> Phrase:
    """Paul bleibt zu Hause, weil er krank ist. Paul arbeitet, obwohl er krank ist."""
    conjunction: Conjunction = dice.pick(("because", "although"))
    main, circumstance = draw_motivated(dice, conjunction)
    joint = gloss("weil/because" if conjunction == "because" else "obwohl/although")
    return render(main, front=draw_front(dice, main)) + COMMA + joint + render(circumstance, Order.SUBORDINATE)


def conditional(dice: Dice) -> Phrase:
    """Paul bleibt zu Hause, wenn es regnet. Wenn es regnet, bleibt Paul zu Hause."""
    main, circumstance = draw_motivated(dice, "because", (PRESENT, MUST), of_object=False)
    when = gloss("wenn/when")
    if dice.chance(0.4):
        return render(main) + COMMA + when + render(circumstance, Order.SUBORDINATE)
    main, circumstance = name_first(main, circumstance)
    return when + render(circumstance, Order.SUBORDINATE) + pair(",", ",") + render(main, front=None)


def nevertheless(dice: Dice) -> Phrase:
    """Paul ist krank, aber er arbeitet."""
    main, circumstance = draw_motivated(dice, "although")
    main, circumstance = name_first(timeless(main), circumstance)
    return render(circumstance) + pair(",", ",") + gloss("aber/but") + render(main)


def draw_motivated(
    dice: Dice, conjunction: Conjunction, moods: tuple[Mood, ...] = (), of_object: bool = True
) -> TwoClauses:
    """A clause and its circumstance.

    Args:
        moods: the moods of the clause; any if there are none.
        of_object: whether the circumstance may be a state of the object.
    """
    while True:
        frame = draw_frame(dice, numbers=0)
        mood = dice.pick(moods) if moods else draw_mood(dice, frame)
        named = frame.because if conjunction == "because" else frame.although
        allowed = [motive for motive in named if of_object or not motive.of_object]
        motives = [motive for motive in allowed if suits(frame, mood, motive)]
        if not motives:
            continue
        main = draw_clause(dice, frame, mood, negation=0)
        circumstance = draw_circumstance(dice, main, dice.pick(motives))
        if circumstance and is_common_at_the_end(circumstance) and not main.mood.adverb:
            # Only what is over has happened on a certain day, for a reason of that day.
            dated = mood is PAST and Scale.DAY in frame.scales and Slot.FREQUENCY not in main.adjuncts
            return TwoClauses(main if dated else timeless(main), circumstance)


def suits(frame: Frame, mood: Mood, motive: Motive) -> bool:
    """Whether the motive is one in this mood: sunshine is a reason to swim, but not a reason to have to swim."""
    if mood in (MUST, SHOULD):
        pressing = motive.name in PRESSING and not motive.of_object
        return MoodKind.MODAL in frame.mood_kinds and pressing and not frame.liking
    return mood.kind in frame.mood_kinds and mood not in (CAN, MAY)


def draw_circumstance(dice: Dice, main: Clause, motive: Motive) -> Clause | None:
    """The circumstance that the motive names. None if no pronoun can stand for the participant whose state it is."""
    circumstance = dice.pick(CIRCUMSTANCES[motive.name])
    given: dict[Slot, Participant] = {}
    if circumstance.of_participant:
        whose = (main.dative or main.accusative) if motive.of_object else main.subject
        pronoun = pronoun_for(whose) if whose else None
        if pronoun is None:
            return None
        given[Slot.SUBJECT] = pronoun
    if circumstance.mood and main.mood is PAST:
        return None
    mood = PAST if main.mood is PAST else circumstance.mood or PRESENT
    return draw_clause(dice, circumstance.frame, mood, circumstance.negation, adverbials=0, given=given)


def pronoun_for(participant: Participant) -> PronounPhrase | None:
    """The pronoun for a participant. None for a child: it is "es" in German, but not always "it" in English."""
    if isinstance(participant, PronounPhrase):
        return participant
    if participant.person is Person.THIRD_PLURAL:
        return PronounPhrase(THEY)
    if participant.gender is Gender.MASCULINE:
        return PronounPhrase(HE)
    return PronounPhrase(SHE) if participant.gender is Gender.FEMININE else None


def name_first(main: Clause, circumstance: Clause) -> TwoClauses:
    """Where the circumstance comes first, the noun goes there and the pronoun into the main clause."""
    if circumstance.subject != pronoun_for(main.subject):
        return TwoClauses(main, circumstance)
    return TwoClauses(
        main.with_participant(Slot.SUBJECT, circumstance.subject),
        circumstance.with_participant(Slot.SUBJECT, main.subject),
    )


def timeless(clause: Clause) -> Clause:
    """The clause without its adverbials of time, which are odd beside a second clause."""
    return clause.without(Slot.TIME, Slot.CLOCK, Slot.FREQUENCY)


def meanwhile(dice: Dice) -> Phrase:
    """Anna liest ein Buch, während die Kinder im Garten spielen; the same with "während" first, or with "und"."""
    mood = dice.pick((PRESENT, PAST))
    one = draw_lasting(dice, mood)
    other = draw_lasting(dice, mood, one)
    if dice.chance(0.3):
        return render(one) + gloss("und/and") + render(other)
    if dice.chance(0.3):
        opening = gloss("während/while") + render(one, Order.SUBORDINATE)
        return opening + pair(",", ",") + render(other, front=None)
    return render(one) + COMMA + gloss("während/while") + render(other, Order.SUBORDINATE)


def draw_lasting(dice: Dice, mood: Mood, beside: Clause | None = None) -> Clause:
    """Something that takes a while. ``beside`` happens at the same time."""
    while True:
        frame = dice.pick(dice.pick(LASTING))
        if mood.kind not in frame.mood_kinds:
            continue
        clause = timeless(draw_clause(dice, frame, mood, negation=0, adverbials=0.6))
        if clause.mood.adverb or not is_common_at_the_end(clause):
            continue
        if beside is None or is_another(clause, beside):
            return clause


def is_another(clause: Clause, beside: Clause) -> bool:
    """Whether somebody else does something else. "er" could be the subject of the other clause."""
    if isinstance(clause.subject, PronounPhrase) and clause.subject.person is Person.THIRD_SINGULAR:
        return False
    same = clause.frame.verb is beside.frame.verb or could_be_same(clause.subject, beside.subject)
    return not same and not misleads(clause, beside.subject)
