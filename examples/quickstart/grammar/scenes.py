"""Scenes: which verb goes with whom, with what, where and when, so that every sentence makes sense."""

from dataclasses import dataclass

from .casts import Cast, NounClass
from .conjugation import Verb
from .places import places
from .verbs import VERBS


@dataclass(frozen=True)
class Scene:
    """A verb with all that may be said around it.

    ``also`` holds complements, one of which is always said, ``places`` those that may be. ``when`` lists the
    scales of time that suit the scene: clock, day, season, or once for what is no habit. ``because`` and
    ``although`` name the circumstances (see circumstances.py) under which it is, or is not, to be expected.
    ``liking`` allows "gern". With an ``experiencer`` the German dative is the English subject (gefallen).
    """

    verb: Verb
    subject: Cast | NounClass
    accusative: Cast | NounClass | None = None
    dative: Cast | NounClass | None = None
    also: tuple = ()
    places: tuple = ()
    when: tuple = ()
    moods: tuple = ("present", "past", "future", "modal")
    because: tuple = ()
    although: tuple = ()
    liking: bool = False
    negatable: bool = True
    experiencer: bool = False


def scene(
    verb,
    subject,
    accusative=None,
    dative=None,
    where="",
    when="day",
    moods="present past future modal",
    **more,
):
    """A scene in words; several places, moods or circumstances are separated by spaces."""
    also = more.pop("also", ())
    listed = {name: tuple(more.pop(name, "").split()) for name in ("because", "although")}
    return Scene(
        VERBS[verb],
        subject,
        accusative,
        dative,
        also if isinstance(also, tuple) else (also,),
        places=places(where),
        when=tuple(when.split()),
        moods=tuple(moods.split()),
        **listed,
        **more,
    )
