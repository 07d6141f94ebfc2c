"""Sentences of two clauses, joined by dass, ob, weil, obwohl, wenn, während, und or aber."""

from dataclasses import replace

from .casting import draw_clause, draw_front, draw_mood, is_common_at_the_end
from .circumstances import CIRCUMSTANCES, PRESSING
from .clauses import NOTHING, SUBORDINATE, render
from .declension import HE, SHE, THEY
from .noun_phrases import PronounPhrase, gender_of, same_party
from .phrases import COMMA, gloss, pair
from .repertoire import ALL, REPORTED, SEPARABLE, draw_scene
from .verbs import MUST, PAST, PRESENT, VERBS

# What somebody is busy with for a while, so that somebody else can do something meanwhile.
LASTING_VERBS = tuple(
    VERBS[name]
    for name in [
        "schlafen",
        "arbeiten",
        "tanzen",
        "schwimmen",
        "spielen",
        "fern|sehen",
        "ein|kaufen",
        "warten",
        "kochen",
        "backen",
        "essen",
        "trinken",
        "lesen",
        "schreiben",
        "singen",
        "hören",
        "lernen",
        "reparieren",
        "waschen",
        "putzen",
        "auf|räumen",
        "pflanzen",
        "füttern",
    ]
)
LASTING = tuple(group for group in ALL if any(group[0].verb is verb for verb in LASTING_VERBS))
# (verb, mood of the main clause, moods of the reported clause)
REPORTS = (
    ("glauben", PRESENT, ("present", "past", "modal", "future")),
    ("wissen", PRESENT, ("present", "past", "modal")),
    ("wissen", PRESENT, ("present",)),
    ("sagen", PRESENT, ("present",)),
    ("sagen", PRESENT, ("present", "past", "modal", "future")),
    ("hoffen", PRESENT, ("future",)),
    ("sagen", PAST, ("past",)),
    ("glauben", PAST, ("past",)),
)


def reported(dice):
    """Anna sagt, dass Paul das Brot gekauft hat."""
    verb, mood, tenses = dice.pick(REPORTS)
    main = draw_clause(dice, REPORTED[verb], mood, negation=0, adverbials=0)
    doubtful = verb == "wissen" and dice.chance(0.6)
    if doubtful:
        main = replace(main, negation="nicht")
    clause = draw_reported(dice, main, tenses, negation=0 if doubtful else 0.12)
    return render(main) + COMMA + gloss("ob/whether" if doubtful else "dass/that") + render(clause, SUBORDINATE)


def draw_reported(dice, main, tenses, negation):
    """Any clause, but often one whose separable verb is written as one word here."""
    while True:
        scene = dice.pick(dice.deal("separable", SEPARABLE)) if dice.chance(0.45) else draw_scene(dice)
        if not set(tenses) & set(scene.moods):
            continue
        clause = draw_clause(dice, scene, draw_mood(dice, scene, tenses), negation, adverbials=0.6)
        confusing = same_party(clause.subject, main.subject) or misleads(clause, main.subject)
        if is_common_at_the_end(clause) and not confusing:
            return clause


def misleads(clause, subject):
    """Whether "er" or "ihm" in the clause would be taken for the child that the sentence began with."""
    return gender_of(subject) == "n" and PronounPhrase(HE) in clause.parties


def reasoned(dice):
    """Paul bleibt zu Hause, weil er krank ist. Paul arbeitet, obwohl er krank ist."""
    joint, attribute = dice.pick((("weil/because", "because"), ("obwohl/although", "although")))
    main, circumstance = draw_motivated(dice, attribute)
    return render(main, front=draw_front(dice, main)) + COMMA + gloss(joint) + render(circumstance, SUBORDINATE)


def conditional(dice):
    """Wenn es regnet, bleibt Paul zu Hause; or the other way round."""
    main, circumstance = draw_motivated(dice, "because", (PRESENT, MUST), without="object:")
    when = gloss("wenn/when")
    if dice.chance(0.4):
        return render(main) + COMMA + when + render(circumstance, SUBORDINATE)
    main, circumstance = swap_names(main, circumstance)
    return when + render(circumstance, SUBORDINATE) + pair(",", ",") + render(main, front="")


def nevertheless(dice):
    """Paul ist krank, aber er arbeitet."""
    main, circumstance = draw_motivated(dice, "although")
    main, circumstance = swap_names(timeless(main), circumstance)
    return render(circumstance) + pair(",", ",") + gloss("aber/but") + render(main)


def draw_motivated(dice, attribute, moods=(), without="-"):
    """A clause and the circumstance that explains it ("because") or speaks against it ("although")."""
    while True:
        scene = draw_scene(dice, numbers=0)
        mood = dice.pick(moods) if moods else draw_mood(dice, scene)
        names = [name for name in getattr(scene, attribute) if is_motivated(scene, mood, name)]
        names = [name for name in names if not name.startswith(without)]
        if not names:
            continue
        main = draw_clause(dice, scene, mood, negation=0)
        circumstance = draw_circumstance(dice, main, dice.pick(names))
        if circumstance and is_common_at_the_end(circumstance) and not main.mood.adverb:
            # Only what is over happened on a certain day and for a reason of that day.
            dated = mood is PAST and "day" in scene.when and not main.frequency.german
            return main if dated else timeless(main), circumstance


def is_motivated(scene, mood, name):
    """Whether the circumstance is a reason in this mood: the sun is one to swim, but not to have to swim."""
    if mood.name in ("must", "should"):
        return "modal" in scene.moods and name in PRESSING and not scene.liking
    return mood.kind in scene.moods and mood.name not in ("can", "may")


def draw_circumstance(dice, main, name):
    """The state that a name stands for, of somebody in the main clause; None if no pronoun fits."""
    whose, _, name = name.rpartition(":")
    found = dice.pick(CIRCUMSTANCES[name])
    subject = None
    if found.same:
        subject = pronoun_for((main.dative or main.accusative) if whose else main.subject)
        if subject is None:
            return None
    if found.mood and main.mood is PAST:
        return None
    mood = PAST if main.mood is PAST else found.mood or PRESENT
    return draw_clause(dice, found.scene, mood, negation=found.negation, adverbials=0, subject=subject)


def pronoun_for(party):
    """The pronoun that takes up a party; None for a child, which is "es" but not always "it"."""
    if isinstance(party, PronounPhrase):
        return party
    if party.person == "3p":
        return PronounPhrase(THEY)
    pronoun = {"m": HE, "f": SHE}.get(gender_of(party))
    return PronounPhrase(pronoun) if pronoun else None


def swap_names(main, circumstance):
    """For the circumstance in front: the noun goes there, and the pronoun into the main clause."""
    if circumstance.subject == pronoun_for(main.subject):
        return replace(main, subject=circumstance.subject), replace(circumstance, subject=main.subject)
    return main, circumstance


def timeless(clause):
    """The clause without any time, which would sit badly beside a second clause."""
    return replace(clause, time=NOTHING, clock=NOTHING, frequency=NOTHING, openers=())


def meanwhile(dice):
    """Anna liest ein Buch, während die Kinder im Garten spielen; or both joined by und."""
    mood = dice.pick((PRESENT, PAST))
    one = draw_lasting(dice, mood)
    other = draw_lasting(dice, mood, one)
    if dice.chance(0.3):
        return render(one) + gloss("und/and") + render(other)
    if dice.chance(0.3):
        opening = gloss("während/while") + render(one, SUBORDINATE)
        return opening + pair(",", ",") + render(other, front="")
    return render(one) + COMMA + gloss("während/while") + render(other, SUBORDINATE)


def draw_lasting(dice, mood, beside=None):
    """Something that takes a while; ``beside`` is what goes on at the same time."""
    while True:
        scene = dice.pick(dice.pick(LASTING))
        if mood.name not in scene.moods:
            continue
        clause = timeless(draw_clause(dice, scene, mood, negation=0, adverbials=0.6))
        if clause.mood.adverb or not is_common_at_the_end(clause):
            continue
        if beside is None or is_another(clause, beside):
            return clause


def is_another(clause, beside):
    """Whether somebody else does something else; "er" could still be the one of the first clause."""
    if isinstance(clause.subject, PronounPhrase) and clause.subject.person == "3s":
        return False
    same = clause.scene.verb is beside.scene.verb or same_party(clause.subject, beside.subject)
    return not same and not misleads(clause, beside.subject)
