"""The slots of a clause: its participants, its adjuncts, and the words that belong to its verb."""

from enum import StrEnum

from .features import Case


class Slot(StrEnum):
    # Participants.
    SUBJECT = "subject"
    DATIVE = "dative"
    ACCUSATIVE = "accusative"
    # Adjuncts, and a complement that the verb demands.
    COMPLEMENT = "complement"
    PLACE = "place"
    TIME = "time"
    CLOCK = "clock"
    FREQUENCY = "frequency"
    REASON = "reason"
    # "nicht" and "gern".
    NEGATION = "negation"
    LIKING = "liking"


CASES = {Slot.SUBJECT: Case.NOMINATIVE, Slot.DATIVE: Case.DATIVE, Slot.ACCUSATIVE: Case.ACCUSATIVE}
"""The cases of the participants, in the order in which they are drawn."""
