"""The report of a finished table: a self-contained HTML page.

It presents the files that `lwc-fairseq table` wrote: the record of the table, and the translations and checkpoints of
each row's first seed.
"""

import html
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from tqdm import tqdm

from lwc_fairseq_compat import UserError

from ..analysis.alignment import Gold, layer_error_rates, read_alignments
from ..analysis.attention import force, load, panels, sentences
from ..analysis.comparison import GROUPS, Sentences, group_name, largest_differences, length_groups, make_groups_figure
from ..analysis.page import as_png, definitions, image, page, table
from ..analysis.picture import make_figure
from ..analysis.translations import read_generated
from ..environment import import_plugins
from ..files import read_lines, write_whole
from ..models.interface import gives_attention
from .columns import FLAGS_IN_ORDER, cell, columns_of, notes
from .identity import data_content, file_content
from .layout import RunFolder, TableFolder
from .record import Record, read_record
from .results import Result


@dataclass(frozen=True)
class FinishedTable:
    """The folder and the record of a finished table, and the binary data of its models."""

    folder: TableFolder
    record: Record
    data: str

    def first_run(self, row: Result) -> RunFolder:
        return self.folder.run(row.name, 1)

    @cached_property
    def sentences(self) -> Sentences | None:
        """The translations of all rows that have some, with the source as fairseq-generate prints it."""
        if self.record.metric != "BLEU":
            return None
        folders = {row.label: self.first_run(row) for row in self.record.rows if row.runs}
        found = {label: read_generated(run.generated) for label, run in folders.items() if run.generated.exists()}
        if not found:
            return None
        first = next(iter(found.values()))
        references = [read_lines(Path(path)) for path in self.record.references] or first.references
        sentences = Sentences({label: one.hypotheses for label, one in found.items()}, references, first.source)
        sentences.check()
        return sentences

    def checkpoints(self) -> list[tuple[Result, Path]]:
        """Return the rows with a model of their own, and the checkpoint that generation uses."""
        found = []
        for row in self.record.rows:
            paths = [self.first_run(row).checkpoint(averaged) for averaged in (True, False)]
            found += [(row, path) for path in paths if path.exists()][:1]
        return found


def read_table(folder: Path, data: str | None = None) -> FinishedTable:
    """Read a table's folder.

    Raises:
        UserError: it has no finished table.
    """
    files = TableFolder(folder)
    if not files.record.exists():
        raise UserError(
            f"{files.record}: no such file; `lwc-fairseq table` writes it at its end, and from what is finished with "
            "--collect"
        )
    record = read_record(files.record)
    is_there = record.data and all(Path(folder).is_dir() for folder in record.data.split(os.pathsep))
    data = data or (record.data if is_there else record.measured_on)
    check_content(record, "data", data_content(data, [re.escape(record.subset)]), data)
    for path in record.references:
        check_content(record, path, file_content(Path(path)) if Path(path).is_file() else None, path)
    return FinishedTable(files, record, data)


def check_content(record: Record, key: str, content: str | None, path: str) -> None:
    """Raises UserError if data or a file is not what the table was made of. Earlier versions did not record that."""
    if content is not None and record.contents.get(key, content) != content:
        raise UserError(
            f"{path}: other contents than when the table was made: give the same, or make the table again with "
            "`lwc-fairseq table`"
        )


def write_report(
    folder: Path,
    out: Path,
    gold: Path | None = None,
    gold_first: int = 0,
    data: str | None = None,
    user_dirs: Sequence[str] = (),
) -> None:
    """Write the report of a table.

    Args:
        folder: the folder of the table.
        gold: the file with gold alignments of the test set.
        gold_first: the number of a sentence's first word in `gold`, 0 or 1.
        data: the folder with the binary data, if it is no longer where the table recorded it.
        user_dirs: the packages with the user's own models, if they are no longer where the table recorded them.

    Raises:
        UserError: the folder has no table, or one of its files or `gold` cannot be read.
    """
    finished = read_table(folder, data)
    import_plugins(user_dirs or finished.record.user_dirs)
    sections = [results, curve, learning, lengths, samples, differences, attention]
    if gold is not None:
        alignments_of_gold = read_alignments(gold, gold_first)
        check_content(finished.record, "gold", file_content(gold), str(gold))
        sections.insert(4, partial(alignments, gold=alignments_of_gold, gold_file=gold))
    parts = [part for section in tqdm(sections, desc="report", leave=False) for part in section(finished)]
    write_whole(out, page(finished.record.title, parts))


def results(finished: FinishedTable) -> Iterator[str]:
    """Yield the HTML of the table, and of how its values were measured."""
    record = finished.record
    if record.paper:
        published = record.published_on or "see the paper"
        yield f"<p>{html.escape(record.paper)}. Published on: {html.escape(published)}.</p>"
    elif record.published_on:
        yield f"<p>Data: {html.escape(record.published_on)}.</p>"
    columns = columns_of(record)
    yield table(["", *columns], [[row.label, *(cell(row, column) for column in columns)] for row in record.rows])
    yield f"<p>{'<br>'.join(map(prose, notes(record)))}</p>"
    facts = {"date": record.date, "hardware": record.hardware, "versions": record.versions}
    yield definitions({**facts, "measured on": record.measured_on})
    yield f"<pre>{html.escape(record.command)}</pre>"
    yield f"<details><summary>Flags</summary>{''.join(flags(record))}</details>"
    if record.seeds > 1:
        yield "<p>The following sections show the first run of each row, which has seed 1.</p>"


def prose(text: str) -> str:
    """Return a line of Markdown as HTML; words in backticks become code."""
    return re.sub("`(.*?)`", r"<code>\1</code>", html.escape(text))


def flags(record: Record) -> Iterator[str]:
    """Yield the flags of all rows, and those of each row."""
    yield "<h3>All rows</h3>" + definitions(record.flags)
    if record.row_flags:
        yield f"<p>{prose(FLAGS_IN_ORDER)}</p>"
    for name, own in record.row_flags.items():
        yield f"<h3>{html.escape(name)}</h3>" + definitions(own)


def curve(finished: FinishedTable) -> Iterator[str]:
    """Yield the table's plot, if it has one."""
    path = finished.folder.curve
    if path.exists():
        yield "<h2>Curve</h2>"
        yield image(path.read_bytes(), "the table as a curve")


def learning(finished: FinishedTable) -> Iterator[str]:
    """Yield a plot of the rows' losses during training."""
    path = finished.folder.learning_curves
    if path.exists():
        yield "<h2>Learning curves</h2>"
        yield "<p>Losses of different criterions cannot be compared.</p>"
        yield image(path.read_bytes(), "the losses of the rows during training")


def lengths(finished: FinishedTable) -> Iterator[str]:
    """Yield a plot of BLEU and length by source length."""
    given = finished.sentences
    if given is None:
        return
    longest = max(len(line.split()) for line in given.source)
    bounds = GROUPS if longest >= GROUPS[2] else tuple(range(4, longest, 4))
    groups = length_groups(given, bounds)
    yield "<h2>By source length</h2>"
    header = ["words", "sentences", *(f"BLEU, {name}" for name in given.systems)]
    rows = [
        [group_name(group), f"{group['sentences']:,}", *(f"{group['bleu'][name]:.2f}" for name in given.systems)]
        for group in groups
    ]
    yield "<p>BLEU of the tokens as they stand, with case.</p>"
    yield table(header, rows)
    yield image(as_png(make_groups_figure(groups)), "BLEU and length of translations by source length")


def alignments(finished: FinishedTable, gold: list[Gold], gold_file: Path) -> Iterator[str]:
    """Yield the alignment error rate of each layer of each model whose attention can be read."""
    found = []
    for row, path in tqdm(finished.checkpoints(), desc="alignments", leave=False):
        model, task = load(str(path), finished.data)
        if not gives_attention(model):
            continue
        forced = force(model, task, finished.record.subset)
        rates = layer_error_rates(forced, gold, gold_file)
        found.append((row.label, {name: f"{100 * rate.aer:.1f}" for name, rate in rates.items()}))
    if not found:
        return
    layers = sorted({name for _, rates in found for name in rates} - {"all"}, key=int)
    yield "<h2>Word alignments</h2>"
    yield "<p>Alignment error rate (lower is better) of the links from each layer's attention.</p>"
    rows = [[label, *(rates.get(name, "") for name in [*layers, "all"])] for label, rates in found]
    yield table(["", *(f"layer {name}" for name in layers), "all layers"], rows)


def samples(finished: FinishedTable) -> Iterator[str]:
    """Yield four sentences, evenly spread over the test set, with their translations."""
    given = finished.sentences
    if given is None:
        return
    yield "<h2>Samples</h2>"
    total = len(given.references[0])
    for row in range(0, total, -(-total // 4)):
        translations = {name: lines[row] for name, lines in given.systems.items()}
        yield sentence(row + 1, given.source[row], given.references[0][row], translations)


def differences(finished: FinishedTable) -> Iterator[str]:
    """Yield the sentences whose translations differ most between the rows."""
    given = finished.sentences
    if given is None or len(given.systems) < 2:
        return
    yield "<h2>Where they differ most</h2>"
    for one in largest_differences(given, 8):
        yield sentence(one["line"], one["source"], one["reference"], one["translations"])


def sentence(line: int, source: str, reference: str, translations: dict[str, str]) -> str:
    return f"<h3>Line {line}</h3>" + definitions({"source": source, "reference": reference, **translations})


def attention(finished: FinishedTable) -> Iterator[str]:
    """Yield a picture of each model's attention for one sentence, or say that it cannot be read."""
    models = finished.checkpoints()
    if not models:
        return
    yield "<h2>Attention</h2>"
    for row, path in tqdm(models, desc="attention", leave=False):
        model, task = load(str(path), finished.data)
        yield f"<h3>{html.escape(row.label)}</h3>"
        if not gives_attention(model):
            yield f"<p>The attention of this model ({type(model).__name__}) cannot be read.</p>"
            continue
        made = panels(model, task, typical_source(task, finished.record.subset), None, None, None)
        yield image(as_png(make_figure(made, sentences(made[0], task), 55)), f"attention of {row.label}")


def typical_source(task, subset: str) -> str:
    """Return the first of 200 sentences of a set that has 6 to 12 tokens, or else the first sentence."""
    task.load_dataset(subset)
    dataset, dictionary = task.dataset(subset), task.source_dictionary
    texts = [dictionary.string(dataset[i]["source"]) for i in range(min(200, len(dataset)))]
    return next((text for text in texts if 6 <= len(text.split()) <= 12), texts[0])
