"""The page of a table, `table.md`, and the files beside it: table.json and pictures."""

import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import mean

from matplotlib.figure import Figure

from ..analysis.fonts import fonts_for
from ..analysis.translations import TESTS
from ..files import write_whole
from ..pages import as_png, markdown_table, p_value
from .jobs import Settings
from .layout import CURVE, LEARNING_CURVES, PAGE, RECORD, RunFolder
from .results import Record, Result, as_json
from .table_file import ALL, Table
from .training_log import make_learning_curves, read_losses

Columns = dict[str, Callable[[Result], str]]
"""What makes the text of a row's cell, by column."""

WORDS = "Words by part of speech"

FLAGS_IN_ORDER = (
    "A row's flags follow those of all rows, but its own optimizer replaces theirs. Flags from the command line, `more "
    "of train` and `more of generate`, come last. Of two equal flags, the last one counts."
)


TRIALS = (
    "Trials: each row was trained with each of these flags and seed 1. Those with the lowest validation loss were "
    "chosen before the row was trained for this table and translated the test set."
)


def write_table(settings: Settings, record: Record) -> list[Path]:
    """Write the files, and return their paths, table.md first."""
    out, table, results = settings.out, settings.table, record.rows
    write_whole(out / RECORD, as_json(record))
    write_whole(out / PAGE, table_page(record))
    pictures = {}
    if table.curve and any(result.x is not None for result in results):
        pictures[CURVE] = plot_curve(table, results)
    losses = {result.label: read_losses(RunFolder(out, result.name, 1).log("train")) for result in results}
    losses = {label: of_row for label, of_row in losses.items() if of_row.valid}
    if losses:
        pictures[LEARNING_CURVES] = make_learning_curves(losses)
    for name in (CURVE, LEARNING_CURVES):
        (out / name).unlink(missing_ok=True)  # it may be of another table
        if name in pictures:
            write_whole(out / name, as_png(pictures[name], dpi=150))
    return [out / name for name in (PAGE, RECORD, *pictures)]


def table_page(record: Record) -> str:
    """Return a table as Markdown."""
    header, *rows = cells(record)
    lines = [f"# {record.title}", ""]
    for line in (*origin(record), f"Measured on: `{record.measured_on}`."):
        lines += [line, ""]
    lines += [*markdown_table(header, rows), "", *notes(record)]
    if words := word_cells(record):
        lines += ["", f"## {WORDS}", "", *markdown_table(words[0], words[1:]), "", word_note(record)]
    if record.trials:
        lines += ["", TRIALS, "", *markdown_table(*trial_cells(record))]
    lines += ["", f"{record.date}, {record.hardware}, {record.versions}.", "", "```", record.command, "```"]
    lines += ["", "Flags of all rows:", "", "```", *flag_lines(record.flags), "```"]
    if record.row_flags:
        lines += ["", f"Flags of each row. {FLAGS_IN_ORDER}", "", "```"]
        for name, flags in record.row_flags.items():
            lines += [name, *(f"  {line}" for line in flag_lines(flags))]
        lines.append("```")
    return "\n".join([*lines, ""])


def flag_lines(flags: dict[str, str]) -> list[str]:
    return [f"{name}: {value}" for name, value in flags.items() if value]


def origin(record: Record) -> list[str]:
    """Return the paper of a table and the data of its published values, as sentences."""
    if record.paper:
        return [f"{record.paper}.", f"Published on: {record.published_on or 'see the paper'}."]
    return [f"Data: {record.published_on}."] if record.published_on else []


def cells(record: Record) -> list[list[str]]:
    """Return the table as texts: its header, and its rows, which begin with their labels."""
    columns: Columns = {
        **measured_columns(record),
        "chrF2": lambda result: mean_cell(result, "chrf"),
        "parameters": lambda result: f"{result.parameters / 1e6:.2f}M" if result.parameters else "",
        "updates": lambda result: f"{result.updates:,}" if result.updates else "",
        "validation loss": lambda result: mean_cell(result, "valid_loss"),
        "training loss": lambda result: mean_cell(result, "train_loss"),
        **published_columns(record),
        "published parameters": lambda result: f"{result.published_parameters}M" if result.published_parameters else "",
    }
    always = {"parameters", "updates", *(["chrF2"] if record.metric == "BLEU" else [])}
    texts = {name: [cell(result) for result in record.rows] for name, cell in columns.items()}
    texts = {
        name: column
        for name, column in texts.items()
        if name in always or name.startswith(record.metric) or any(column)
    }
    labels = [result.label for result in record.rows]
    return [["", *texts], *map(list, zip(labels, *texts.values(), strict=True))]


def trial_cells(record: Record) -> tuple[list[str], list[list[str]]]:
    """Return the trials as texts: the header, and the rows of the table."""
    rows = [
        [trial.row, trial.flags or "none", "" if trial.loss is None else f"{trial.loss:.3f}", "yes" * trial.is_chosen]
        for trial in record.trials
    ]
    return ["", "flags", "validation loss", "chosen"], rows


def measured_columns(record: Record) -> Columns:
    """Return the columns of the metric and of p or, with named tests, one column of both for each test and for ALL."""
    if not record.tests:
        against = "p" if has_several_baselines(record) else f"p, against {record.baseline or 'the baseline'}"
        return {record.metric: value_cell, against: p_cell}

    def cell(name: str, result: Result) -> str:
        of_test = result.tests[name]
        value = "–" if of_test.value is None else value_text(of_test.value, of_test.deviation)
        return value + p_text(of_test.p, result.baseline)

    columns: Columns = {f"{record.metric}, {name}": partial(cell, name) for name in record.tests}
    return columns | {f"{record.metric}, {ALL}": lambda result: value_cell(result) + p_text(result.p, result.baseline)}


def published_columns(record: Record) -> Columns:
    """Return the column of published values or, with named tests, one for each test and for ALL. A dash says that a row
    has only other published values."""

    def cell(name: str, result: Result) -> str:
        values = {test: of_test.published for test, of_test in result.tests.items()} | {ALL: result.published}
        missing = "" if set(values.values()) == {None} else "–"
        return missing if (value := values[name]) is None else f"{value:.2f}"

    if not record.tests:
        return {f"published {record.metric}": partial(cell, ALL)}
    return {f"published {record.metric}, {name}": partial(cell, name) for name in (*record.tests, ALL)}


def word_cells(record: Record) -> list[list[str]]:
    """Return the table of parts of speech as texts: its header, and the rows for each part of speech. It is empty if
    words were not tagged."""
    if record.tagger is None:
        return []
    scores = [f"BLEU-{n}" for n in (1, 2, 3, 4)]
    has_published = any(part.published for result in record.rows for part in result.parts.values())
    texts = [["tags", "", *scores, *(f"published {name}" for name in scores if has_published)]]
    for name in record.parts_of_speech:
        for result in record.rows:
            measured, published = result.parts[name].values, result.parts[name].published
            cells_of_row = [f"{value:.2f}" for value in measured] or ["–"] * 4
            if has_published:
                cells_of_row += [f"{value:.2f}" for value in published] or [""] * 4
            texts.append([name, result.label, *cells_of_row])
    return texts


def word_note(record: Record) -> str:
    """Return in Markdown how the words were tagged and scored."""
    of_all = f", of {ALL}" if record.tests else ""
    mean_of_seeds = "; mean over seeds" if record.seeds > 1 else ""
    return (
        "BLEU of only the words whose tags begin with these, not smoothed, with the references and the case of the "
        f"table above{of_all}{mean_of_seeds}. Tagger: `{record.tagger}`."
    )


def value_cell(result: Result) -> str:
    """Return the mean of the runs, and whether other runs are missing or failed."""
    if result.value is None:
        return "failed" if result.failed else "not finished" if result.planned else "–"
    failed = ", failed" if result.failed else ""
    missing = f" ({len(result.runs)} of {result.planned} runs{failed})" if len(result.runs) < result.planned else ""
    return f"{value_text(result.value, result.deviation)}{missing}"


def value_text(value: float, deviation: float | None) -> str:
    return f"{value:.2f}" if deviation is None else f"{value:.2f} ± {deviation:.2f}"


def p_cell(result: Result) -> str:
    against = f" (against {result.baseline})" if result.baseline else ""
    return "" if result.p is None else f"{p_value(result.p)}{against}"


def p_text(p: float | None, baseline: str | None) -> str:
    """Return p in brackets, to stand behind a value."""
    against = f", against {baseline}" if baseline else ""
    return "" if p is None else f" (p = {p_value(p)}{against})"


def mean_cell(result: Result, key: str) -> str:
    """Return a mean over runs with two digits after the point, or as 1.20e-05 if these would say nothing."""
    values = [float(run[key]) for run in result.runs if key in run]  # the text "nan" is read, too
    if not values:
        return ""
    value = mean(values)
    return f"{value:.2f}" if value == 0 or 0.005 <= abs(value) < 1e6 else f"{value:.2e}"


def has_several_baselines(record: Record) -> bool:
    return any(result.baseline for result in record.rows)


def notes(record: Record) -> list[str]:
    """Return in Markdown how the values were measured, with sacrebleu's signatures, which all runs share."""
    runs = [run for result in record.rows for run in result.runs]
    bleu, chrf = (next((run[key] for run in runs if key in run), None) for key in ("signature", "chrf_signature"))
    several = record.seeds > 1
    seeds = f"mean ± standard deviation of {record.seeds} seeds" if several else "one seed"
    mean_of_seeds = "; mean over seeds." if several else "."
    measured = f"sacrebleu, `{bleu}`" if bleu else "sacrebleu"
    measured += ", of detokenised text" if record.detokenized else ""
    measured = "in per cent, lower is better" if record.metric == "AER" else measured
    lines = [f"{record.metric}: {measured}; {seeds}."]
    if record.tests:
        lines.append(f"{ALL}: the sentences of all tests as one corpus, which chrF2 is of, too.")
    if chrf:
        lines.append(f"chrF2: sacrebleu, `{chrf}`{mean_of_seeds}")
    if any("valid_loss" in run for run in runs):
        lines.append(f"Losses: of each row's criterion, at the lowest validation loss{mean_of_seeds}")
    if any(result.p is not None for result in record.rows):
        against = record.baseline or "the baseline"
        against += ", unless a row names another" if has_several_baselines(record) else ""
        over_seeds = "; over all seeds together, so it is somewhat too small." if several else "."
        lines.append(f"p: {TESTS[record.significance].title}, against {against}{over_seeds}")
    if record.parts_of_speech and record.tagger is None:
        names = ", ".join(record.parts_of_speech)
        lines.append(f"Words by part of speech ({names}): not scored; `--tagger COMMAND` tags and scores them.")
    return lines


def plot_curve(table: Table, results: list[Result]) -> Figure:
    """Plot measured and published values over x, with one line for each series."""
    points = sorted((result for result in results if result.x is not None), key=lambda result: result.x or 0.0)
    series = list(dict.fromkeys(result.series for result in points))
    with fonts_for(table.title + (table.curve or "") + "".join(name or "" for name in series)):
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        named: list = []  # matplotlib itself leaves out labels that begin with _
        for number, name in enumerate(series):
            line = [result for result in points if result.series == name]
            color, label = f"C{number}", f"{name}, " if name else ""
            if measured := [result for result in line if result.value is not None]:
                x, y = zip(*((result.x, result.value) for result in measured), strict=True)
                deviations = [result.deviation for result in measured]
                spread = [deviation or 0 for deviation in deviations] if any(deviations) else None
                named.append(axes.errorbar(x, y, spread, fmt="-o", color=color, label=label + "measured", capsize=3))
            if published := [result for result in line if result.published is not None]:
                x, y = zip(*((result.x, result.published) for result in published), strict=True)
                named += axes.plot(x, y, "--s", color=color, label=label + "published", markerfacecolor="none")
        axes.set(xlabel=table.curve, ylabel=table.metric.upper(), title=textwrap.fill(table.title, 60))
        axes.set_xticks(sorted({result.x for result in points if result.x is not None}))
        axes.grid(alpha=0.3)
        axes.legend(handles=named)
    return figure
