"""English word order: subject, verb, object, place, time; auxiliaries ask and deny."""

from .noun_phrases import PronounPhrase
from .phrases import tokens

BE = {
    "present": {"1s": "am", "3s": "is", "1p": "are", "3p": "are"},
    "past": {"1s": "was", "3s": "was", "1p": "were", "3p": "were"},
}
# Slots that open the English sentence when they open the German one. A place or an object stays where it is.
OPENERS = ("time", "clock", "frequency")


def arrange(wording, front, asked, inverted):
    """The tokens of a clause.

    ``front`` is the first slot in German, ``asked`` the slot of a question word or relative pronoun;
    ``inverted`` puts the auxiliary before the subject.
    """
    first = asked or (front if front in OPENERS else "")
    clause, slots = wording.clause, wording.slots

    def slot(name):
        return () if name == first else slots[name].english

    auxiliary, denial, main = verb_group(wording, inverted)
    agent = slot(clause.agent)
    start = auxiliary + agent + denial if inverted else agent + auxiliary + denial
    opening = slots[first].english if first else ()
    return (
        opening
        + start
        + slot("frequency")
        + verb_and_objects(wording, main, slot)
        + slot("complement")
        + slot("place")
        + slot("clock")
        + slot("time")
    )


def verb_and_objects(wording, main, slot):
    """The verb with its objects; some verbs take them in between ("picks him up")."""
    clause, verb = wording.clause, wording.clause.scene.verb.english
    tail, suffix = tokens(verb.tail, wording.lexical), tokens(verb.suffix, wording.lexical)
    patient = slot(clause.patient)
    if verb.shifts and isinstance(getattr(clause, clause.patient), PronounPhrase):
        return main + patient + tail
    receiver = () if clause.agent == "dative" else slot("dative")
    if verb.to_dative and receiver:
        return main + tail + patient + tokens("to", wording.lexical) + receiver
    return main + tail + receiver + patient + suffix


def verb_group(wording, inverted):
    """Auxiliary, negation and main verb."""
    clause = wording.clause
    auxiliary, main = verb_words(wording, needs_auxiliary=inverted or bool(clause.negation))
    denial = tokens("not", wording.denial) if clause.negation else ()
    if denial and not inverted and clause.mood.name == "can":
        return tokens("cannot", wording.finite, wording.denial), (), main
    return auxiliary, denial, main


def verb_words(wording, needs_auxiliary):
    """The auxiliary, if there is one, and the main verb without its tail."""
    clause, mood, verb = wording.clause, wording.clause.mood, wording.clause.scene.verb.english
    person = getattr(clause, clause.agent).person
    finite, lexical = wording.finite, wording.lexical
    if mood.english:
        before = wording.liking if mood.adverb else finite
        auxiliary, helper = modal_words(mood, person, finite, before, needs_auxiliary)
        return auxiliary, helper + tokens(verb.base, lexical)
    tense = mood.name
    if verb.is_be:
        return tokens(BE[tense][person], finite, lexical), ()
    if verb.ongoing and tense == "present":
        return tokens(BE[tense][person], finite), tokens(verb.ongoing, lexical)
    if needs_auxiliary:
        return tokens(form_of_do(tense, person), finite), tokens(verb.base, lexical)
    return (), tokens(form_of(verb, tense, person), finite, lexical)


def modal_words(mood, person, finite, concept, needs_auxiliary):
    """can and will; "is allowed to"; "has to", "wants to" and "likes to", which need "does"."""
    modal = mood.english
    tail = tokens(modal.tail, concept)
    if mood.fixed:
        return tokens(modal.base, concept), ()
    if modal.is_be:
        return tokens(BE["present"][person], concept), tail
    if needs_auxiliary:
        return tokens(form_of_do("present", person), finite), tokens(modal.base, concept) + tail
    return (), tokens(form_of(modal, "present", person), concept) + tail


def form_of_do(tense, person):
    if tense == "past":
        return "did"
    return "does" if person == "3s" else "do"


def form_of(verb, tense, person):
    if tense == "past":
        return verb.past
    return verb.third if person == "3s" else verb.base
