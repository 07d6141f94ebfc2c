"""The results of a table: scores, their means over seeds, significance, and the record `table.json` of all this."""

import json
import math
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from itertools import chain
from pathlib import Path
from statistics import mean, stdev

import sacrebleu

from lwc_fairseq_compat import UserError

from ..analysis.alignment import Gold, error_rate, read_links
from ..analysis.tagger import Tagger
from ..analysis.translations import (
    RANDOMIZATION,
    Tagged,
    Translations,
    joined,
    part_of_speech_bleu,
    read_generated,
    score,
    significance,
    with_references,
)
from ..files import read_lines
from ..preparation import Words, read_preparation
from .identity import data_content, file_content, ran_before
from .jobs import Job, Settings
from .layout import RunFolder
from .table_file import ALL, Row, Table
from .training_log import read_losses, read_sizes, text_of


@dataclass
class ValueOfTest:
    """The result of a row on one of several test sets."""

    value: float | None = None  # the mean of BLEU
    deviation: float | None = None
    p: float | None = None
    published: float | None = None


@dataclass
class PartOfSpeech:
    """The result of a row on only the words with some tags: BLEU-1 to BLEU-4."""

    values: list[float] = field(default_factory=list)  # means over the runs
    published: list[float] = field(default_factory=list)


@dataclass
class Result:
    """The result of a row. A row with only a published value has no runs."""

    name: str
    label: str
    runs: list[dict]  # one entry for each seed: its scores, "seed", "valid_loss" and "train_loss"
    value: float | None = None  # the mean of BLEU, or of AER in per cent
    deviation: float | None = None  # the standard deviation, if there are at least two runs
    p: float | None = None  # of the significance test against the baseline
    baseline: str | None = None  # the title of the row that p compares it with, if that is not the table's baseline
    parameters: int | None = None
    updates: int | None = None
    failed: str | None = None  # the reason why a run failed
    planned: int = 0  # the requested number of runs
    published: float | None = None
    published_parameters: float | None = None
    source: str | None = None
    x: float | None = None
    series: str | None = None
    tests: dict[str, ValueOfTest] = field(default_factory=dict)  # by the names of tests; the values above are of ALL
    parts: dict[str, PartOfSpeech] = field(default_factory=dict)  # by tags, such as NN or NN&VB; of ALL


@dataclass(frozen=True)
class Trial:
    """Flags of training that were tried for a row."""

    row: str  # its title
    flags: str
    loss: float | None  # the lowest validation loss, if the training has ended and has one
    is_chosen: bool


@dataclass(frozen=True)
class Record:
    """A table's results, and the facts that a reader needs to judge them."""

    title: str
    metric: str  # "BLEU" or "AER"
    paper: str
    published_on: str  # the data of the published values
    measured_on: str  # the data folder, as it was given
    date: str
    hardware: str
    versions: str
    command: str
    seeds: int
    flags: dict[str, str]  # common to all rows
    rows: list[Result]
    trials: list[Trial] = field(default_factory=list)
    subset: str = "test"  # the (first) set of the data that was translated, or aligned
    references: list[str] = field(default_factory=list)  # files that replace the references of the data
    tests: dict[str, str] = field(default_factory=dict)  # sets of the data by the names of their tests
    test_references: dict[str, list[str]] = field(default_factory=dict)  # in place of `references`, by test
    detokenized: bool = False  # whether translations were scored as raw text
    user_dirs: list[str] = field(default_factory=list)  # packages with the user's own models
    baseline: str | None = None  # the title of the row with which significance tests compare the others
    significance: str = RANDOMIZATION  # the test that p comes from
    parts_of_speech: list[str] = field(default_factory=list)  # tags whose words the table scores alone
    tagger: str | None = None  # the command that tagged words; None if they were not scored
    row_flags: dict[str, dict[str, str]] = field(default_factory=dict)  # by name; of rows that are not shown, too
    data: str = ""  # the full path of the data folder
    contents: dict[str, str] = field(default_factory=dict)  # what identifies "data", "gold" and each of `references`


def collect(
    settings: Settings,
    jobs: list[Job],
    failures: dict[RunFolder, str],
    references: Mapping[str, list[list[str]]] | None = None,
    gold: list[Gold] | None = None,
    detokenizer: Words | None = None,
    tagger: Tagger | None = None,
) -> list[Result]:
    """Collect the results of the rows that the table shows.

    Args:
        failures: the reasons of failed jobs. A job is added if its output is unreadable.
        references: reference translations, by test, that replace those in the output of fairseq-generate.
        gold: gold alignments of the test set, for a table of AER.
        detokenizer: makes raw text of translations before they are scored.
        tagger: tags words, for the scores of parts of speech. They are left out without it.

    Raises:
        UserError: the tagger cannot tag the translations.
    """
    table = settings.table
    scores: dict[RunFolder, dict] = {}
    translations: dict[str, dict[str, dict[int, Translations]]] = {}  # by test, row and seed
    sizes: dict[str, int] = {}  # the number of sentences of each test, in the first run
    for job in jobs:
        folder, files = job.folder, [job.folder.result(step) for step in job.generations()]
        if folder in failures or not job.has_flags or not files or not all(file.exists() for file in files):
            continue
        try:
            if table.metric == "aer":
                rate = error_rate(read_links(files[0]), gold or [])
                scores[folder] = {name: round(100 * value, 2) for name, value in asdict(rate).items()}  # in per cent
            else:
                outputs = read_outputs(dict(zip(settings.tests, files, strict=True)), references or {}, detokenizer)
                for name, output in outputs.items():
                    size = len(output.hypotheses)
                    if size != sizes.setdefault(name, size):
                        raise UserError(f"{size} translations of the set, of which another run has {sizes[name]}")
                of_tests = {name: score(output, table.score) for name, output in outputs.items()}
                scores[folder] = of_tests.pop(ALL) | ({"tests": of_tests} if of_tests else {})
                for name, output in outputs.items():
                    translations.setdefault(name, {}).setdefault(folder.row, {})[folder.seed] = output
        except UserError as error:
            failures[folder] = str(error)
    results = []
    for row in table.rows:
        own_tests = row.published_tests.keys() & table.tests.keys()
        is_published = row.published is not None or own_tests or row.published_parts
        if not row.hidden and (row.runs or is_published):
            result = summarise(row, [job.folder for job in jobs if job.row.name == row.name], scores, failures)
            result.p = p_value(settings, row, translations.get(ALL, {}))
            for name in table.tests:
                values = [run["tests"][name]["bleu"] for run in result.runs]
                p, published = p_value(settings, row, translations.get(name, {})), row.published_tests.get(name)
                result.tests[name] = ValueOfTest(*mean_and_deviation(values), p, published)
            if tagger:
                result.parts = parts_of_speech(table, row, translations.get(ALL, {}).get(row.name, {}), tagger)
            if row.baseline and result.p is not None:
                result.baseline = table.row(row.baseline).title
            results.append(result)
    return results


def read_outputs(
    files: Mapping[str, Path], references: Mapping[str, list[list[str]]], detokenizer: Words | None
) -> dict[str, Translations]:
    """Read the translations of each test and, as one corpus, of ALL.

    Args:
        files: the output of fairseq-generate, by test.
        references: reference translations, by test, that replace those in the files.
    """
    outputs = {}
    for name, file in files.items():
        output = read_generated(file)
        output = with_references(output, references[name]) if name in references else output
        if detokenizer:
            output = replace(output, hypotheses=list(map(detokenizer.decode, output.hypotheses)))
        outputs[name] = output
    return {**outputs, ALL: joined(list(outputs.values()))}


def make_detokenizer(settings: Settings) -> Words | None:
    """Return what makes raw text of translations, if the table is scored on raw text.

    Raises:
        UserError: no `text.yaml` says how the data's text was tokenized.
    """
    if not settings.table.score.detokenize:
        return None
    folder = Path(settings.folder_of_tests)
    preparation = read_preparation(folder)
    if preparation is None:
        raise UserError(
            f"{folder}: no text.yaml says how its text was made, so translations cannot be detokenized: write one "
            "(docs/decoding.md), or give a --profile whose `score` has no `detokenize`"
        )
    return Words(preparation, detokenize=True)


def summarise(
    row: Row, folders: list[RunFolder], scores: dict[RunFolder, dict], failures: dict[RunFolder, str]
) -> Result:
    """Summarise the runs of one row, which are in `folders`."""
    done = [folder for folder in folders if folder in scores]
    result = Result(
        name=row.name,
        label=row.title,
        runs=[{"seed": run.seed, **scores[run], **read_losses(run.log("train")).best()} for run in done],
        failed=next((failures[folder] for folder in folders if folder in failures), None),
        planned=len(folders),
        published=row.published,
        published_parameters=row.parameters,
        source=row.source,
        x=row.x,
        series=row.series,
    )
    if done:
        values = [run["bleu"] if "bleu" in run else run["aer"] for run in result.runs]
        result.value, result.deviation = mean_and_deviation(values)
        result.parameters, result.updates = read_sizes(done[0].log("train"))
    return result


def read_trials(settings: Settings) -> list[Trial]:
    """Return the trials of all rows, with their losses."""
    trials = []
    for row in settings.table.rows:
        losses, chosen = settings.losses_of_trials(row), settings.chosen_trial(row)
        for folder, flags in settings.trials_of(row).items():
            loss = losses.get(folder, math.inf)
            trials.append(Trial(row.title, flags, loss if math.isfinite(loss) else None, folder == chosen))
    return trials


def mean_and_deviation(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the mean, if there is a value, and the standard deviation, if there are at least two."""
    return round(mean(values), 2) if values else None, round(stdev(values), 2) if len(values) > 1 else None


def p_value(settings: Settings, row: Row, translations: dict[str, dict[int, Translations]]) -> float | None:
    """Return p of a row against its baseline, if it has one, over the seeds that both have."""
    name = settings.table.baseline_of(row)
    system, baseline = translations.get(row.name, {}), translations.get(name or "", {})
    seeds = [seed for seed in system if seed in baseline]
    if name == row.name or not seeds:
        return None
    table, of_baseline, of_system = settings.table, [baseline[seed] for seed in seeds], [system[seed] for seed in seeds]
    return significance(of_baseline, of_system, table.score, table.significance)


def parts_of_speech(
    table: Table, row: Row, translations: Mapping[int, Translations], tagger: Tagger
) -> dict[str, PartOfSpeech]:
    """Score the words of each part of speech in the translations of a row, which are given by seed.

    Raises:
        UserError: the tagger cannot tag them.
    """

    def tagged(lines: list[str]) -> Tagged:
        return lines, tagger.tag(lines)

    systems = {f"seed {seed}": tagged(output.hypotheses) for seed, output in translations.items()}
    references = [tagged(lines) for output in [*translations.values()][:1] for lines in output.references]
    parts = {}
    for name in table.parts_of_speech:
        runs = part_of_speech_bleu(name.split("&"), systems, references, table.score.lowercase).values()
        means = [round(mean(values), 2) for values in zip(*runs, strict=True)]
        parts[name] = PartOfSpeech(means, row.published_parts.get(name, []))
    return parts


def make_record(
    settings: Settings,
    results: list[Result],
    seeds: int,
    references: Mapping[str, Sequence[Path]] | None = None,
    gold: Path | None = None,
    tagger: Tagger | None = None,
) -> Record:
    """Create the record of results, with today's date.

    Args:
        references: the files that replace the references of the data, by test.
        gold: the gold alignments of the test set.
        tagger: what tagged words, if the results have parts of speech.
    """
    table = settings.table
    jobs = [*settings.trials(), *settings.jobs(seeds)]
    commands = [text_of(job.folder.command(step)) for job in jobs for step in job.steps()]
    machines, versions = (
        "; ".join(dict.fromkeys(chain.from_iterable(ran_before(command, key) for command in commands)))
        for key in ("machines", "versions")
    )
    flags = {
        "optimizer": table.optimizer,
        "train": table.train,
        "generate": table.generate,
        "more of train": shlex.join(settings.train),
        "more of generate": shlex.join(settings.generate),
        "checkpoint": f"mean of the last {table.average} epochs" if table.average else "",
        "packages of models": " ".join(settings.user_dirs),
    }
    paths = {name: [path.absolute() for path in files] for name, files in (references or {}).items()}
    contents: dict[str, str | None] = {
        str(path): file_content(path) for path in chain(*paths.values()) if path.is_file()
    }
    named = {name: list(map(str, files)) for name, files in paths.items()}
    contents["gold"] = file_content(gold) if gold else None
    contents["data"] = data_content(settings.data, list(map(re.escape, settings.tests.values())))
    return Record(
        title=table.title,
        metric=table.metric.upper(),
        paper=table.paper,
        published_on=table.data,
        measured_on=settings.data,
        date=date.today().isoformat(),
        hardware=machines or "hardware not recorded",
        versions=f"{versions or 'versions not recorded'}, scored with sacrebleu {sacrebleu.__version__}",
        command=shlex.join(["lwc-fairseq", *sys.argv[1:]]),
        seeds=seeds,
        flags=without_empty(flags),
        rows=results,
        trials=read_trials(settings),
        subset=next(iter(settings.tests.values())),
        references=named.pop(ALL, []),
        tests=table.tests,
        test_references=named,
        detokenized=table.score.detokenize,
        user_dirs=settings.user_dirs,
        baseline=table.row(table.baseline).title if table.baseline else None,
        significance=table.significance,
        parts_of_speech=table.parts_of_speech,
        tagger=tagger.command if tagger else None,
        row_flags={row.name: flags_of_row(settings, row) for row in table.rows if row.runs or row.source},
        data=os.pathsep.join(map(os.path.abspath, settings.data.split(os.pathsep))),
        contents=without_empty(contents),
    )


def flags_of_row(settings: Settings, row: Row) -> dict[str, str]:
    """Return a row's label, its preset or path, the flags that it adds to those of the table, and where its published
    value stands."""
    flags = {"label": row.label, "arch": row.arch, "path": row.path, "chosen by trials": settings.chosen_flags(row)}
    if row.arch:
        flags["own optimizer"] = row.optimizer
        flags["train"] = f"{row.train.strip()} {shlex.join(settings.profile.flags_of(row.arch))}".strip()
        flags["member"] = str(row.member or "")
    if settings.is_scored(row):
        flags["generate"] = row.generate.strip()
    flags["published in"] = row.source
    return without_empty(flags)


def without_empty(texts: Mapping[str, str | None]) -> dict[str, str]:
    return {name: text for name, text in texts.items() if text}


def as_json(record: Record) -> str:
    """Return a record as JSON, with the texts "nan", "inf" and "-inf" in place of the numbers that JSON lacks."""
    content = json.loads(json.dumps(asdict(record)), parse_constant=lambda name: str(float(name)))
    return json.dumps(content, indent=1)


def read_record(path: Path) -> Record:
    """Read a record.

    Raises:
        UserError: the file cannot be read, or is not a record.
    """
    try:
        content = json.loads("\n".join(read_lines(path)))
        rows = []
        for row in content["rows"]:
            tests = {name: ValueOfTest(**values) for name, values in row.get("tests", {}).items()}
            parts = {name: PartOfSpeech(**values) for name, values in row.get("parts", {}).items()}
            rows.append(Result(**{**row, "tests": tests, "parts": parts}))
        trials = [Trial(**values) for values in content.get("trials", [])]
        return Record(**{**content, "rows": rows, "trials": trials})
    except json.JSONDecodeError as error:
        raise UserError(f"{path}, line {error.lineno}: not JSON: {error.msg}") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise UserError(f"{path}: `lwc-fairseq table` did not write this file: {error}") from error
