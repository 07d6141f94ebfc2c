"""The log of fairseq-train: losses, sizes, how far a training is, and the plot `learning_curves.png` of losses."""

import itertools
import json
import math
import re
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from matplotlib import color_sequences
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..analysis.fonts import fonts_for

STATISTICS = r"\| (train|%s) \| (\{[^{}]*\}|epoch \d+ \| .*\n)"
"""Matches the line of fairseq-train at the end of an epoch or of a validation on the set `%s`, with `--log-format json`
or `simple`."""

PROGRESS = re.compile(
    r"^(\S+ \S+) \| INFO \| train_inner \| "
    r'(?:\{"epoch": \d+, "update": (?P<epochs>[\d.e+-]+),.*"num_updates": "(?P<json>[\d.e+]+)"'
    r"|epoch (?P<epoch>\d+): +(?P<done>\d+) / (?P<all>\d+) .*num_updates=(?P<simple>[\d.e+]+))",
    re.MULTILINE,
)
"""Matches a line within an epoch, in the same formats: its time, epoch and number of updates."""


@dataclass(frozen=True)
class Losses:
    """The losses of a training, by the number of updates."""

    train: dict[int, float] = field(default_factory=dict)
    valid: dict[int, float] = field(default_factory=dict)
    bleu: dict[int, float] = field(default_factory=dict)  # of the validation set, with --eval-bleu

    def best(self) -> dict[str, float]:
        """Return the lowest validation loss as "valid_loss", and the training loss of that epoch as "train_loss".

        Losses that are not finite do not count. Losses that the log does not contain are left out.
        """
        finite = [(loss, updates) for updates, loss in self.valid.items() if math.isfinite(loss)]
        if not finite:
            return {}
        _, updates = min(finite)
        train = {"train_loss": self.train[updates]} if updates in self.train else {}
        return {"valid_loss": self.valid[updates], **train}


def read_losses(log: Path) -> Losses:
    """Read the losses of a training. A resumed training may repeat an epoch; its last values count. Of several
    validation sets, the first one counts, as it does for the best checkpoint."""
    losses, text = Losses(), text_of(log)
    subset = [*re.findall(r"'valid_subset': '([^',]+)", text), "valid"][0]
    for name, line in re.findall(STATISTICS % re.escape(subset), text):
        values = values_of(name, line)
        if "loss" in values:
            updates = whole(values["num_updates"])
            (losses.train if name == "train" else losses.valid)[updates] = float(values["loss"])
            if name == subset and "bleu" in values:
                losses.bleu[updates] = float(values["bleu"])
    return losses


def values_of(name: str, line: str) -> dict[str, str]:
    """Return the values, by name, in what STATISTICS matches."""
    if line.startswith("{"):
        return {key.removeprefix(f"{name}_"): value for key, value in json.loads(line).items()}
    return dict(item.split(" ", 1) for item in line.strip().split(" | "))


@dataclass(frozen=True)
class Position:
    """How far a training is. A training that was resumed began with its last start."""

    updates: int
    share: float  # of --max-update or --max-epoch, whichever ends it first; 0 without either
    left_s: float | None  # seconds from the line that says so to the end, at the mean speed since the start


def read_position(log: Path) -> Position | None:
    """Return how far a training is, or None if it has not said so since it started."""
    text = text_of(log)
    start = text.rfind("| INFO | fairseq_cli.train | {")  # all settings
    lines = list(PROGRESS.finditer(text, start + 1))
    if not lines:
        return None
    limits = [re.findall(rf"'max_{unit}': (\d+)", text[start : lines[0].start()])[-1:] for unit in ("update", "epoch")]
    max_updates, max_epochs = (int(limit[0]) if limit else 0 for limit in limits)
    first, last = lines[0], lines[-1]
    share = share_done(last, max_updates, max_epochs)
    gone = share - share_done(first, max_updates, max_epochs)
    seconds = (datetime.fromisoformat(last[1]) - datetime.fromisoformat(first[1])).total_seconds()
    return Position(updates_of(last), share, seconds / gone * (1 - share) if gone > 0 else None)


def share_done(line: re.Match, max_updates: float, max_epochs: float) -> float:
    """Return which share of a training is done at a line that PROGRESS matches, by the limit that ends it first.

    A limit of 0 is none.
    """
    epochs = float(line["epochs"] or int(line["epoch"]) - 1 + int(line["done"]) / int(line["all"]))
    shares = [done / most for done, most in ((updates_of(line), max_updates), (epochs, max_epochs)) if most]
    return min(1.0, max(shares, default=0.0))


def updates_of(line: re.Match) -> int:
    return whole(line["json"] or line["simple"])


def read_sizes(log: Path) -> tuple[int | None, int | None]:
    """Return the numbers of parameters and updates, if the log contains them."""
    parameters = re.search(r"num\. shared model params: ([\d,]+)", text_of(log))
    updates = re.findall(r'num_updates(?:": "|=| )(\d[\d.e+]*)', text_of(log))  # --log-format json, simple
    return parameters and int(parameters[1].replace(",", "")), whole(updates[-1]) if updates else None


def has_ended(log: Path) -> bool:
    """Return whether the training has ended regularly."""
    return "done training in" in tail(log, lines=3)


def tail(log: Path, lines: int = 15) -> str:
    """Return the last lines of a log, indented and truncated."""
    return "\n".join("    " + line[:300] for line in text_of(log).splitlines()[-lines:])


def text_of(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""


def whole(text: str) -> int:
    """Read a whole number. fairseq writes a million as 1e+06, and keeps six digits."""
    return round(float(text))


def make_learning_curves(losses: dict[str, Losses]) -> Figure:
    """Plot the losses of each row over the updates: solid on the validation set, dashed on the training set.

    The scale leaves out the high losses of the first quarter of each training, and losses that are not finite.

    Args:
        losses: the losses by the row's label. Each row has at least one validation loss.
    """
    with fonts_for("".join(losses)):
        figure = Figure(figsize=(8, 4), layout="constrained")
        plot_losses(figure.subplots(), losses)
    return figure


def plot_losses(axes: Axes, losses: dict[str, Losses]) -> None:
    """Draw the lines, labels and legend of `make_learning_curves`."""
    colors = color_sequences["tab10" if len(losses) <= 10 else "tab20"]
    named = []  # matplotlib itself leaves out labels that begin with _
    for color, (label, row) in zip(itertools.cycle(colors), losses.items(), strict=False):
        marker = "." * (len(row.valid) == 1)
        named += axes.plot(list(row.valid), list(row.valid.values()), color=color, label=label, marker=marker)
        axes.plot(list(row.train), list(row.train.values()), "--", color=color, linewidth=0.8)
    axes.set(xlabel="updates", ylabel="loss (validation; dashed: training)", ylim=limits(list(losses.values())))
    axes.grid(alpha=0.3)
    axes.legend(handles=named, fontsize=8)


def limits(losses: list[Losses]) -> tuple[float, float]:
    """Return the range of the losses after the first quarter of each training, with a margin."""
    late = [
        loss
        for row in losses
        for values in (row.valid, row.train)
        for updates, loss in values.items()
        if updates >= max(row.valid) / 4 and math.isfinite(loss)
    ] or [0.0]
    margin = 0.05 * (max(late) - min(late)) or 0.1
    return min(late) - margin, max(late) + margin
