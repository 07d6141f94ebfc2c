"""Circumstances: why somebody does something, or does it all the same.

A scene names them (see repertoire.py). Most are states of its subject, who is then "er", "sie" or "wir";
those written "object:ill" are states of its object, and the weather is nobody's.
"""

from dataclasses import dataclass

from . import people as who
from . import things as what
from .complements import sayings
from .scenes import Scene, scene
from .verbs import MUST, Mood


@dataclass(frozen=True)
class Circumstance:
    """``same`` is true for a state of the person that the main clause is about."""

    scene: Scene
    same: bool = True
    mood: Mood | None = None
    negation: float = 0.0


def state(text, verb="sein"):
    """How somebody is, one circumstance for each saying."""
    return tuple(Circumstance(scene(verb, who.EVERYBODY, also=saying)) for saying in sayings(text))


def surroundings(text, subject=who.NOBODY):
    """How the world is: "es ist kalt"."""
    return tuple(Circumstance(scene("sein", subject, also=saying), same=False) for saying in sayings(text))


def event(verb, subject=who.NOBODY):
    return Circumstance(scene(verb, subject), same=False)


HAS_TIME = scene("haben", who.EVERYBODY, what.TIME)
NICE_DAY = (event("scheinen", what.SUN), *surroundings("schön/nice", what.WEATHER))
BAD_DAY = (event("regnen"), *surroundings("schlecht/bad", what.WEATHER))
# Those that make somebody have to do something (or, behind "although", not want to).
PRESSING = (
    *("tired", "ill", "hungry", "busy", "test", "work", "guests"),
    *("empty", "late", "dark", "cold", "rainy", "warm"),
)
CIRCUMSTANCES = {
    "tired": state("müde/tired"),
    "ill": state("krank/ill"),
    "happy": state("glücklich/happy"),
    "nice": state("nett/nice freundlich/friendly"),
    "clever": state("klug/clever"),
    "hungry": state("hungrig/hungry") + state("Hunger/hungry", "haben (be)"),
    "thirsty": state("durstig/thirsty") + state("Durst/thirsty", "haben (be)"),
    "free": (Circumstance(HAS_TIME),),
    "busy": (Circumstance(HAS_TIME, negation=1.0),),
    "test": (Circumstance(scene("haben", who.EVERYBODY, what.TEST)),),
    "work": (Circumstance(scene("arbeiten", who.GROWN_UPS), mood=MUST),),
    "guests": (event("kommen", what.VISITORS),),
    "empty": surroundings("leer/empty", what.FRIDGE),
    "late": surroundings("spät/late"),
    "dark": surroundings("dunkel/dark"),
    "warm": surroundings("warm/warm") + NICE_DAY[:1],
    "cold": surroundings("kalt/cold") + (event("schneien"),),
    "sunny": NICE_DAY,
    "rainy": BAD_DAY,
}
