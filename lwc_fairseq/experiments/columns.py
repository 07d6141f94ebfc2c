"""The columns of a table in `table.md` and `report.html`, and the notes on how their values were measured."""

from statistics import mean

from .record import Record
from .results import Result

P = "p, against "
MEANS = {"chrF2": "chrf", "validation loss": "valid_loss", "training loss": "train_loss"}
"""Columns that show the mean over a row's runs, with the key of the value in a run."""

LOSSES = ("validation loss", "training loss")
FLAGS_IN_ORDER = (
    "A row's flags follow those of all rows, but its own optimizer replaces theirs. Flags from the command line, `more "
    "of train` and `more of generate`, come last. Of two equal flags, the last one counts."
)


def columns_of(record: Record) -> list[str]:
    """Return the column headers, without columns that would be empty."""
    results = record.rows
    columns = [record.metric]
    if any(result.p is not None for result in results):
        columns.append("p" if has_several_baselines(record) else P + (record.baseline or "the baseline"))
    columns += [*(["chrF2"] if record.metric == "BLEU" else []), "parameters", "updates"]
    columns += [name for name in LOSSES if any(MEANS[name] in run for result in results for run in result.runs)]
    if any(result.published is not None for result in results):
        columns.append(f"published {record.metric}")
    if any(result.published_parameters for result in results):
        columns.append("published parameters")
    return columns


def cell(result: Result, column: str) -> str:
    """Return the content of a row in a column."""
    if column in ("BLEU", "AER"):
        return value_cell(result)
    if column in MEANS:
        values = [float(run[MEANS[column]]) for run in result.runs if MEANS[column] in run]
        return mean_cell(values) if values else ""
    if column == "parameters":
        return f"{result.parameters / 1e6:.2f}M" if result.parameters else ""
    if column == "updates":
        return f"{result.updates:,}" if result.updates else ""
    if column == "published parameters":
        return f"{result.published_parameters}M" if result.published_parameters else ""
    if column.startswith("published"):
        return f"{result.published:.2f}" if result.published is not None else ""
    against = f" (against {result.baseline})" if result.baseline else ""
    return "" if result.p is None else f"{result.p:.3f}{against}"


def mean_cell(values: list[float]) -> str:
    """Return a mean with two digits after the point, or as 1.20e-05 if these would say nothing."""
    value = mean(values)
    return f"{value:.2f}" if value == 0 or 0.005 <= abs(value) < 1e6 else f"{value:.2e}"


def has_several_baselines(record: Record) -> bool:
    return any(result.baseline for result in record.rows)


def value_cell(result: Result) -> str:
    """Return the mean of the runs, and whether other runs are missing or failed."""
    if result.value is None:
        return "failed" if result.failed else "not finished" if result.planned else "–"
    spread = f" ± {result.deviation:.2f}" if result.deviation is not None else ""
    failed = ", failed" if result.failed else ""
    return f"{result.value:.2f}{spread}" + (f" ({result.missing}{failed})" if result.missing else "")


def notes(record: Record) -> list[str]:
    """Return in Markdown how the values were measured, with sacrebleu's signatures."""
    several = record.seeds > 1
    seeds = f"mean ± standard deviation of {record.seeds} seeds" if several else "one seed"
    lines = [f"{record.metric}: {how_measured(record)}; {seeds}."]
    mean_of_seeds = "; mean over seeds." if several else "."
    if chrf := signature(record, "chrf_signature"):
        lines.append(f"chrF2: sacrebleu, `{chrf}`{mean_of_seeds}")
    if any("valid_loss" in run for result in record.rows for run in result.runs):
        lines.append(f"Losses: of each row's criterion, at the lowest validation loss{mean_of_seeds}")
    if any(result.p is not None for result in record.rows):
        against = record.baseline or "the baseline"
        against += ", unless a row names another" if has_several_baselines(record) else ""
        over_seeds = "; over all seeds together." if several else "."
        lines.append(f"p: sacrebleu's approximate randomization of BLEU, 10,000 trials, against {against}{over_seeds}")
    return lines


def how_measured(record: Record) -> str:
    if record.metric == "AER":
        return "in per cent, lower is better"
    found = signature(record, "signature")
    return f"sacrebleu, `{found}`" if found else "sacrebleu"


def signature(record: Record, key: str) -> str | None:
    """Return sacrebleu's signature, which all runs of a table share, if a run is scored."""
    return next((run[key] for result in record.rows for run in result.runs if key in run), None)
