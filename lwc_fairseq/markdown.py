"""Tables in Markdown."""

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table, as lines."""
    return [line(header), line(["---"] * len(header)), *map(line, rows)]


def line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
