"""The output files of a comparison: compare.md, compare.json and lengths.png."""

import json
from dataclasses import asdict
from itertools import cycle
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..files import write_whole
from ..markdown import as_text, table
from .compare import Comparison
from .fonts import fonts_for
from .page import as_png

REMARKS = {"TER": ", lower is better"}
"""What follows the signature of a metric."""


def markdown(found: Comparison) -> str:
    """Return a comparison as Markdown."""
    first = next(iter(found.scores))
    columns = list(found.scores[first])
    test = f"p, against {first}"
    rows = [
        [name, *(number(column, scores[column]) for column in columns), f"{scores['p']:.3f}" if "p" in scores else ""]
        for name, scores in found.scores.items()
    ]
    lines = table(["", *columns, test], rows)
    lines += ["", "sacrebleu; p: approximate randomization of BLEU, 10,000 trials.", ""]
    lines += [f"- {name}: `{signature}`{REMARKS.get(name, '')}" for name, signature in found.signatures.items()]
    lines += groups_page(found) + parts_page(found) + differences_page(found)
    return "\n".join([*lines, ""])


def number(column: str, value: float) -> str:
    """COMET lies between 0 and 1, mostly."""
    return f"{value:.4f}" if column == "COMET" else f"{value:.2f}"


def groups_page(found: Comparison) -> list[str]:
    if not found.groups:
        return []
    names = list(found.scores)
    lines = ["", "## By source length", ""]
    header = [
        "words",
        "sentences",
        *(f"BLEU, {name}" for name in names),
        *(f"length, {name}" for name in [*names, "reference"]),
    ]
    rows = []
    for group in found.groups:
        values = [*(group[what][name] for what in ("bleu", "length") for name in names), group["reference length"]]
        rows.append([group_name(group), str(group["sentences"]), *(f"{value:.2f}" for value in values)])
    return [*lines, *table(header, rows)]


def group_name(group: dict) -> str:
    return f"{group['from']}+" if group["to"] is None else f"{group['from']}–{group['to'] - 1}"


def parts_page(found: Comparison) -> list[str]:
    lines = []
    for tags, scores in found.parts.items():
        rows = [[name, *(f"{value:.2f}" for value in values)] for name, values in scores.items()]
        header = ["", "BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4"]
        lines += ["", f"## Words tagged {tags}", "", *table(header, rows)]
    return lines


def differences_page(found: Comparison) -> list[str]:
    lines = ["", "## Where they differ most"] if found.differences else []
    for one in found.differences:
        texts = {"source": one["source"]} if one["source"] else {}
        texts["reference"] = one["reference"]
        texts |= {f"{name} (chrF2 {one['chrf'][name]})": text for name, text in one["translations"].items()}
        lines += ["", f"Line {one['line']}", ""]
        lines += [f"- {as_text(name)}: {as_text(text)}" for name, text in texts.items()]
    return lines


def write(found: Comparison, out: Path) -> list[Path]:
    """Write compare.md, compare.json and, if there are groups, lengths.png, and return their paths."""
    write_whole(out / "compare.md", markdown(found))
    write_whole(out / "compare.json", json.dumps(asdict(found), indent=1, ensure_ascii=False))
    written = [out / "compare.md", out / "compare.json"]
    if found.groups:
        write_whole(out / "lengths.png", as_png(make_groups_figure(found.groups), dpi=150))
        written.append(out / "lengths.png")
    return written


def make_groups_figure(groups: list[dict]) -> Figure:
    """Plot BLEU and mean length over groups of source length, with one line per system."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    titles = {"bleu": "BLEU", "length": "words of the translation"}
    with fonts_for("".join(groups[0]["length"])):
        for axes, (what, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
            named = plot_groups(axes, groups, what)
            axes.set(xlabel="words of the source", ylabel=title)
            axes.grid(alpha=0.3)
            axes.legend(handles=named, fontsize=8)
    return figure


def plot_groups(axes: Axes, groups: list[dict], what: str) -> list[Line2D]:
    """Plot a value of each system, and return the lines, because matplotlib's legend leaves out names that begin with
    `_`."""
    x = [group_name(group) for group in groups]
    named = []
    for marker, name in zip(cycle("os^Dv<>p*"), groups[0][what], strict=False):
        named += axes.plot(x, [group[what][name] for group in groups], f"-{marker}", label=name)
    if what == "length":
        named += axes.plot(x, [group["reference length"] for group in groups], "k--", label="reference")
    return named
