"""Tables in Markdown."""

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(as_text(cell).replace("|", "\\|") for cell in cells) + " |" for cells in lines]


def as_text(text: str) -> str:
    """Keep `<` from beginning a tag, which a page would not show: `<unk>` is a word."""
    return text.replace("<", "\\<")
