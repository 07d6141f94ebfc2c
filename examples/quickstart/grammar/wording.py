"""A clause in words: each slot in both languages, and the concepts of its verb. Word order comes later."""

from dataclasses import dataclass, replace

from .clauses import Clause, Negation
from .phrases import NOTHING, Concept, Phrase, Tokens, new_concept, tokens
from .slots import CASES, Slot


@dataclass(frozen=True)
class Wording:
    """The words of a clause.

    The verb has two concepts. The finite verb (hat, does) expresses one, the lexical verb (gekauft, buy) the other, and
    a single word both (kauft, buys, bought). "Not" and "gern" have concepts of their own.
    """

    clause: Clause
    slots: dict[Slot, Phrase]
    finite: Concept
    lexical: Concept
    denial: Concept
    liking: Concept

    def german(self, slot: Slot) -> Tokens:
        return self.slots.get(slot, NOTHING).german

    def english(self, slot: Slot) -> Tokens:
        return self.slots.get(slot, NOTHING).english

    def without(self, slot: Slot) -> "Wording":
        """The same with one slot empty."""
        return replace(self, slots={**self.slots, slot: NOTHING})


def put_into_words(clause: Clause) -> Wording:
    """Puts each slot into words. "nicht" and "gern" are German slots: their English is part of the verb group."""
    finite, lexical, denial, liking = (new_concept() for _ in range(4))
    slots = dict(clause.adjuncts)
    for slot, participant in clause.participants.items():
        slots[slot] = participant.phrase(CASES[slot], denial, english_subject=slot is clause.agent)
    if clause.negation is Negation.NICHT:
        slots[Slot.NEGATION] = Phrase(german=tokens("nicht", denial))
    if clause.mood.adverb:
        slots[Slot.LIKING] = Phrase(german=tokens(clause.mood.adverb, liking))
    return Wording(clause, slots, finite, lexical, denial, liking)
