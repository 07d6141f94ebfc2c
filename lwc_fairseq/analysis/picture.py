"""Pictures of attention: a heat map for each layer, tokens on both axes.

A row is the step that produces a token, a column what it attends to. The scale goes from white to dark blue, so it
reads the same in grey.
"""

import html
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from fairseq.dataclass.configs import GenerationConfig
from fairseq.tasks import FairseqTask
from matplotlib.figure import Figure
from torch import Tensor, nn

from lwc_fairseq_compat import UserError

from ..files import write_whole
from ..models.interface import DecoderAttention, attention_weights
from .alignment import pick

START = "(start)"
MEAN = "mean"
CELL = 0.17  # inches of a token, enough for a label of 7 points
FORMATS = (".png", ".svg", ".html")


@dataclass(frozen=True)
class Panel:
    """One heat map; `split` columns in, what is attended to changes from the source to something else."""

    title: str
    rows: list[str]
    columns: list[str]
    weights: Tensor  # (rows, columns)
    split: int


def panels(
    model: nn.Module, task: FairseqTask, source: str, target: str | None, layer: int | str | None, head: int | None
) -> list[Panel]:
    """What a model attends to while it produces a translation.

    Args:
        source, target: tokens as in the data, sub-words if it has them; without a target the model's own translation.
        layer: the only one to show; None shows each, MEAN the mean of all.
        head: the only one to show; None shows their mean.

    Raises:
        UserError: there is no such layer or head, or no token.
    """
    device = next(model.parameters()).device
    src_tokens = encode(task.source_dictionary, source, "--source").to(device)[None]
    if target is None:
        tokens = translate(model, task, src_tokens)
    else:
        tokens = encode(task.target_dictionary, target, "--target").to(device)
    if getattr(task.cfg, "reverse_target", False):
        tokens = torch.cat([tokens[:-1].flip(0), tokens[-1:]])
    with torch.no_grad():
        weights = attention_weights(model, src_tokens, torch.cat([tokens[-1:], tokens[:-1]])[None])
    words = [*source.split(), "</s>"]
    rows = symbols(task, tokens)
    others, columns = other_columns(model, task, src_tokens, weights, rows)
    made = []
    for number in range(len(weights.source)) if layer is None else [layer]:
        parts = [by_head(of_layer(kind, number)[0], head) for kind in (weights.source, others) if kind]
        title = "mean of the layers" if number == MEAN else f"layer {number}"
        title += "" if head is None else f", head {head}"
        made.append(Panel(title, rows, words + columns, torch.cat(parts, dim=1).float().cpu(), len(words)))
    return made


def symbols(task: FairseqTask, tokens: Tensor) -> list[str]:
    return [task.target_dictionary[token] for token in tokens.tolist()]


def other_columns(
    model: nn.Module, task: FairseqTask, src_tokens: Tensor, weights: DecoderAttention, produced: list[str]
) -> tuple[list[Tensor], list[str]]:
    """What the model attends to beside the source, by layer, and the tokens that this is."""
    if weights.target:
        return weights.target, [START, *produced[:-1]]
    if weights.reverse:
        return weights.reverse, symbols(task, model.reverse_translations(src_tokens)[0])
    return [], []


def of_layer(weights: list[Tensor], layer: int | str) -> Tensor:
    return torch.stack(weights).mean(0) if layer == MEAN else pick(weights, layer, "--layer")


def by_head(weights: Tensor, head: int | None) -> Tensor:
    """(H, m, n) to (m, n)."""
    return weights.mean(0) if head is None else pick(weights, head, "--head")


def encode(dictionary, text: str, option: str) -> Tensor:
    """Token ids with the end symbol; words that the dictionary lacks are unknown ones."""
    if not text.split():
        raise UserError(f"{option}: give a sentence")
    return dictionary.encode_line(text, add_if_not_exist=False).long()


def translate(model: nn.Module, task: FairseqTask, src_tokens: Tensor) -> Tensor:
    """The model's own translation, with beam 5, in reading order."""
    generator = task.build_generator([model], GenerationConfig(beam=5))
    lengths = src_tokens.new_tensor([src_tokens.size(1)])
    sample = {"net_input": {"src_tokens": src_tokens, "src_lengths": lengths}}
    return task.inference_step(generator, [model], sample)[0][0]["tokens"]


def draw(made: list[Panel], path: Path, title: str) -> None:
    """Write a picture as .png, .svg, or .html that needs nothing else.

    Raises:
        UserError: the name ends otherwise.
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
    """The panels in a grid, about as wide as so many tokens."""
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
    """A page with one picture in it."""
    body = svg[svg.index("<svg") :]
    name = html.escape(title)
    style = "body{font-family:sans-serif;margin:1em}svg{max-width:100%;height:auto}"
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{name}</title>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}<style>{style}</style></head><body>{body}</body></html>\n'


def save_weights(made: list[Panel], path: Path) -> None:
    """The numbers of the picture: weights (layers, rows, columns), the tokens, and where the source's columns end."""
    with path.open("wb") as out:
        np.savez(
            out,
            weights=np.stack([panel.weights.numpy() for panel in made]),
            rows=np.array(made[0].rows),
            columns=np.array(made[0].columns),
            source_columns=made[0].split,
        )
