"""Installed fonts for the characters that matplotlib's own font lacks."""

import logging
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from matplotlib import rc_context
from matplotlib.font_manager import FontEntry, FontPath, findSystemFonts, fontManager, get_font, weight_dict

logger = logging.getLogger(__name__)

OWN = "DejaVu Sans"
"""It comes with matplotlib and has Latin, Greek, Cyrillic, Arabic and Hebrew letters."""

NOT_TEXT = ("Last Resort", "LastResort", ".LastResort", "Noto Color Emoji", "Apple Color Emoji")
"""Families that draw a box for every character, or have pictures that matplotlib cannot draw."""

CJK = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "FULLWIDTH", "HALFWIDTH")
"""How Unicode's names of characters of Chinese, Japanese and Korean begin."""


@contextmanager
def fonts_for(text: str) -> Iterator[None]:
    """Let matplotlib draw this text as it stands: with fonts that have its characters, and no formulas between `$`."""
    with rc_context({"font.family": families(text), "text.parse_math": False}):
        yield


def families(text: str) -> list[str]:
    """Return the font families to draw a text with; each draws what those before it lack.

    If no installed font has some of the characters, a warning says what to install.
    """
    shown = {character for character in text if character.isprintable()}
    lacking = shown - characters(faces()[OWN])
    chosen = [OWN]
    if lacking:
        add_new_fonts()
        found = in_order_of_preference(faces(), text)
        while lacking and (best := most_complete(found, lacking)):
            chosen.append(best.name)
            lacking -= characters(best)
    if lacking:
        logger.warning(advice(lacking))
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # the line above says it once
    return [*chosen, "sans-serif"]  # for those who see a text of an SVG without these fonts


def most_complete(found: list[FontEntry], lacking: set[str]) -> FontEntry | None:
    """Return the font that has most of the characters, and of several such fonts the first; None if none has any."""
    best, most = None, 0
    for face in found:
        has = len(lacking & characters(face))
        if has > most:
            best, most = face, has
        if has == len(lacking):
            break
    return best


def faces() -> dict[str, FontEntry]:
    """Return the installed fonts, one for each family: the regular one, or that which is most like it."""
    # matplotlib's list may be older than the removal of a font.
    installed = [entry for entry in fontManager.ttflist if Path(entry.fname).exists()]
    entries = [entry for entry in installed if not entry.name.startswith(NOT_TEXT)]
    return {entry.name: entry for entry in sorted(entries, key=irregularity, reverse=True)}


def irregularity(face: FontEntry) -> tuple[bool, int]:
    """Return how much a font differs from one that is upright and of normal weight."""
    return face.style != "normal", abs(weight_dict.get(face.weight, face.weight) - weight_dict["normal"])


def in_order_of_preference(found: dict[str, FontEntry], text: str) -> list[FontEntry]:
    """Sort fonts: first regular ones, then those whose shapes suit the text, then those without serifs."""
    region = region_of(text)

    def key(face: FontEntry) -> tuple:
        return irregularity(face), not face.name.endswith(region), not face.name.startswith("Noto Sans"), face.name

    return sorted(found.values(), key=key)


def region_of(text: str) -> str:
    """Return how fonts name the country whose Chinese characters a text should have."""
    kinds = set(map(script, text))
    return "JP" if kinds & {"HIRAGANA", "KATAKANA"} else "KR" if "HANGUL" in kinds else "SC"


def script(character: str) -> str:
    return unicodedata.name(character, "unnamed").split()[0]


def characters(face: FontEntry) -> set[str]:
    return set(map(chr, get_font(FontPath(face.fname, face.index)).get_charmap()))


def add_new_fonts() -> None:
    """Tell matplotlib of fonts that were installed after it listed the fonts of this machine."""
    known = {entry.fname for entry in fontManager.ttflist}
    for path in sorted(set(map(str, findSystemFonts())) - known):
        try:
            fontManager.addfont(path)
        except (OSError, RuntimeError):  # not a font that matplotlib can read
            continue


def advice(lacking: set[str]) -> str:
    """Return which characters no font has, and what to install."""
    some = " ".join(sorted(lacking)[:5]) + (" …" if len(lacking) > 5 else "")
    packages = {"fonts-noto-cjk" if script(one).startswith(CJK) else "fonts-noto-core" for one in lacking}
    names = " and ".join(sorted(packages))
    return (
        f"no installed font has {some} and the picture shows boxes: apt install {names}, or put a font with these "
        "characters (https://fonts.google.com/noto) into ~/.local/share/fonts"
    )
