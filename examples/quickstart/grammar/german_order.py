"""German word order: the finite verb is second, first in a yes/no question, last in a subordinate clause."""

from itertools import chain

from .clauses import Clause
from .moods import MoodKind, finite
from .phrases import Token, Tokens, tokens
from .slots import Slot
from .wording import Wording

AUXILIARIES = {"haben": ("habe", "hat", "haben"), "sein": ("bin", "ist", "sind")}


def arrange_german(wording: Wording, front: Slot | None, verb_last: bool) -> Tokens:
    """The tokens of a clause. ``front`` is the slot before everything else; None for a yes/no question."""
    opening = wording.german(front) if front else ()
    middle = tuple(chain.from_iterable(wording.german(slot) for slot in middle_field(wording.clause) if slot != front))
    if verb_last:
        return opening + middle + verb_at_the_end(wording)
    finite_verb, rest = verb_apart(wording)
    return opening + finite_verb + middle + rest


def middle_field(clause: Clause) -> list[Slot]:
    """The slots in their order between the finite verb and the rest of the verb.

    What is known comes early and what is new comes late: definite objects precede the time and the negation, indefinite
    ones stand close to the verb.
    """
    persons = [Slot.DATIVE, Slot.SUBJECT] if clause.frame.experiencer else [Slot.SUBJECT, Slot.DATIVE]
    known_dative = clause.frame.experiencer or clause.dative is None or clause.dative.definite
    known_accusative = clause.accusative is None or clause.accusative.definite
    early = [*(persons if known_dative else [Slot.SUBJECT]), *([Slot.ACCUSATIVE] if known_accusative else [])]
    adverbials = [Slot.TIME, Slot.CLOCK, Slot.FREQUENCY, Slot.REASON, Slot.NEGATION, Slot.LIKING]
    late_dative = [] if known_dative else [Slot.DATIVE]
    late_accusative = [] if known_accusative else [Slot.ACCUSATIVE]
    return [*early, *adverbials, *late_dative, Slot.PLACE, *late_accusative, Slot.COMPLEMENT]


def verb_apart(wording: Wording) -> tuple[Tokens, Tokens]:
    """The finite verb, and the infinitive, participle or separable prefix that ends the clause."""
    clause, lexical = wording.clause, wording.lexical
    verb, mood, person = clause.frame.verb, clause.mood, clause.subject.person
    if mood.german:
        return tokens(finite(mood.german, person), wording.finite), tokens(verb.particle + verb.infinitive, lexical)
    if mood.kind is MoodKind.PRESENT:
        return tokens(verb.present(person), wording.finite, lexical), tokens(verb.particle, lexical)
    if verb.preterite:
        return tokens(verb.preterite.form(person), wording.finite, lexical), tokens(verb.particle, lexical)
    return tokens(finite(AUXILIARIES[verb.auxiliary], person), wording.finite), tokens(verb.participle, lexical)


def verb_at_the_end(wording: Wording) -> Tokens:
    """The same verb at the end of a subordinate clause, where a separable prefix is part of the finite verb: anruft."""
    finite_verb, rest = verb_apart(wording)
    particle = wording.clause.frame.verb.particle
    if rest and rest[0].text == particle:
        (verb,) = finite_verb
        return (Token(particle + verb.text, verb.concepts),)
    return rest + finite_verb
