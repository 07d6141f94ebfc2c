"""A finished table as one page of HTML that needs nothing else: no network, no file beside it.

The page is made of what `lwc-fairseq table` left in its folder: `table.json`, and the translations and checkpoints of
each row's first seed.
"""

import base64
import html
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from tqdm import tqdm

from lwc_fairseq_compat import UserError

from ..files import read_lines, write_whole
from .alignment import Gold, layer_error_rates, read_alignments
from .attention import force, load
from .compare import GROUPS, Sentences, group_name, largest_differences, length_groups, make_groups_figure
from .picture import make_figure, panels
from .score import read_generated

STYLE = """
body { font-family: system-ui, sans-serif; line-height: 1.45; max-width: 60rem; margin: auto; padding: 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; max-width: 100%; }
th, td { border-bottom: 1px solid #ccc; padding: .25rem .6rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
img, svg { max-width: 100%; height: auto; }
figure { margin: 1rem 0; break-inside: avoid; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem .8rem; break-inside: avoid; }
dt { color: #555; } dd { margin: 0; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f5f5f5; padding: .6rem; }
@media print { body { max-width: none; } h2 { break-after: avoid; } }
"""


@dataclass(frozen=True)
class Run:
    """A finished table's folder."""

    folder: Path
    about: dict  # table.json

    @property
    def rows(self) -> list[dict]:
        return self.about["rows"]

    def first_seed(self, row: dict) -> Path:
        return self.folder / row["name"] / "seed1"

    def translated(self) -> list[dict]:
        """The rows that have translations."""
        if self.about["metric"] != "BLEU":
            return []
        return [row for row in self.rows if row["runs"] and (self.first_seed(row) / "generated.txt").exists()]

    @cached_property
    def sentences(self) -> Sentences | None:
        """The translations of all rows, with the source as fairseq-generate prints it."""
        found = {row["label"]: read_generated(self.first_seed(row) / "generated.txt") for row in self.translated()}
        if not found:
            return None
        first = next(iter(found.values()))
        return Sentences({label: one.hypotheses for label, one in found.items()}, first.references, first.source)

    def checkpoints(self) -> list[tuple[dict, Path]]:
        """The rows that have a model of their own."""
        names = ("averaged.pt", "checkpoint_best.pt")
        found = [(row, self.first_seed(row) / name) for row in self.rows for name in names]
        existing = [(row, path) for row, path in found if path.exists()]
        return list({row["name"]: (row, path) for row, path in reversed(existing)}.values())[::-1]


def read_run(folder: Path) -> Run:
    """Raises UserError if the folder has no finished table."""
    path = folder / "table.json"
    try:
        return Run(folder, json.loads("\n".join(read_lines(path))))
    except json.JSONDecodeError as error:
        raise UserError(f"{path}, line {error.lineno}: not JSON: {error.msg}") from error


def write_report(folder: Path, out: Path, gold: Path | None = None, gold_first: int = 0) -> None:
    """Make the page.

    Args:
        gold: alignments of the test set, whose first word has the number `gold_first`.

    Raises:
        UserError: there is no table, or a file of it, or `gold`, cannot be read.
    """
    run = read_run(folder)
    sections = [results, curve, lengths, samples, differences, attention]
    if gold is not None:
        sections.insert(3, partial(alignments, gold=read_alignments(gold, gold_first), gold_file=gold))
    parts = [part for section in tqdm(sections, desc="report", leave=False) for part in section(run)]
    title = html.escape(run.about["title"])
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    body = "\n".join([f"<h1>{title}</h1>", *parts])
    page = f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}<title>{title}</title><style>{STYLE}</style></head>'
    write_whole(out, f"{page}\n<body>\n{body}\n</body>\n</html>\n")


def results(run: Run) -> Iterator[str]:
    """The table, and what its numbers stand with."""
    about, metric = run.about, run.about["metric"]
    if about["paper"]:
        published = about["published_on"] or "see the paper"
        yield f"<p>{html.escape(about['paper'])}. Published on: {html.escape(published)}.</p>"
    rows = [{**row, "value": measured(row)} for row in run.rows]
    headers = {"deviation": "±", "p": "p", "parameters": "parameters", "updates": "updates"}
    headers["published"] = f"published {metric}"
    used = {key: text for key, text in headers.items() if any(row[key] is not None for row in rows)}
    columns = {"label": "", "value": metric, **used}
    yield table(list(columns.values()), [[cell(row[key]) for key in columns] for row in rows])
    facts = {name.replace("_", " "): about[name] for name in ("date", "hardware", "versions", "measured_on", "seeds")}
    yield definitions({name: str(value) for name, value in facts.items()})
    yield f"<pre>{html.escape(about['command'])}</pre>"
    yield "<details><summary>Flags</summary>" + definitions(about["flags"]) + "</details>"


def measured(row: dict) -> object:
    """The mean of the runs that are there, and how many they are if not all of them."""
    if row["value"] is None:
        return "failed" if row["failed"] else None
    runs, planned = len(row["runs"]), row.get("planned", 0)
    return f"{cell(row['value'])} ({runs} of {planned} runs)" if runs < planned else row["value"]


def cell(value: object) -> str:
    """A number as people read it."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def curve(run: Run) -> Iterator[str]:
    """The plot that the table command made."""
    path = run.folder / "table.png"
    if path.exists():
        yield "<h2>Curve</h2>"
        yield image(path.read_bytes(), "the table as a curve")


def lengths(run: Run) -> Iterator[str]:
    """BLEU and length by source length."""
    given = run.sentences
    if given is None:
        return
    longest = max(len(line.split()) for line in given.source)
    bounds = GROUPS if longest >= GROUPS[2] else tuple(range(4, longest, 4))
    groups = length_groups(given, bounds)
    yield "<h2>By source length</h2>"
    header = ["words", "sentences", *(f"BLEU, {name}" for name in given.systems)]
    rows = [
        [group_name(group), cell(group["sentences"]), *(cell(group["bleu"][name]) for name in given.systems)]
        for group in groups
    ]
    yield table(header, rows)
    yield image(as_png(make_groups_figure(groups)), "BLEU and length of translations by source length")


def alignments(run: Run, gold: list[Gold], gold_file: Path) -> Iterator[str]:
    """The error rate of word alignments from each layer of each model."""
    found = []
    for row, path in tqdm(run.checkpoints(), desc="alignments", leave=False):
        forced = force(*load(str(path), run.about["measured_on"]), "test")
        rates = layer_error_rates(forced, gold, gold_file)
        found.append((row["label"], {name: f"{100 * rate.aer:.1f}" for name, rate in rates.items()}))
    if not found:
        return
    layers = sorted({name for _, rates in found for name in rates} - {"all"}, key=int)
    yield "<h2>Word alignments</h2>"
    yield "<p>Alignment error rate (lower is better) of the links that each layer's attention makes.</p>"
    rows = [[label, *(rates.get(name, "") for name in [*layers, "all"])] for label, rates in found]
    yield table(["", *(f"layer {name}" for name in layers), "all layers"], rows)


def samples(run: Run) -> Iterator[str]:
    """A few sentences from all over the test set."""
    given = run.sentences
    if given is None:
        return
    yield "<h2>Samples</h2>"
    total = len(given.references[0])
    for row in range(0, total, -(-total // 4)):
        translations = {name: lines[row] for name, lines in given.systems.items()}
        yield sentence(row + 1, given.source[row], given.references[0][row], translations)


def differences(run: Run) -> Iterator[str]:
    """Sentences on which the rows lie furthest apart."""
    given = run.sentences
    if given is None or len(given.systems) < 2:
        return
    yield "<h2>Where they differ most</h2>"
    for one in largest_differences(given, 8):
        yield sentence(one["line"], one["source"], one["reference"], one["translations"])


def sentence(line: int, source: str, reference: str, translations: dict[str, str]) -> str:
    return f"<h3>Line {line}</h3>" + definitions({"source": source, "reference": reference, **translations})


def attention(run: Run) -> Iterator[str]:
    """A picture for each model, of one sentence."""
    models = run.checkpoints()
    if not models:
        return
    yield "<h2>Attention</h2>"
    for row, path in tqdm(models, desc="attention", leave=False):
        model, task = load(str(path), run.about["measured_on"])
        made = panels(model, task, typical_source(task), None, None, None)
        yield f"<h3>{html.escape(row['label'])}</h3>"
        yield image(as_png(make_figure(made, " ".join(made[0].rows[:-1]), 55)), f"attention of {row['label']}")


def typical_source(task) -> str:
    """The first test sentence of 6 to 12 tokens, or else the first."""
    task.load_dataset("test")
    dataset, dictionary = task.dataset("test"), task.source_dictionary
    texts = [dictionary.string(dataset[i]["source"]) for i in range(min(200, len(dataset)))]
    return next((text for text in texts if 6 <= len(text.split()) <= 12), texts[0])


def as_png(figure) -> bytes:
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=110)
    return data.getvalue()


def image(png: bytes, what: str) -> str:
    encoded = base64.b64encode(png).decode("ascii")
    return f'<figure><img alt="{html.escape(what)}" src="data:image/png;base64,{encoded}"></figure>'


def table(header: list[str], rows: list[list[str]]) -> str:
    def line(tag: str, cells: list[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(text)}</{tag}>" for text in cells) + "</tr>"

    return "<table>" + line("th", header) + "".join(line("td", row) for row in rows) + "</table>"


def definitions(facts: dict[str, str]) -> str:
    return "<dl>" + "".join(f"<dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd>" for k, v in facts.items()) + "</dl>"
