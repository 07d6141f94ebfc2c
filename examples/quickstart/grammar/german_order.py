"""German word order: the verb comes second, first in a yes/no question and last in a subordinate clause."""

from .phrases import Token, tokens

HELPERS = {
    "haben": {"1s": "habe", "3s": "hat", "1p": "haben", "3p": "haben"},
    "sein": {"1s": "bin", "3s": "ist", "1p": "sind", "3p": "sind"},
}


def arrange(wording, front, verb_last):
    """The tokens of a clause; ``front`` is the slot before everything else, "" for none."""
    opening = wording.slots[front].german if front else ()
    middle = sum((slot_tokens(wording, slot) for slot in middle_field(wording.clause) if slot != front), ())
    if verb_last:
        return opening + middle + verb_at_the_end(wording)
    finite, rest = verb_apart(wording)
    return opening + finite + middle + rest


def middle_field(clause):
    """The slots in the order they take between the finite verb and the rest of the verb.

    What is known comes early and what is new comes late: definite objects stand before the time and the
    negation, indefinite ones close to the verb.
    """
    dative_known = clause.dative is None or clause.dative.definite
    accusative_known = clause.accusative is None or clause.accusative.definite
    persons = ["dative", "subject"] if clause.scene.experiencer else ["subject"] + ["dative"] * dative_known
    return [
        *persons,
        *["accusative"] * accusative_known,
        "time",
        "clock",
        "frequency",
        "reason",
        "negation",
        "liking",
        *["dative"] * (not dative_known and not clause.scene.experiencer),
        "place",
        *["accusative"] * (not accusative_known),
        "complement",
    ]


def slot_tokens(wording, slot):
    if slot == "negation":
        return tokens("nicht", wording.denial) if wording.clause.negation == "nicht" else ()
    if slot == "liking":
        return tokens(wording.clause.mood.adverb, wording.liking)
    return wording.slots[slot].german


def verb_apart(wording):
    """The finite verb, and the participle, infinitive or separable prefix that stands at the end."""
    clause, finite, lexical = wording.clause, wording.finite, wording.lexical
    verb, mood, person = clause.scene.verb, clause.mood, clause.subject.person
    if mood.german:
        return tokens(mood.finite(person), finite), tokens(verb.particle + verb.infinitive, lexical)
    if mood.name == "present":
        return tokens(verb.present(person), finite, lexical), tokens(verb.particle, lexical)
    if verb.preterite:
        return tokens(verb.simple_past(person), finite, lexical), tokens(verb.particle, lexical)
    return tokens(HELPERS[verb.helper][person], finite), tokens(verb.participle, lexical)


def verb_at_the_end(wording):
    """The same verb in a subordinate clause, where a separable prefix is written together with it."""
    finite, rest = verb_apart(wording)
    particle = wording.clause.scene.verb.particle
    if rest and rest[0].text == particle:
        return (Token(particle + finite[0].text, finite[0].concepts),)
    return rest + finite
