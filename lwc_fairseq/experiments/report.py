"""The report of a finished table: a self-contained HTML page.

It presents the files that `lwc-fairseq table` wrote: the record of the table, and the translations and checkpoints of
each row's first seed.
"""

import html
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from textwrap import shorten

from fairseq.tasks import FairseqTask
from torch import Tensor
from tqdm import tqdm

from lwc_fairseq_compat import UserError

from ..analysis.alignment import Gold, layer_error_rates, read_alignments
from ..analysis.attention import attend, force, join, load, panels, sentences, translations
from ..analysis.attention_page import LONGEST, attention_view, page_data
from ..analysis.comparison import (
    DIFFERENCES,
    GROUPS,
    LINES,
    Sentences,
    frequency_section,
    largest_differences,
    length_groups,
    length_section,
)
from ..analysis.differences import MOST, differences_view, example
from ..analysis.frequency import frequency_groups
from ..analysis.picture import make_figure
from ..analysis.training_words import count_training_words
from ..analysis.translations import joined, read_generated
from ..files import import_plugins, read_lines, write_whole
from ..models.interface import gives_attention
from ..pages import as_png, definitions, html_table, image, page, prose
from .identity import data_content, file_content
from .layout import CURVE, LEARNING_CURVES, RECORD, RunFolder, generate_steps
from .page import FLAGS_IN_ORDER, TRIALS, WORDS, cells, notes, origin, trial_cells, word_cells, word_note
from .results import Record, Result, read_record

WEIGHTS = 4_000_000
"""The number of weights of attention up to which a report has those of every head. They take about 4 MB."""

FEW = 8
"""The number of sentences on which the rows differ most that belong to the examples."""


@dataclass(frozen=True)
class FinishedTable:
    """The folder and the record of a finished table, and the binary data of its models."""

    folder: Path
    record: Record
    data: str

    @cached_property
    def sentences(self) -> Sentences | None:
        """The translations of all rows that have some, with the source as fairseq-generate prints it."""
        if self.record.metric != "BLEU":
            return None
        steps, outputs = generate_steps(self.record.tests.values()), {}
        for row in filter(has_first_seed, self.record.rows):
            files = [RunFolder(self.folder, row.name, 1).result(step) for step in steps]
            if all(file.exists() for file in files):
                outputs[row.label] = joined([read_generated(file) for file in files])
        if not outputs:
            return None
        first = next(iter(outputs.values()))
        references = self.references() or first.references
        sentences = Sentences({label: output.hypotheses for label, output in outputs.items()}, references, first.source)
        sentences.check()
        return sentences

    @cached_property
    def largest_differences(self) -> list[dict]:
        """The sentences on which the rows differ most, the largest differences first."""
        lines = self.sentences
        return [] if lines is None or len(lines.systems) < 2 else largest_differences(lines, MOST)

    @cached_property
    def samples(self) -> list[int]:
        """The lines of four sentences, evenly spread over the test set."""
        if self.sentences is None or self.sentences.source is None:
            return []
        total = len(self.sentences.source)
        return sorted({total * quarter // 4 + 1 for quarter in range(4)})

    @cached_property
    def exploration(self) -> "Exploration":
        """What the models attend to while they translate the examples, the samples and those that differ most."""
        return explore(self)

    def references(self) -> list[list[str]]:
        """Return the reference translations that replaced those of the data, if they are tokens as the translations
        are. Those of several tests are joined."""
        if self.record.detokenized:
            return []
        tests = [self.record.test_references[name] for name in self.record.tests if self.record.test_references]
        parts = [[read_lines(Path(path)) for path in files] for files in tests or [self.record.references]]
        return [list(chain(*lines)) for lines in zip(*parts, strict=True)]

    def checkpoints(self) -> list[tuple[str, Path]]:
        """Return the label of each row with a model of its own, and the checkpoint that generation uses."""
        models = []
        for row in filter(has_first_seed, self.record.rows):
            paths = [RunFolder(self.folder, row.name, 1).checkpoint(averaged) for averaged in (True, False)]
            models += [(row.label, path) for path in paths if path.exists()][:1]
        return models


def has_first_seed(row: Result) -> bool:
    """Return whether a row's run with seed 1 is finished."""
    return any(run["seed"] == 1 for run in row.runs)


def read_table(folder: Path, data: str | None = None) -> FinishedTable:
    """Read a table's folder.

    Raises:
        UserError: it has no finished table, or the table was made of other data or references.
    """
    if not (folder / RECORD).exists():
        raise UserError(
            f"{folder / RECORD}: no such file; `lwc-fairseq table` writes it at its end, and from what is finished "
            "with --collect"
        )
    record = read_record(folder / RECORD)
    is_there = record.data and all(Path(part).is_dir() for part in record.data.split(os.pathsep))
    data = data or (record.data if is_there else record.measured_on)
    sets = [re.escape(subset) for subset in record.tests.values() or [record.subset]]
    check_content(record, "data", data_content(data, sets), data)
    for path in chain(record.references, *record.test_references.values()):
        check_content(record, path, file_content(Path(path)) if Path(path).is_file() else None, path)
    return FinishedTable(folder, record, data)


def check_content(record: Record, key: str, content: str | None, path: str) -> None:
    """Raises UserError if data or a file is not what the table was made of, if the record says what that was."""
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
    sections = [results, pictures, lengths, frequencies, samples, differences, attention]
    if gold is not None:
        links = read_alignments(gold, gold_first)
        check_content(finished.record, "gold", file_content(gold), str(gold))
        sections.insert(4, partial(alignments, gold=links, gold_file=gold))
    parts = [part for section in tqdm(sections, desc="report", leave=False) for part in section(finished)]
    write_whole(out, page(finished.record.title, parts))


def results(finished: FinishedTable) -> Iterator[str]:
    """Yield the HTML of the table, of how its values were measured, and of its flags."""
    record = finished.record
    if record.paper or record.published_on:
        yield f"<p>{html.escape(' '.join(origin(record)))}</p>"
    header, *rows = cells(record)
    yield html_table(header, rows)
    yield f"<p>{'<br>'.join(map(prose, notes(record)))}</p>"
    if words := word_cells(record):
        yield f"<h2>{WORDS}</h2>" + html_table(words[0], words[1:]) + f"<p>{prose(word_note(record))}</p>"
    if record.trials:
        yield f"<p>{TRIALS}</p>" + html_table(*trial_cells(record))
    facts = {"date": record.date, "hardware": record.hardware, "versions": record.versions}
    yield definitions({**facts, "measured on": record.measured_on})
    yield f"<pre>{html.escape(record.command)}</pre>"
    flags = "<h3>All rows</h3>" + definitions(record.flags)
    if record.row_flags:
        flags += f"<p>{prose(FLAGS_IN_ORDER)}</p>"
    for name, of_row in record.row_flags.items():
        flags += f"<h3>{html.escape(name)}</h3>" + definitions(of_row)
    yield f"<details><summary>Flags</summary>{flags}</details>"
    if record.seeds > 1:
        yield "<p>The following sections show the first run of each row, which has seed 1.</p>"


def pictures(finished: FinishedTable) -> Iterator[str]:
    """Yield the pictures that the table has: its curve, and the losses of the rows during training."""
    curve, losses = finished.folder / CURVE, finished.folder / LEARNING_CURVES
    if curve.exists():
        yield "<h2>Curve</h2>"
        yield image(curve.read_bytes(), "the table as a curve")
    if losses.exists():
        yield "<h2>Learning curves</h2>"
        yield "<p>Losses of different criterions cannot be compared.</p>"
        yield image(losses.read_bytes(), "the losses of the rows during training")


def lengths(finished: FinishedTable) -> Iterator[str]:
    """Yield a table and a plot of BLEU and translation length for each group of source lengths."""
    lines = finished.sentences
    if lines is None or lines.source is None:
        return
    longest = max(len(line.split()) for line in lines.source)
    groups = length_groups(lines, GROUPS if longest >= GROUPS[2] else tuple(range(4, longest, 4)))
    section = length_section(groups)
    section.parts.insert(0, "BLEU of the tokens as they stand, with case.")
    yield section.html()


def alignments(finished: FinishedTable, gold: list[Gold], gold_file: Path) -> Iterator[str]:
    """Yield the alignment error rate of each layer of each model whose attention can be read."""
    rates = {}
    for label, path in tqdm(finished.checkpoints(), desc="alignments", leave=False):
        model, task = load(str(path), finished.data)
        if gives_attention(model):
            rates[label] = layer_error_rates(force(model, task, finished.record.subset), gold, gold_file)
    if not rates:
        return
    layers = sorted({name for of_model in rates.values() for name in of_model} - {"all"}, key=int)
    yield "<h2>Word alignments</h2>"
    yield "<p>Alignment error rate (lower is better) of the links from each layer's attention.</p>"
    rows = [
        [label, *(f"{100 * of_model[name].aer:.1f}" if name in of_model else "" for name in [*layers, "all"])]
        for label, of_model in rates.items()
    ]
    yield html_table(["", *(f"layer {name}" for name in layers), "all layers"], rows)


def frequencies(finished: FinishedTable) -> Iterator[str]:
    """Yield F1 of words by their frequency in the training set, or say why it cannot be computed."""
    lines, models = finished.sentences, finished.checkpoints()
    if lines is None:
        return
    counts: Counter[str] = Counter()
    if models:
        _, task = load(str(models[0][1]), finished.data)
        counts = count_training_words(task)
    if not counts:
        reason = f"{finished.data} has no training set (--data names a folder)" if models else "no checkpoint is left"
        yield f"<p>There are no scores by frequency in the training set: {html.escape(reason)}.</p>"
        return
    words = {name: [join(line.split()) for line in system] for name, system in lines.systems.items()}
    references = [[join(line.split()) for line in reference] for reference in lines.references]
    if groups := frequency_groups(words, references, counts):
        yield frequency_section(groups).html()


def samples(finished: FinishedTable) -> Iterator[str]:
    """Yield sentences that are evenly spread over the test set."""
    lines = finished.sentences
    if lines is None or lines.source is None:
        return
    yield "<h2>Samples</h2>"
    if finished.record.tests:
        yield f"<p>Lines are counted through all tests: {html.escape(', '.join(finished.record.tests))}.</p>"
    else:
        yield f"<p>{LINES}</p>"
    for line in finished.samples:
        row = line - 1
        translations = {name: system[row] for name, system in lines.systems.items()}
        yield example(line, lines.source[row], lines.references[0][row], translations, finished.exploration.lines)


def differences(finished: FinishedTable) -> Iterator[str]:
    """Yield the view in which a reader compares two rows, sentence by sentence."""
    lines = finished.sentences
    if lines is not None and finished.largest_differences:
        yield f"<h2>{DIFFERENCES}</h2>"
        yield differences_view(lines, finished.largest_differences, FEW, finished.exploration.lines)


def attention(finished: FinishedTable) -> Iterator[str]:
    """Yield a picture of each model's attention for one sentence, or say that it cannot be read. Before them, yield the
    view in which a reader explores the attention of all examples."""
    exploration = finished.exploration
    if not exploration.pictures:
        return
    yield "<h2>Attention</h2>"
    if exploration.views:
        yield "<p>The search here has a beam of 5. So a translation can differ from the one above.</p>"
        yield attention_view(exploration.titles, exploration.models, exploration.views)
    for label, picture in exploration.pictures.items():
        yield f"<h3>{html.escape(label)}</h3>"
        yield picture


@dataclass(frozen=True)
class Exploration:
    """What the section on attention shows."""

    titles: list[dict]  # of the sentences, with their lines
    models: list[str]  # those whose attention can be read
    views: list[list[dict]]  # for each sentence and model
    pictures: dict[str, str]  # HTML by model

    @property
    def lines(self) -> list[int]:
        return [title["line"] for title in self.titles if title["line"]]


def explore(finished: FinishedTable) -> Exploration:
    checkpoints = finished.checkpoints()
    titles: list[dict] = []
    by_model: dict[str, list[dict]] = {}
    pictures = {}
    for label, path in tqdm(checkpoints, desc="attention", leave=False):
        model, task = load(str(path), finished.data)
        if not gives_attention(model):
            pictures[label] = f"<p>The attention of this model ({type(model).__name__}) cannot be read.</p>"
            continue
        typical = typical_source(task, finished.record.subset)
        examples: dict[int | None, str] = {None: typical} if typical else {}
        examples.update(example_sources(finished, task).items())
        titles = [
            {"line": line, "title": shorten((f"{line}: " if line else "") + join(source.split()), 70, placeholder=" …")}
            for line, source in examples.items()
        ]
        by_model[label] = []
        for line, source in tqdm(examples.items(), desc=label, leave=False):
            hypotheses, beams = translations(model, task, source, None)
            attentions = [attend(model, task, source, hypothesis) for hypothesis in hypotheses]
            share = WEIGHTS // (len(checkpoints) * len(examples))
            by_model[label].append(page_data(task, hypotheses, attentions, beams, share))
            if line is None:
                figure = make_figure(panels(attentions[0], None, None), sentences(attentions[0], task), 55)
                pictures[label] = image(as_png(figure), f"attention of {label}")
    views = [list(of_sentence) for of_sentence in zip(*by_model.values(), strict=True)]
    return Exploration(titles, list(by_model), views, pictures)


def example_sources(finished: FinishedTable, task: FairseqTask) -> dict[int, str]:
    """Return the source of each example, in sub-words as in the data, by its line: of the samples, and of the sentences
    on which the rows differ most. Sentences that are empty or too long are left out, and all of them if the data have
    another number of sentences than the translations."""
    lines = finished.sentences
    if lines is None:
        return {}
    numbers = [*finished.samples, *(entry["line"] for entry in finished.largest_differences[:FEW])]
    sources: list[Tensor] = []
    for subset in finished.record.tests.values() or [finished.record.subset]:
        task.load_dataset(subset)
        dataset = task.dataset(subset)
        sources += (dataset[i]["source"] for i in range(len(dataset)))
    if len(sources) != len(lines.references[0]):
        return {}
    texts = {number: task.source_dictionary.string(sources[number - 1]) for number in numbers}
    return {number: text for number, text in texts.items() if 0 < len(text.split()) <= LONGEST}


def typical_source(task, subset: str) -> str:
    """Return the first sentence of 6 to 12 tokens among the first 200 of a set, or else the first that can be shown, or
    else nothing."""
    task.load_dataset(subset)
    dataset, dictionary = task.dataset(subset), task.source_dictionary
    texts = [dictionary.string(dataset[i]["source"]) for i in range(min(200, len(dataset)))]
    possible = [text for text in texts if 0 < len(text.split()) <= LONGEST]
    return next((text for text in possible if 6 <= len(text.split()) <= 12), next(iter(possible), ""))
