"""The direction in which a text is written: from left to right, or from right to left as Arabic and Hebrew are."""

import unicodedata

EMBED, END = "\u202b", "\u202c"
"""The invisible characters around a text that is laid out from right to left (Unicode's RLE and PDF)."""


def is_right_to_left(text: str) -> bool:
    """Return whether most letters of a text are written from right to left."""
    kinds = [unicodedata.bidirectional(character) for character in text]
    return sum(kind in ("R", "AL") for kind in kinds) > kinds.count("L")


def embedded(text: str) -> str:
    """Mark a text from right to left as such, also for programs that take a line to be from left to right."""
    return f"{EMBED}{text}{END}" if is_right_to_left(text) else text
