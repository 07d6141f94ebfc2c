"""The page of a table, `table.md`."""

from statistics import mean

from ..markdown import table as markdown_table
from .record import Record
from .results import Result

P = "p, against "


def table_page(record: Record, baseline: str | None) -> str:
    """Return a table as Markdown.

    Args:
        baseline: the title of the row with which significance tests compare the others.
    """
    columns = columns_of(record, baseline)
    rows = [[result.label, *(cell(result, column) for column in columns)] for result in record.rows]
    lines = [f"# {record.title}", "", *data_lines(record), *markdown_table(["", *columns], rows)]
    lines += ["", how_measured(record)]
    if any(column.startswith(P) for column in columns):
        lines.append("p: sacrebleu's paired bootstrap, 1,000 samples, the median over seeds.")
    lines += ["", f"{record.date}, {record.hardware}, {record.versions}.", "", "```", record.command, "```"]
    lines += ["", "Flags of training and generation, in addition to each row's own:", "", "```"]
    lines += [f"{name}: {value}" for name, value in record.flags.items()]
    return "\n".join([*lines, "```", ""])


def columns_of(record: Record, baseline: str | None) -> list[str]:
    """Return the column headers, without columns that would be empty."""
    results = record.rows
    columns = [record.metric]
    if baseline is not None and any(result.p is not None for result in results):
        columns.append(P + baseline)
    columns += [*(["chrF2"] if record.metric == "BLEU" else []), "parameters", "updates"]
    if any(result.published for result in results):
        columns.append(f"published {record.metric}")
    if any(result.published_parameters for result in results):
        columns.append("published parameters")
    return columns


def data_lines(record: Record) -> list[str]:
    lines = []
    if record.paper:
        lines += [f"{record.paper}.", "", f"Published on: {record.published_on or 'see the paper'}.", ""]
    elif record.published_on:
        lines += [f"Data: {record.published_on}.", ""]
    return [*lines, f"Measured on: `{record.measured_on}`.", ""]


def how_measured(record: Record) -> str:
    """Return the metric, with sacrebleu's signature, and the number of seeds."""
    signature = next((run["signature"] for result in record.rows for run in result.runs if "signature" in run), None)
    if record.metric == "AER":
        what = "in per cent, lower is better"
    else:
        what = f"sacrebleu, `{signature}`" if signature else "sacrebleu"
    seeds = "one seed" if record.seeds == 1 else f"mean ± standard deviation of {record.seeds} seeds"
    return f"{record.metric}: {what}; {seeds}."


def cell(result: Result, column: str) -> str:
    """Return the content of a row in a column."""
    if column in ("BLEU", "AER"):
        return value_cell(result)
    if column == "chrF2":
        return f"{mean(run['chrf'] for run in result.runs):.2f}" if result.runs else ""
    if column == "parameters":
        return f"{result.parameters / 1e6:.2f}M" if result.parameters else ""
    if column == "updates":
        return f"{result.updates:,}" if result.updates else ""
    if column == "published parameters":
        return f"{result.published_parameters}M" if result.published_parameters else ""
    if column.startswith("published"):
        return f"{result.published:.2f}" if result.published is not None else ""
    return "" if result.p is None else f"{result.p:.3f}"


def value_cell(result: Result) -> str:
    """Return the mean of the runs, and whether other runs are missing or failed."""
    if result.value is None:
        return "failed" if result.failed else "not finished" if result.planned else "–"
    spread = f" ± {result.deviation:.2f}" if result.deviation is not None else ""
    failed = ", failed" if result.failed else ""
    return f"{result.value:.2f}{spread}" + (f" ({result.missing}{failed})" if result.missing else "")
