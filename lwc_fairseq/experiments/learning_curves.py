"""The plot `learning_curves.png`: the losses of a table's rows during training."""

import itertools
import math

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..analysis.fonts import fonts_for
from .training_log import Losses


def make_learning_curves(losses: dict[str, Losses]) -> Figure:
    """Plot the losses of each row over the updates: solid on the validation set, dashed on the training set.

    The scale leaves out the high losses of the first quarter of each training, and what is no number or infinite.

    Args:
        losses: the losses by the row's label. Each row has at least one validation loss.
    """
    with fonts_for("".join(losses)):
        figure = Figure(figsize=(8, 4), layout="constrained")
        plot_losses(figure.subplots(), losses)
    return figure


def plot_losses(axes: Axes, losses: dict[str, Losses]) -> None:
    """Draw the lines, labels and legend of `make_learning_curves`."""
    colors = colormaps["tab10" if len(losses) <= 10 else "tab20"].colors
    named = []  # matplotlib itself leaves out labels that begin with _
    for color, (label, row) in zip(itertools.cycle(colors), losses.items(), strict=False):
        marker = "." * (len(row.valid) == 1)
        named += axes.plot(row.valid.keys(), row.valid.values(), color=color, label=label, marker=marker)
        axes.plot(row.train.keys(), row.train.values(), "--", color=color, linewidth=0.8)
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
