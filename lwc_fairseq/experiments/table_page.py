"""The page of a table, `table.md`."""

from ..markdown import table as markdown_table
from .columns import FLAGS_IN_ORDER, cell, columns_of, notes
from .record import Record


def table_page(record: Record) -> str:
    """Return a table as Markdown."""
    columns = columns_of(record)
    rows = [[result.label, *(cell(result, column) for column in columns)] for result in record.rows]
    lines = [f"# {record.title}", "", *data_lines(record), *markdown_table(["", *columns], rows)]
    lines += ["", *notes(record)]
    lines += ["", f"{record.date}, {record.hardware}, {record.versions}.", "", "```", record.command, "```"]
    return "\n".join([*lines, *flag_lines(record), ""])


def data_lines(record: Record) -> list[str]:
    lines = []
    if record.paper:
        lines += [f"{record.paper}.", "", f"Published on: {record.published_on or 'see the paper'}.", ""]
    elif record.published_on:
        lines += [f"Data: {record.published_on}.", ""]
    return [*lines, f"Measured on: `{record.measured_on}`.", ""]


def flag_lines(record: Record) -> list[str]:
    """Return the flags of all rows, and those of each row."""
    lines = ["", "Flags of all rows:", "", "```", *definitions(record.flags), "```"]
    if record.row_flags:
        lines += ["", f"Flags of each row. {FLAGS_IN_ORDER}", "", "```"]
        for name, flags in record.row_flags.items():
            lines += [name, *(f"  {line}" for line in definitions(flags))]
        lines.append("```")
    return lines


def definitions(flags: dict[str, str]) -> list[str]:
    return [f"{name}: {value}" for name, value in flags.items() if value]
