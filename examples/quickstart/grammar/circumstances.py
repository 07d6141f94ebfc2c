"""Circumstances: why somebody does something, or does it all the same.

A frame names them as motives. Most are states of its subject, who is then "er", "sie" or "wir"; some are states of its
object; the weather is nobody's.
"""

from dataclasses import dataclass

from . import people as who
from . import things as what
from .complements import expressions
from .frames import Frame, frame
from .moods import MUST, Mood
from .noun_classes import ParticipantClass


@dataclass(frozen=True)
class Circumstance:
    """The frame of a subordinate clause.

    Args:
        of_participant: whether its subject is a participant of the main clause.
        mood: its mood where that is not the present.
        negation: the probability of a negation.
    """

    frame: Frame
    of_participant: bool = True
    mood: Mood | None = None
    negation: float = 0.0


def states(text: str, verb: str = "sein") -> tuple[Circumstance, ...]:
    """How somebody is, a circumstance for each expression."""
    return tuple(Circumstance(frame(verb, who.EVERYBODY, also=state)) for state in expressions(text))


def surroundings(text: str, subject: ParticipantClass = who.NOBODY) -> tuple[Circumstance, ...]:
    """How the world is: "es ist kalt"."""
    frames = [frame("sein", subject, also=state) for state in expressions(text)]
    return tuple(Circumstance(each, of_participant=False) for each in frames)


def event(verb: str, subject: ParticipantClass = who.NOBODY) -> Circumstance:
    return Circumstance(frame(verb, subject), of_participant=False)


HAS_TIME = frame("haben", who.EVERYBODY, what.TIME)
SUN_SHINES = event("scheinen", what.SUN)
CIRCUMSTANCES = {
    "tired": states("müde/tired"),
    "ill": states("krank/ill"),
    "happy": states("glücklich/happy"),
    "nice": states("nett/nice freundlich/friendly"),
    "clever": states("klug/clever"),
    "hungry": states("hungrig/hungry") + states("Hunger/hungry", "haben (be)"),
    "thirsty": states("durstig/thirsty") + states("Durst/thirsty", "haben (be)"),
    "free": (Circumstance(HAS_TIME),),
    "busy": (Circumstance(HAS_TIME, negation=1.0),),
    "test": (Circumstance(frame("haben", who.EVERYBODY, what.TEST)),),
    "work": (Circumstance(frame("arbeiten", who.GROWN_UPS), mood=MUST),),
    "guests": (event("kommen", what.VISITORS),),
    "empty": surroundings("leer/empty", what.FRIDGE),
    "late": surroundings("spät/late"),
    "dark": surroundings("dunkel/dark"),
    "warm": (*surroundings("warm/warm"), SUN_SHINES),
    "cold": (*surroundings("kalt/cold"), event("schneien")),
    "sunny": (SUN_SHINES, *surroundings("schön/nice", what.WEATHER)),
    "rainy": (event("regnen"), *surroundings("schlecht/bad", what.WEATHER)),
}
PRESSING = "tired ill hungry busy test work guests empty late dark cold rainy warm".split()
"""States of the subject or the world that make somebody have to do something, or, behind "obwohl", not want to."""
