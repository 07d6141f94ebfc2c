"""What `lwc-fairseq watch` shows: the runs of a table, line by line, and their curves, as text for a terminal.

The letter of a run stands at its line and along its curve, so that curves can be told apart without colors. plotille
writes colors only to a terminal, and not if NO_COLOR is set.
"""

import math
import string
import time
from collections import Counter
from dataclasses import dataclass
from itertools import cycle, pairwise

import plotille

from .states import DONE, FAILED, RUNNING, SILENT, STOPPED, WAITING, Run, duration
from .training_log import Losses, limits

COLORS = ("cyan", "yellow", "green", "magenta", "red", "blue", "white")

ORDER = (RUNNING, WAITING, STOPPED, SILENT, FAILED, DONE)
"""The order in which states are counted, and in which runs are shown if there is no room for all."""

CHART_LINES, LEAST_CHART_LINES = 20, 9
SIDE_BY_SIDE = 76
"""The least width of a frame in which two charts stand beside each other."""

NOTE = 20
"""The columns of a note. Where they and the names of the runs have no room, lines lack the number of updates."""

LEAST_WIDTH = 32
"""A frame has the columns of a list at least. A narrower terminal shows its left part, or breaks its lines."""

MARGIN = 9
"""The columns left of a chart."""


@dataclass(frozen=True)
class Curve:
    """A curve, by the number of updates. Its values are finite, and there is at least one."""

    letter: str
    color: str
    values: dict[int, float]


def make_frame(title: str, runs: list[Run], width: int, height: int | None = None) -> str:
    """Return one picture of all runs.

    Args:
        height: lines that the terminal has. If they are too few for all runs, those that have ended give way first.
            None shows all runs.
    """
    width = max(width, LEAST_WIDTH)
    marks = list(zip(runs, cycle(string.ascii_letters), cycle(COLORS), strict=False))
    charts = {}
    for name, kind in (("validation loss", "valid"), ("validation BLEU", "bleu")):
        values = [finite(getattr(run.losses, kind)) for run in runs]
        if any(values):
            charts[name] = [Curve(*mark[1:], points) for mark, points in zip(marks, values, strict=True) if points]
    beside = width >= SIDE_BY_SIDE
    stacked = min(1, len(charts)) if beside else len(charts)
    listed, room = list_runs(marks, width), CHART_LINES
    if height is not None:
        if stacked:
            room = max(LEAST_CHART_LINES, min(CHART_LINES, (height - 2 - len(listed)) // stacked))
        listed = list_runs(marks, width, max(3, height - 2 - stacked * room))
    text = [header(title, runs, width), *listed]
    if charts and beside:
        columns = [draw(name, curves, width // len(charts), room) for name, curves in charts.items()]
        text += map("".join, zip(*columns, strict=True))
    else:
        text += [line for name, curves in charts.items() for line in draw(name, curves, width, room)]
    return "\n".join(line.rstrip() for line in text)


def header(title: str, runs: list[Run], width: int) -> str:
    counts = Counter(run.state for run in runs)
    said = ", ".join(f"{counts[state]} {state}" for state in ORDER if counts[state]) or "no run has begun"
    said = f": {said} ({time.strftime('%H:%M:%S')})"
    room = max(10, width - len(said))
    return cut((title if len(title) <= room else "…" + title[1 - room :]) + said, width)


def list_runs(marks: list[tuple[Run, str, str]], width: int, lines: int | None = None) -> list[str]:
    """Return a line of titles and, for each run, one or two lines: of all runs, or of those that fit into the lines.

    Args:
        marks: the runs, their letters and their colors.
    """
    if not marks:
        return []
    has_bleu = any(run.losses.bleu for run, _, _ in marks)
    longest = max(len(run.name) for run, _, _ in marks)
    for has_updates in (True, False):
        titles = f"  state  {'   updates' * has_updates}  best loss{'   BLEU' * has_bleu}"
        room_of_names = width - 2 - len(titles) - (NOTE if has_updates else 0)
        if longest <= room_of_names:
            break
    name_width = min(longest, room_of_names)
    texts = {}
    for run, letter, color in marks:
        loss, bleu = run.losses.best().get("valid_loss"), max(run.losses.bleu.values(), default=None)
        values = [cut(run.name, name_width).ljust(name_width), run.state.ljust(7)]
        updates = [*run.losses.valid, *run.losses.train, *([run.position.updates] if run.position else [])]
        values += [number(max(updates, default=None), "d", 8)] if has_updates else []
        values += [number(loss, ".3f", 9)]
        values += [number(bleu, ".1f", 5)] if has_bleu else []
        note = note_of(run)
        values += [] if run.state == FAILED else [note]
        texts[run.name] = [plotille.color(letter, fg=color) + cut(f" {'  '.join(values)}".rstrip(), width - 1)]
        texts[run.name] += [cut(f"    {note}", width)] if run.state == FAILED and note else []
    shown = list(texts)
    if lines is not None and 1 + sum(map(len, texts.values())) > lines:
        room, shown = lines - 2, []
        for run in sorted((run for run, _, _ in marks), key=lambda run: ORDER.index(run.state)):
            if len(texts[run.name]) <= room:
                room -= len(texts[run.name])
                shown.append(run.name)
    text = [line for name in texts if name in shown for line in texts[name]]
    return [f"  {'run':{name_width}}{titles}", *text] + [f"  and {len(texts) - len(shown)} more"] * (
        len(shown) < len(texts)
    )


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def number(value: float | None, form: str, width: int) -> str:
    return "".rjust(width) if value is None else format(value, form).rjust(width)


def note_of(run: Run) -> str:
    """Return what is known of a run besides its state; of one that trains, the time that its training still takes."""
    parts = [run.note]
    if run.position and run.state not in (DONE, FAILED) and run.note.startswith("training"):
        share, left = run.position.share, run.position.left_s
        parts += [f"{share:.0%}"] if share else []
        parts += [f"{duration(left)} left"] if left is not None and run.state == RUNNING else []
    return ", ".join(filter(None, [*parts, run.job]))


def finite(values: dict[int, float]) -> dict[int, float]:
    return {updates: value for updates, value in sorted(values.items()) if math.isfinite(value)}


def draw(title: str, curves: list[Curve], width: int, lines: int) -> list[str]:
    """Return a chart as lines of the same width."""
    columns, rows = max(10, width - MARGIN - 1), lines - 3
    low, high = limits([Losses(valid=curve.values) for curve in curves])
    if min(min(curve.values.values()) for curve in curves) >= 0:
        low = max(low, 0.0)
    end = max(max(curve.values) for curve in curves) or 1
    edge = end * 2 * columns / (2 * columns - 1)  # which is outside the canvas
    canvas = plotille.Canvas(columns, rows, xmin=0, xmax=edge, ymin=low, ymax=high)
    letters: dict[tuple[int, int], tuple[int, float, Curve]] = {}  # by the place of the letter
    for curve in curves:
        # A value far outside only has to leave the chart in about the right direction.
        points = [(x, min(max(y, 2 * low - high), 2 * high - low)) for x, y in curve.values.items()]
        for begin, after in pairwise(points):
            canvas.line(*begin, *after, color=curve.color)
        for x, y in points[:: -max(1, len(points) // 3)]:
            across, up = canvas.dots_between(0, low, x, y)
            letters.setdefault((across // 2, up // 4), (x, y, curve))
    for x, y, curve in letters.values():
        canvas.point(x, y, color=curve.color, marker=curve.letter)
    labels = {0: high, rows // 2: (low + high) / 2, rows - 1: low}
    text = [f"{'':{MARGIN}}{title}".ljust(width)[:width]]
    for i, row in enumerate(canvas.plot().replace("\u2800", " ").splitlines()):
        label = number(labels.get(i), ".3f" if abs(high) < 1000 else ".1e", MARGIN - 2)
        text.append(f"{label} {'┤' if i in labels else '│'}{row} ")
    axis = f"0{'updates':^{columns - 1 - len(str(end))}}{end}"
    text += [f"{'':{MARGIN - 1}}└{'─' * columns} ", f"{'':{MARGIN}}{axis} "]
    return text
