"""Pictures of attention: a heat map for each layer, with tokens on both axes.

The color scale runs from white to dark blue, so the pictures are also readable in grayscale.
"""

import html
import io
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from lwc_fairseq_compat import UserError

from ..files import write_whole
from .panels import Panel

CELL = 0.17
"""Width of a token in inches, enough for a label of 7 points."""

FORMATS = (".png", ".svg", ".html")


def draw(made: list[Panel], path: Path, title: str) -> None:
    """Write a picture as a .png, .svg or self-contained .html file.

    Raises:
        UserError: the path has another suffix.
    """
    if path.suffix not in FORMATS:
        raise UserError(f"--out {path}: give a name that ends in {', '.join(FORMATS)}")
    figure = make_figure(made, title)
    if path.suffix == ".html":
        text = io.StringIO()
        figure.savefig(text, format="svg")
        write_whole(path, page(title, text.getvalue()))
    else:
        figure.savefig(path, dpi=150)


def make_figure(made: list[Panel], title: str, tokens_across: int = 100) -> Figure:
    """Draw the panels in a grid that is about `tokens_across` tokens wide."""
    across = min(len(made), max(1, tokens_across // len(made[0].columns)))
    down = -(-len(made) // across)
    width, height = (CELL * len(tokens) + 1.1 for tokens in (made[0].columns, made[0].rows))
    figure = Figure(figsize=(max(4.0, across * width), down * height + 0.5), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False)
    used, left = axes.flat[: len(made)], axes.flat[len(made) :]
    for panel, place in zip(made, used, strict=True):
        image = draw_panel(panel, place)
    for place in left:
        place.remove()
    figure.colorbar(image, ax=used, shrink=0.5).ax.tick_params(labelsize=7)
    figure.suptitle(title, fontsize=9, wrap=True)
    return figure


def draw_panel(panel: Panel, axes):
    image = axes.imshow(panel.weights, cmap="Blues", vmin=0, vmax=1, aspect="equal")
    axes.set_title(panel.title, fontsize=8)
    axes.set_xticks(range(len(panel.columns)), panel.columns, rotation=90, fontsize=7)
    axes.set_yticks(range(len(panel.rows)), panel.rows, fontsize=7)
    axes.tick_params(length=0)
    if panel.split < len(panel.columns):
        axes.axvline(panel.split - 0.5, color="black", linewidth=1)
    return image


def page(title: str, svg: str) -> str:
    """Return an HTML page with one picture."""
    body = svg[svg.index("<svg") :]
    name = html.escape(title)
    style = "body{font-family:sans-serif;margin:1em}svg{max-width:100%;height:auto}"
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{name}</title>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}<style>{style}</style></head><body>{body}</body></html>\n'


def save_weights(made: list[Panel], path: Path) -> None:
    """Write the data of a picture: weights (layers, rows, columns), tokens, and the number of source columns."""
    with path.open("wb") as out:
        np.savez(
            out,
            weights=np.stack([panel.weights.numpy() for panel in made]),
            rows=np.array(made[0].rows),
            columns=np.array(made[0].columns),
            source_columns=made[0].split,
        )
