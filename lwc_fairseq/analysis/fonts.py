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
    """Return the font families to draw a text with; each draws what those before it lack. If no installed font has some
    of the characters, a warning says what to install."""
    lacking = set(filter(str.isprintable, text)) - characters(installed(text)[OWN])
    chosen = [OWN]
    if lacking:
        add_new_fonts()
        fonts = list(installed(text).values())
        while lacking:
            complete = (font for font in fonts if lacking <= characters(font))
            best = next(complete, None) or max(fonts, key=lambda font: len(lacking & characters(font)))
            if lacking.isdisjoint(characters(best)):
                break
            chosen.append(best.name)
            lacking -= characters(best)
    if lacking:
        some = " ".join(sorted(lacking)[:5]) + (" …" if len(lacking) > 5 else "")
        scripts = map(script, lacking)
        packages = {"fonts-noto-cjk" if name.startswith(CJK) else "fonts-noto-core" for name in scripts}
        logger.warning(
            f"no installed font has {some} and the picture shows boxes: apt install {' and '.join(sorted(packages))}, "
            "or put a font with these characters (https://fonts.google.com/noto) into ~/.local/share/fonts"
        )
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # the line above says it once
    return [*chosen, "sans-serif"]  # for those who see a text of an SVG without these fonts


def installed(text: str) -> dict[str, FontEntry]:
    """Return the installed fonts, one for each family: the regular one, or the one most like it.

    Three criteria determine the order: regular fonts first, then fonts with the shapes of Chinese characters that suit
    the text's country, then the fonts of Noto Sans.
    """
    scripts = set(map(script, text))
    region = "JP" if scripts & {"HIRAGANA", "KATAKANA"} else "KR" if "HANGUL" in scripts else "SC"

    def preference(font: FontEntry) -> tuple:
        weight = weight_dict[font.weight] if isinstance(font.weight, str) else font.weight
        irregularity = font.style != "normal", abs(weight - weight_dict["normal"])
        return irregularity, not font.name.endswith(region), not font.name.startswith("Noto Sans"), font.name

    fonts: dict[str, FontEntry] = {}
    for font in sorted(fontManager.ttflist, key=preference):
        # matplotlib's list may be older than the removal of a font.
        if not font.name.startswith(NOT_TEXT) and Path(font.fname).exists():
            fonts.setdefault(font.name, font)
    return fonts


def script(character: str) -> str:
    return unicodedata.name(character, "unnamed").split()[0]


def characters(font: FontEntry) -> set[str]:
    return set(map(chr, get_font(FontPath(font.fname, font.index)).get_charmap()))


def add_new_fonts() -> None:
    """Tell matplotlib of fonts that were installed after it listed the fonts of this machine."""
    known = {font.fname for font in fontManager.ttflist}
    for path in sorted(set(map(str, findSystemFonts())) - known):
        try:
            fontManager.addfont(path)
        except (OSError, RuntimeError):  # not a font that matplotlib can read
            continue
