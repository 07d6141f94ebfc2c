"""Pictures of attention: a heat map for each layer, with tokens on both axes.

The color scale runs from white to dark blue, so the pictures are also readable in grayscale. The columns of a language
that is written from right to left, as Arabic and Hebrew are, run from right to left.
"""

import io
import textwrap
import unicodedata
from itertools import accumulate
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from lwc_fairseq_compat import UserError

from ..files import write_whole
from .attention import Panel, is_right_to_left
from .fonts import fonts_for

CELL = 0.17
"""Width of a token in inches, enough for a label of 7 points."""

CHARACTER = 0.06
"""Mean width of a character of such a label in inches. In the title, of 9 points, it is 4/3 of this."""

LONG = 30
"""If a sentence has more tokens than this, labels stand on both sides, and thin lines help the eye along."""

DPI = 150
TEXT_AS_TEXT: Any = {"svg.fonttype": "none", "pdf.fonttype": 42, "font.sans-serif": ["DejaVu Sans"]}


def draw(made: list[Panel], path: Path, sentences: list[str]) -> None:
    """Write a picture, with the source and the translation above the panels, as a .png, .svg or .pdf file. Raises
    UserError if the picture is too large for a .png."""
    figure = make_figure(made, sentences)
    if path.suffix == ".png" and max(figure.get_size_inches()) * DPI >= 2**16:  # matplotlib cannot draw it
        raise UserError(
            f"--out {path}: {len(made)} layers of {len(made[0].rows)} by {len(made[0].columns)} tokens are too large "
            "for a .png: choose a layer with --layer, or write a .pdf, .svg or .html"
        )
    data = io.BytesIO()
    with rc_context(TEXT_AS_TEXT):
        figure.savefig(data, format=path.suffix[1:], dpi=DPI)
    write_whole(path, data.getvalue())


def make_figure(made: list[Panel], sentences: list[str], tokens_across: int = 100) -> Figure:
    """Draw the panels in a grid that is about `tokens_across` tokens wide, below the source and the translation."""
    rows, columns = made[0].rows, made[0].columns
    across = min(len(made), max(1, tokens_across // len(columns)))
    down = -(-len(made) // across)
    sides = 2 if is_long(made[0]) else 1
    panel_width = CELL * len(columns) + sides * CHARACTER * max(map(cells, rows)) + 0.4
    panel_height = CELL * len(rows) + sides * CHARACTER * max(map(cells, columns)) + 0.5
    width, height = max(4.0, across * panel_width + 0.6), down * panel_height  # with the color scale
    text = title(sentences, width)
    with fonts_for("".join([text, *rows, *columns])):
        figure = Figure(figsize=(width, height + 0.2 * text.count("\n") + 0.4), layout="constrained")
        axes = figure.subplots(down, across, squeeze=False)
        for panel, place in zip(made, axes.flat, strict=False):
            image = draw_panel(panel, place, *map(is_right_to_left, sentences))
        for place in axes.flat[len(made) :]:
            place.remove()
        place = {"ax": axes[0, -1], "anchor": (0, 1), "shrink": min(1.0, 1.5 / panel_height), "aspect": 15}
        figure.colorbar(image, ticks=[0, 0.5, 1], **place).ax.tick_params(labelsize=7)
        figure.suptitle(text, fontsize=9)
    return figure


def draw_panel(panel: Panel, axes: Axes, source_reversed: bool, target_reversed: bool) -> AxesImage:
    """Draw the weights of a layer; the columns of a reversed side run from right to left."""
    ends = [*accumulate(map(len, panel.sides))]
    by_side = [[*range(end - len(side), end)] for side, end in zip(panel.sides, ends, strict=True)]
    order = by_side[0][:: -1 if source_reversed else 1]
    order += [i for side in by_side[1:] for i in side[:: -1 if target_reversed else 1]]
    image = axes.imshow(panel.weights[:, order], cmap="Blues", vmin=0, vmax=1, aspect="equal")
    axes.set_title(panel.title, fontsize=8)
    labels: Any = {"fontsize": 7, "rotation_mode": "anchor", "verticalalignment": "center"}
    columns = [embedded(panel.columns[i]) for i in order]
    axes.set_xticks(range(len(order)), columns, rotation=90, horizontalalignment="right", **labels)
    axes.set_yticks(range(len(panel.rows)), map(embedded, panel.rows), **labels)
    axes.tick_params(length=0)
    if is_long(panel):
        axes.tick_params(labeltop=True, labelright=True)
        for tick in [*axes.xaxis.get_major_ticks(), *axes.yaxis.get_major_ticks()]:
            tick.label2.set_horizontalalignment("left")
        for side, draw_line in ((panel.rows, axes.axhline), (columns, axes.axvline)):
            for number in range(5, len(side), 5):
                draw_line(number - 0.5, color="0.85", linewidth=0.5)
    for end in ends[:-1]:
        axes.axvline(end - 0.5, color="black", linewidth=1)
    return image


def is_long(panel: Panel) -> bool:
    return max(len(panel.rows), len(panel.sides[0])) > LONG


def title(sentences: list[str], width: float) -> str:
    """Return the sentences, each on lines of its own, at most `width` inches wide."""
    most = width / (CHARACTER * 4 / 3)
    parts = [textwrap.wrap(text, max(10, int(most * len(text) / max(1, cells(text))))) for text in sentences]
    gap = "\n\n" if any(len(lines) > 1 for lines in parts) else "\n"
    return gap.join("\n".join(map(embedded, lines)) for lines in parts)


def cells(text: str) -> int:
    """Return how wide a text is, in characters; those of Chinese, Japanese and Korean are twice as wide as others."""
    return len(text) + sum(unicodedata.east_asian_width(character) in "WF" for character in text)


def embedded(text: str) -> str:
    """Put Unicode's invisible characters RLE and PDF around a right-to-left text. They mark it as right-to-left even
    for programs that assume that a line runs from left to right. Control characters, which no SVG can have, become
    U+FFFD."""
    text = "".join("\ufffd" if unicodedata.category(character) == "Cc" else character for character in text)
    return f"\u202b{text}\u202c" if is_right_to_left(text) else text
