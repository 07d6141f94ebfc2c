"""Draws a clause: fills the slots of a frame at random."""

from collections.abc import Mapping
from dataclasses import replace

from .clauses import Clause, Negation
from .declension import BARE, HIS, NO
from .dice import Dice
from .features import Case, Person
from .frames import Frame
from .moods import FUTURE, LIKING, MODALS, PAST, PRESENT, Mood, MoodKind, Tense
from .noun_classes import ParticipantClass
from .noun_phrases import NounPhrase, Participant, PronounPhrase, could_be_same
from .numerals import clock_time
from .slots import CASES, Slot
from .times import Scale, draw_frequency, draw_time

SIMPLE_MOODS = {mood.kind: mood for mood in (PRESENT, PAST, FUTURE)}
MOOD_SHARES = ((38, MoodKind.PRESENT), (38, MoodKind.PAST), (17, MoodKind.MODAL), (10, MoodKind.FUTURE))
ANY_MOOD = tuple(MoodKind)
PLACE_CHANCE, TIME_CHANCE, FREQUENCY_CHANCE, LIKING_CHANCE = 0.55, 0.55, 0.25, 0.3
TIMED = {(Scale.CLOCK,): 1.0, (Scale.DAY, Scale.CLOCK): 0.8}
"""The probabilities of a time for the frames with these scales, instead of TIME_CHANCE."""
RARE_OPENERS = ("an",)
"""The corpus has no other sentence that begins with "An" than "An der Haltestelle", which is too rare to be learnt."""


def draw_mood(dice: Dice, frame: Frame, kinds: tuple[MoodKind, ...] = ANY_MOOD) -> Mood:
    """A mood of one of the given kinds that suits the frame."""
    kind = dice.pick_weighted([entry for entry in MOOD_SHARES if entry[1] in frame.mood_kinds and entry[1] in kinds])
    return dice.pick(MODALS) if kind is MoodKind.MODAL else SIMPLE_MOODS[kind]


def draw_clause(
    dice: Dice,
    frame: Frame,
    mood: Mood | None = None,
    negation: float = 0.12,
    adverbials: float = 1.0,
    given: Mapping[Slot, Participant] | None = None,
) -> Clause:
    """A clause of the frame.

    Args:
        mood: any that suits the frame if it is None.
        negation: the probability of a negation.
        adverbials: a factor of the probabilities of time and place.
        given: participants that are not drawn.
    """
    mood = mood or draw_mood(dice, frame)
    given = given or {}
    clause = Clause(frame, mood, {Slot.SUBJECT: given.get(Slot.SUBJECT) or frame.subject.draw(dice)})
    for slot in (Slot.DATIVE, Slot.ACCUSATIVE):
        source = frame.participants(slot)
        if source is not None:
            clause = clause.with_participant(slot, given.get(slot) or draw_object(dice, source, clause))
    if frame.complements:
        complement = dice.pick(frame.complements).draw(dice, clause.subject)
        clause = clause.with_adjunct(Slot.COMPLEMENT, complement)
    if dice.chance(negation):
        clause = negated(clause)
    if frame.places and dice.chance(PLACE_CHANCE * adverbials):
        clause = clause.with_adjunct(Slot.PLACE, dice.pick(frame.places).where(dice))
    return add_time(dice, add_liking(dice, clause), adverbials)


def draw_object(dice: Dice, source: ParticipantClass, clause: Clause) -> Participant:
    """Somebody or something other than the participants of the clause so far."""
    while True:
        drawn = source.draw(dice, clause.subject)
        if not any(could_be_same(drawn, other) for other in clause.participants.values()):
            return drawn


def negated(clause: Clause) -> Clause:
    """The clause with "nicht" or "kein", or as it is where neither is natural."""
    thing = clause.accusative
    others = [participant for slot, participant in clause.participants.items() if slot is not Slot.ACCUSATIVE]
    if not clause.frame.negatable or not all(participant.definite for participant in others):
        return clause
    if thing is None or thing.definite:
        return replace(clause, negation=Negation.NICHT)
    if not isinstance(thing, NounPhrase) or thing.count:
        return clause
    clause = clause.with_participant(Slot.ACCUSATIVE, replace(thing, determiner=NO))
    return replace(clause, negation=Negation.KEIN)


def add_liking(dice: Dice, clause: Clause) -> Clause:
    """Adds "gern" to some clauses in the present without an object, or with a general one: Bücher, not das Buch."""
    thing = clause.accusative
    general = isinstance(thing, NounPhrase) and thing.determiner is BARE and not thing.count
    suits = clause.frame.liking and clause.mood is PRESENT and (thing is None or general)
    return replace(clause, mood=LIKING) if suits and dice.chance(LIKING_CHANCE) else clause


def add_time(dice: Dice, clause: Clause, factor: float) -> Clause:
    """Adds when it happens, or how often, or neither."""
    scales, tense = clause.frame.scales, clause.mood.tense
    if not scales or clause.mood is LIKING:
        return clause
    if dice.chance(TIMED.get(scales, TIME_CHANCE) * factor):
        return add_date(dice, clause, dice.pick(scales), tense)
    habit = Scale.DAY in scales and tense is not Tense.COMING and clause.negation is Negation.NONE
    if habit and dice.chance(FREQUENCY_CHANCE * factor):
        return add_frequency(dice, clause)
    return clause


def add_date(dice: Dice, clause: Clause, scale: Scale, tense: Tense) -> Clause:
    """Adds a day, a season, a time of day, or a day with a time of day."""
    if scale is Scale.CLOCK:
        if clause.negation is not Negation.NONE:
            return clause
        clause = clause.with_adjunct(Slot.CLOCK, clock_time(dice), can_open=True)
        if not dice.chance(0.3):
            return clause
        scale = Scale.DAY
    if scale is Scale.ONCE:
        if tense is Tense.PRESENT:
            return clause
        scale = Scale.DAY
    adverbial = draw_time(dice, scale, tense)
    odd_negation = clause.negation is not Negation.NONE and not adverbial.can_be_negated
    if odd_negation or (Slot.CLOCK in clause.adjuncts and not adverbial.is_whole_day):
        return clause
    return clause.with_adjunct(Slot.TIME, adverbial.phrase, adverbial.can_open)


def add_frequency(dice: Dice, clause: Clause) -> Clause:
    """Adds how often it happens; not to a number of things, which would be the same number each time."""
    if isinstance(clause.accusative, NounPhrase) and clause.accusative.count:
        return clause
    adverbial = draw_frequency(dice)
    return clause.with_adjunct(Slot.FREQUENCY, adverbial.phrase, adverbial.can_open)


def can_open(clause: Clause, slot: Slot) -> bool:
    """Whether an object can precede the verb without being taken for the subject."""
    participant = clause.participants.get(slot)
    if participant is None or not participant.definite:
        return False
    if isinstance(participant, NounPhrase) and participant.determiner is HIS:
        return False
    return participant.shows_case(CASES[slot]) or clause.subject.shows_case(Case.NOMINATIVE)


def draw_front(dice: Dice, clause: Clause) -> Slot:
    """The slot that opens a statement."""
    options = [(42, Slot.SUBJECT)]
    options += [(35, slot) for slot in clause.openers]
    options += [(front_weight(clause, slot), slot) for slot in (Slot.ACCUSATIVE, Slot.DATIVE) if can_open(clause, slot)]
    place = clause.adjunct(Slot.PLACE).german
    if place and place[0].text not in RARE_OPENERS:
        options += [(24, Slot.PLACE)]
    return dice.pick_weighted(options)


def front_weight(clause: Clause, slot: Slot) -> int:
    """Datives and pronouns open a sentence more often than other objects."""
    if isinstance(clause.participants[slot], PronounPhrase):
        return 90
    return 60 if slot is Slot.DATIVE else 24


def is_common_at_the_end(clause: Clause) -> bool:
    """False for a separable verb as in "weil ich anrufe": such forms would be too rare to be learnt."""
    first = clause.subject.person is Person.FIRST_SINGULAR
    return not (first and clause.mood.kind is MoodKind.PRESENT and clause.frame.verb.particle)
