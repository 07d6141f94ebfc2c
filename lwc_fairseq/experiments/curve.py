"""The plot `table.png` of a table whose rows are points on a curve."""

import textwrap

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.container import Container
from matplotlib.figure import Figure

from ..analysis.fonts import fonts_for
from .results import Result
from .table import Table


def plot_curve(table: Table, results: list[Result]) -> Figure:
    """Plot measured and published values over x, with one line for each series."""
    points = sorted((result for result in results if result.x is not None), key=lambda result: result.x)
    series = list(dict.fromkeys(result.series for result in points))
    with fonts_for(table.title + table.curve + "".join(name or "" for name in series)):
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        named = []  # matplotlib itself leaves out labels that begin with _
        for number, name in enumerate(series):
            named += plot_series(axes, [result for result in points if result.series == name], f"C{number}")
        axes.set(xlabel=table.curve, ylabel=table.metric.upper(), title=textwrap.fill(table.title, 60))
        axes.set_xticks(list(dict.fromkeys(result.x for result in points)))
        axes.grid(alpha=0.3)
        axes.legend(handles=named)
    return figure


def plot_series(axes: Axes, line: list[Result], color: str) -> list[Artist | Container]:
    """Plot the measured and the published values of a series, and return what the legend names."""
    named = []
    label = f"{line[0].series}, " if line[0].series else ""
    measured = [result for result in line if result.value is not None]
    if measured:
        spread = [result.deviation or 0 for result in measured] if measured[0].deviation is not None else None
        x, y = [result.x for result in measured], [result.value for result in measured]
        named.append(axes.errorbar(x, y, spread, fmt="-o", color=color, label=label + "measured", capsize=3))
    published = [result for result in line if result.published is not None]
    if published:
        x, y = [result.x for result in published], [result.published for result in published]
        named += axes.plot(x, y, "--s", color=color, label=label + "published", markerfacecolor="none")
    return named
