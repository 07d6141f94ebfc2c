"""Pages: tables in Markdown, and self-contained HTML, which needs no network."""

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
body { font-family: system-ui, sans-serif; line-height: 1.45; max-width: 60rem; margin: auto; padding: 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; max-width: 100%; }
th, td { border-bottom: 1px solid #ccc; padding: .25rem .6rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
img, svg { max-width: 100%; height: auto; }
figure { margin: 1rem 0; break-inside: avoid; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem .8rem; break-inside: avoid; }
dt { color: #555; } dd { margin: 0; overflow-wrap: anywhere; }
code { overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f5f5f5; padding: .6rem; }
@media print { body { max-width: none; } h2 { break-after: avoid; } }
"""


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(as_markdown(cell).replace("|", "\\|") for cell in cells) + " |" for cells in lines]


def as_markdown(text: str) -> str:
    """Escape `<`, so that a page shows a word such as `<unk>` instead of taking it for a tag."""
    return text.replace("<", "\\<")


def page(title: str, parts: list[str]) -> str:
    """Return a page with a title and `parts`, which are HTML."""
    name = escape(title)
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    body = "\n".join([f"<h1>{name}</h1>", *parts])
    top = f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}<title>{name}</title><style>{STYLE}</style></head>'
    return f"{top}\n<body>\n{body}\n</body>\n</html>\n"


def html_table(header: list[str], rows: list[list[str]]) -> str:
    def line(tag: str, cells: list[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(text)}</{tag}>" for text in cells) + "</tr>"

    return "<table>" + line("th", header) + "".join(line("td", row) for row in rows) + "</table>"


def definitions(facts: dict[str, str]) -> str:
    entries = (f"<dt>{escape(name)}</dt><dd dir=auto>{escape(value)}</dd>" for name, value in facts.items())
    return f"<dl>{''.join(entries)}</dl>"


def image(png: bytes, what: str) -> str:
    encoded = base64.b64encode(png).decode("ascii")
    return f'<figure><img alt="{escape(what)}" src="data:image/png;base64,{encoded}"></figure>'


def as_png(figure: "Figure", dpi: int = 110) -> bytes:
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=dpi)
    return data.getvalue()
