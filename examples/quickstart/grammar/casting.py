"""Fills the roles of a scene by chance, which makes it a clause."""

from dataclasses import replace

from .clauses import Clause
from .declension import BARE, HIS, NO
from .noun_phrases import NounPhrase, PronounPhrase, same_party
from .numerals import clock_time
from .times import frequency_adverbial, time_adverbial
from .verbs import FUTURE, LIKING, MODALS, PAST, PRESENT

# "An der Haltestelle" would be the only phrase that begins with "An".
RARE_OPENERS = ("an",)
SIMPLE_MOODS = {mood.kind: mood for mood in (PRESENT, PAST, FUTURE)}
KINDS = ((38, "present"), (38, "past"), (17, "modal"), (10, "future"))
# How likely a time is told, by the scales of time that suit a scene; otherwise it is 0.55.
TIMED = {("clock",): 1.0, ("day", "clock"): 0.8}


def draw_mood(dice, scene, kinds=("present", "past", "modal", "future")):
    """A mood of one of the given kinds that the scene allows."""
    possible = [entry for entry in KINDS if entry[1] in scene.moods and entry[1] in kinds]
    kind = dice.pick_weighted(possible)
    return dice.pick(MODALS) if kind == "modal" else SIMPLE_MOODS[kind]


def draw_clause(dice, scene, mood=None, negation=0.12, adverbials=1.0, **parties):
    """A clause of the scene, with those parties that are given (subject, dative, accusative).

    ``negation`` is the chance of a negation, ``adverbials`` scales the chances of time and place.
    """
    mood = mood or draw_mood(dice, scene)
    clause = Clause(scene, mood, parties.get("subject") or scene.subject.draw(dice))
    for role in ("dative", "accusative"):
        party = parties.get(role) or draw_object(dice, getattr(scene, role), clause)
        clause = replace(clause, **{role: party})
    if scene.also:
        clause = replace(clause, complement=dice.pick(scene.also).draw(dice, clause.subject))
    if dice.chance(negation):
        clause = negate(clause)
    if scene.places and dice.chance(0.55 * adverbials):
        clause = replace(clause, place=dice.pick(scene.places).where(dice))
    return add_time(dice, add_liking(dice, clause), adverbials)


def draw_object(dice, nouns, clause):
    """Somebody or something other than those that the clause has already."""
    if nouns is None:
        return None
    while True:
        drawn = nouns.draw(dice, clause.subject)
        if not any(same_party(drawn, other) for other in (clause.subject, clause.dative)):
            return drawn


def negate(clause):
    """The clause with "nicht" or "kein", or as it is where neither would be natural."""
    scene, thing = clause.scene, clause.accusative
    others = [party for party in (clause.subject, clause.dative) if party]
    if not scene.negatable or not all(party.definite for party in others):
        return clause
    if thing is None or thing.definite:
        return replace(clause, negation="nicht")
    if thing.count:
        return clause
    return replace(clause, negation="kein", accusative=replace(thing, determiner=NO))


def add_liking(dice, clause):
    """gern in some clauses in the present whose object, if any, is of a general kind."""
    thing = clause.accusative
    bare = isinstance(thing, NounPhrase) and thing.determiner is BARE and not thing.count
    if clause.scene.liking and clause.mood is PRESENT and (thing is None or bare) and dice.chance(0.3):
        return replace(clause, mood=LIKING)
    return clause


def add_time(dice, clause, chance):
    """When it happens, or how often, or neither."""
    scales, tense = clause.scene.when, clause.mood.tense
    if not scales or clause.mood is LIKING:
        return clause
    if dice.chance(TIMED.get(scales, 0.55) * chance):
        return add_date(dice, clause, dice.pick(scales), tense)
    if "day" in scales and tense != "coming" and not clause.negation and dice.chance(0.25 * chance):
        return add_frequency(dice, clause)
    return clause


def add_date(dice, clause, scale, tense):
    """A day, a season or a time of day, or a day with a time of day."""
    if scale == "clock" and not clause.negation:
        clause = replace(clause, clock=clock_time(dice), openers=(*clause.openers, "clock"))
        scale = "day" if dice.chance(0.3) else ""
    if scale == "once":
        scale = "" if tense == "present" else "day"
    if scale not in ("day", "season"):
        return clause
    adverbial = time_adverbial(dice, scale, tense)
    if (clause.negation and not adverbial.negatable) or (clause.clock.german and not adverbial.is_whole_day):
        return clause
    openers = clause.openers + ("time",) * adverbial.can_open
    return replace(clause, time=adverbial.phrase, openers=openers)


def add_frequency(dice, clause):
    """How often; not with a number, which would have to be the same each time."""
    if getattr(clause.accusative, "count", ()):
        return clause
    adverbial = frequency_adverbial(dice)
    openers = clause.openers + ("frequency",) * adverbial.can_open
    return replace(clause, frequency=adverbial.phrase, openers=openers)


def can_open(clause, slot):
    """Whether an object can stand before the verb without being taken for the subject."""
    party = getattr(clause, slot)
    if party is None or not party.definite or getattr(party, "determiner", None) is HIS:
        return False
    case = "dat" if slot == "dative" else "acc"
    return party.shows_case(case) or clause.subject.shows_case("nom")


def draw_front(dice, clause):
    """The slot that opens a statement."""
    objects = [slot for slot in ("accusative", "dative") if can_open(clause, slot)]
    options = [(42, "subject")]
    options += [(35, slot) for slot in clause.openers]
    options += [(front_weight(clause, slot), slot) for slot in objects]
    if clause.place.german and clause.place.german[0].text not in RARE_OPENERS:
        options += [(24, "place")]
    return dice.pick_weighted(options)


def front_weight(clause, slot):
    """Datives and pronouns open a sentence more often than other objects."""
    if isinstance(getattr(clause, slot), PronounPhrase):
        return 90
    return 60 if slot == "dative" else 24


def is_common_at_the_end(clause):
    """Leaves out "weil ich anrufe": such forms would be too rare to be learnt."""
    rare = clause.mood.name == "present" and clause.subject.person == "1s" and clause.scene.verb.particle
    return not rare
