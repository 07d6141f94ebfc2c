"""English word order: subject, verb, objects, place, time. An auxiliary forms questions and negations."""

from .clauses import Negation
from .conjugation import EnglishVerb
from .features import Person
from .moods import CAN, MoodKind
from .noun_phrases import PronounPhrase
from .phrases import Concept, Tokens, tokens
from .slots import Slot
from .wording import Wording

OPENERS = (Slot.TIME, Slot.CLOCK, Slot.FREQUENCY)
"""The slots that open the English sentence if they open the German one. Places and objects stay where they are."""


def arrange_english(wording: Wording, front: Slot | None, asked: Slot | None, inverted: bool) -> Tokens:
    """The tokens of a clause.

    Args:
        front: the first slot in German.
        asked: the slot of a question word or relative pronoun, which comes first in English too.
        inverted: whether the auxiliary precedes the subject.
    """
    first = asked or (front if front in OPENERS else None)
    opening = wording.english(first) if first else ()
    rest = wording.without(first) if first else wording
    auxiliary, denial, main = verb_group(wording, inverted)
    agent = rest.english(wording.clause.agent)
    return (
        opening
        + (auxiliary + agent + denial if inverted else agent + auxiliary + denial)
        + rest.english(Slot.FREQUENCY)
        + verb_and_objects(rest, main)
        + rest.english(Slot.COMPLEMENT)
        + rest.english(Slot.PLACE)
        + rest.english(Slot.CLOCK)
        + rest.english(Slot.TIME)
    )


def verb_and_objects(wording: Wording, main: Tokens) -> Tokens:
    """The main verb, its tail and its objects: "looks for him", "picks him up", "explains this rule to the child"."""
    clause, verb = wording.clause, wording.clause.frame.verb.english
    tail, suffix = tokens(verb.tail, wording.lexical), tokens(verb.suffix, wording.lexical)
    patient = wording.english(clause.patient)
    if verb.shifts and isinstance(clause.participants.get(clause.patient), PronounPhrase):
        return main + patient + tail
    receiver = () if clause.agent is Slot.DATIVE else wording.english(Slot.DATIVE)
    if verb.to_dative and receiver:
        return main + tail + patient + tokens("to", wording.lexical) + receiver
    return main + tail + receiver + patient + suffix


def verb_group(wording: Wording, inverted: bool) -> tuple[Tokens, Tokens, Tokens]:
    """The auxiliary, "not" and the main verb; the first two may be empty."""
    denied = wording.clause.negation is not Negation.NONE
    auxiliary, main = verb_words(wording, needs_auxiliary=inverted or denied)
    if not denied:
        return auxiliary, (), main
    if wording.clause.mood is CAN and not inverted:
        return tokens("cannot", wording.finite, wording.denial), (), main
    return auxiliary, tokens("not", wording.denial), main


def verb_words(wording: Wording, needs_auxiliary: bool) -> tuple[Tokens, Tokens]:
    """The auxiliary, which may be empty, and the main verb without its tail."""
    clause, mood, verb = wording.clause, wording.clause.mood, wording.clause.frame.verb.english
    person = clause.participants[clause.agent].person
    finite, lexical = wording.finite, wording.lexical
    if mood.english:
        before = wording.liking if mood.adverb else finite
        auxiliary, helper = modal_words(mood.english, mood.fixed, person, finite, before, needs_auxiliary)
        return auxiliary, helper + tokens(verb.base, lexical)
    past = mood.kind is MoodKind.PAST
    if verb.is_be:
        return tokens(form_of_be(past, person), finite, lexical), ()
    if verb.ongoing and not past:
        return tokens(form_of_be(past, person), finite), tokens(verb.ongoing, lexical)
    if needs_auxiliary:
        return tokens(form_of_do(past, person), finite), tokens(verb.base, lexical)
    return (), tokens(form_of(verb, past, person), finite, lexical)


def modal_words(
    verb: EnglishVerb, fixed: bool, person: Person, finite: Concept, concept: Concept, needs_auxiliary: bool
) -> tuple[Tokens, Tokens]:
    """A modal verb: can and will; "is allowed to"; "has to", "wants to" and "likes to", which need "does".

    ``concept`` is what the modal verb expresses: the finite verb, or "gern".
    """
    tail = tokens(verb.tail, concept)
    if fixed:
        return tokens(verb.base, concept), ()
    if verb.is_be:
        return tokens(form_of_be(False, person), concept), tail
    if needs_auxiliary:
        return tokens(form_of_do(False, person), finite), tokens(verb.base, concept) + tail
    return (), tokens(form_of(verb, False, person), concept) + tail


def form_of_be(past: bool, person: Person) -> str:
    if past:
        return "was" if person.is_singular else "were"
    return {Person.FIRST_SINGULAR: "am", Person.THIRD_SINGULAR: "is"}.get(person, "are")


def form_of_do(past: bool, person: Person) -> str:
    if past:
        return "did"
    return "does" if person is Person.THIRD_SINGULAR else "do"


def form_of(verb: EnglishVerb, past: bool, person: Person) -> str:
    if past:
        return verb.past
    return verb.third if person is Person.THIRD_SINGULAR else verb.base
