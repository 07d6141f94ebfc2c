"""Pages: tables in Markdown, and self-contained HTML, which needs no network."""

import base64
import io
import json
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SORTABLE = '<table class="sortable">'

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1b1b; --faint: #5c5c5c; --line: #bbb; --panel: #f3f3f3;
  --accent: #0b57d0; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #15171b; --ink: #ececec; --faint: #a8a8a8; --line: #555; --panel: #24272d; --accent: #8ab4f8; }
}
body { font-family: system-ui, sans-serif; line-height: 1.45; max-width: 64rem; margin: auto; padding: 1rem;
  background: var(--paper); color: var(--ink); }
a { color: var(--accent); }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem; text-align: right; white-space: nowrap; }
td { unicode-bidi: plaintext; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0; background: var(--paper); }
th button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; }
th button::after { content: var(--arrow, " ↕") / ""; color: var(--faint); font-weight: normal; }
th[aria-sort] button::after { color: var(--accent); }
th[aria-sort=ascending] { --arrow: " ↑"; } th[aria-sort=descending] { --arrow: " ↓"; }
.controls { display: flex; flex-wrap: wrap; gap: .4rem 1.2rem; align-items: center; }
.controls label, select { max-width: 100%; }
[hidden] { display: none !important; }
img, svg { max-width: 100%; height: auto; }
img { background: #fff; }
figure { margin: 1rem 0; break-inside: avoid; }
dl { display: grid; grid-template-columns: fit-content(40%) 1fr; gap: .2rem .8rem; break-inside: avoid; }
dt { color: var(--faint); overflow-wrap: anywhere; } dd { margin: 0; overflow-wrap: anywhere; }
code { overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--panel); padding: .6rem; }
@media print { body { max-width: none; } h2 { break-after: avoid; } th button::after { content: none; } }
"""


@dataclass(frozen=True)
class Section:
    """A part of a page: lines of Markdown, and tables, each its header and its rows. Lines that begin with `- ` are a
    list."""

    title: str  # empty if the section has no heading
    parts: list[str | list[list[str]]]
    figure: "Callable[[], Figure] | None" = None  # makes the picture of the HTML

    def markdown(self) -> list[str]:
        """Return the lines of the section, the last of which is empty."""
        lines = [f"## {as_markdown(self.title)}", ""] if self.title else []
        for part in self.parts:
            if isinstance(part, str):
                if part.startswith("- ") and lines[-2].startswith("- "):
                    lines.pop()
                lines += [as_markdown(part), ""]
            else:
                lines += [*markdown_table(part[0], part[1:]), ""]
        return lines

    def html(self) -> str:
        parts = [f"<h2>{escape(self.title)}</h2>"] if self.title else []
        for part in self.parts:
            if not isinstance(part, str):
                parts.append(html_table(part[0], part[1:]))
            else:
                parts.append(
                    f"<ul><li>{prose(part[2:])}</li></ul>" if part.startswith("- ") else f"<p>{prose(part)}</p>"
                )
        if self.figure:
            parts.append(image(as_png(self.figure()), self.title))
        return "\n".join(parts).replace("</ul>\n<ul>", "\n")


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(as_markdown(cell).replace("|", "\\|") for cell in cells) + " |" for cells in lines]


def as_markdown(text: str) -> str:
    """Escape `<`, so that a page shows a word such as `<unk>` instead of taking it for a tag."""
    return text.replace("<", "\\<")


def p_value(p: float) -> str:
    """Return p of a test, which can be small but not 0."""
    return f"{p:.3f}" if p >= 0.001 else f"{p:.4f}"


def page(title: str, parts: list[str], heading: str = "") -> str:
    """Return a page with a title and `parts`, which are HTML. The heading is the title, unless there is another one."""
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    head += f"<title>{escape(title)}</title><style>{STYLE}</style>"
    body = "\n".join([f"<h1>{escape(heading or title)}</h1>", *parts])
    if SORTABLE in body:
        sorting = Path(__file__).with_name("sorting.js").read_text(encoding="utf-8")
        body += f'\n<script type="module">\n{sorting}</script>'
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>\n'


def interactive(view: Path, data: object) -> str:
    """Return an interactive part of a page: a file with its elements, style and script, and the data for the script,
    which are in the element NAME_data: JSON, compressed because weights of attention are many."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")
    script = f'<script type="text/plain" id="{view.stem}_data">{packed}</script>'
    return f"{script}\n{view.read_text(encoding='utf-8')}"


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table that the script of :func:`page` makes sortable."""

    def line(tag: str, cells: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(text)}</{tag}>" for text in cells) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return f'<div class="wide">{SORTABLE}<thead>{line("th", header)}</thead><tbody>{body}</tbody></table></div>'


def prose(text: str) -> str:
    """Return a line of Markdown as HTML; words in backticks become code."""
    return re.sub("`(.*?)`", r"<code>\1</code>", escape(text))


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
