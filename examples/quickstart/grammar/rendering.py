"""Puts a clause into words, in the word order of each language."""

from enum import StrEnum

from .clauses import Clause
from .english_order import arrange_english
from .german_order import arrange_german
from .phrases import Phrase
from .slots import Slot
from .wording import put_into_words


class Order(StrEnum):
    STATEMENT = "statement"
    QUESTION = "question"
    SUBORDINATE = "subordinate"


def render(
    clause: Clause, order: Order = Order.STATEMENT, front: Slot | None = Slot.SUBJECT, asked: Slot | None = None
) -> Phrase:
    """The clause as a phrase.

    Args:
        front: the slot that opens a German statement; None where a subordinate clause opens it.
        asked: the slot of a question word or relative pronoun, which comes first in both languages.
    """
    wording = put_into_words(clause)
    first = asked or (front if order is Order.STATEMENT else None)
    inverted = order is Order.QUESTION and asked is not clause.agent
    return Phrase(
        arrange_german(wording, first, verb_last=order is Order.SUBORDINATE),
        arrange_english(wording, first, asked, inverted),
    )
