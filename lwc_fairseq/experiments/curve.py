"""The plot `table.png` of a table whose rows are points on a curve."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .results import Result
from .table import Table


def plot_curve(table: Table, results: list[Result], path: Path) -> None:
    """Plot measured and published values over x, with one line for each series."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    points = sorted((result for result in results if result.x is not None), key=lambda result: result.x)
    for number, series in enumerate(dict.fromkeys(result.series for result in points)):
        plot_series(axes, [result for result in points if result.series == series], f"C{number}")
    axes.set(xlabel=table.curve, ylabel=table.metric.upper(), title=table.title)
    axes.set_xticks(list(dict.fromkeys(result.x for result in points)))
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)


def plot_series(axes: Axes, line: list[Result], color: str) -> None:
    label = f"{line[0].series}, " if line[0].series else ""
    measured = [result for result in line if result.value is not None]
    if measured:
        spread = [result.deviation or 0 for result in measured] if measured[0].deviation is not None else None
        x, y = [result.x for result in measured], [result.value for result in measured]
        axes.errorbar(x, y, spread, fmt="-o", color=color, label=label + "measured", capsize=3)
    published = [result for result in line if result.published is not None]
    if published:
        x, y = [result.x for result in published], [result.published for result in published]
        axes.plot(x, y, "--s", color=color, label=label + "published", markerfacecolor="none")
