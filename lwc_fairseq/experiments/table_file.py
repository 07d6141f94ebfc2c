"""The table file: the rows of a paper's table, how to train each row and translate with it, and what the paper reports.

A profile is a file of settings that replace a table's own.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path

from fairseq.models import ARCH_MODEL_REGISTRY

import lwc_fairseq
from lwc_fairseq_compat import UserError

from ..analysis.comparison import check_name
from ..analysis.translations import RANDOMIZATION, TESTS, Score
from ..files import import_plugins
from ..typed_yaml import as_settings, read_yaml
from .layout import FILES

ALL = "ALL"
"""The name of all test sets as one corpus."""

PLACEHOLDER = re.compile(r"\{([^{}\"': ]+)\}")
"""Matches {name} in flags and paths, which stands for the checkpoint of an earlier row of this name."""


@dataclass
class Row:
    """A model to train (`arch`), a way to translate with other rows' models (`path`), or only a published value."""

    name: str  # names its folder; other rows refer to it as {name}
    label: str | None = None
    arch: str | None = None
    path: str | None = None
    optimizer: str | None = None  # replaces the table's
    train: str = ""
    generate: str = ""
    trials: list[str] | None = None  # replaces the table's
    published: float | None = None  # in a table with named tests, that of ALL
    published_tests: dict[str, float] = field(default_factory=dict)  # by the names of the table's tests
    published_parts: dict[str, list[float]] = field(default_factory=dict)  # BLEU-1 to BLEU-4 of parts of speech
    source: str | None = None  # where the value is published, such as a table of the paper
    parameters: float | None = None  # published, in millions
    x: float | None = None  # its position on the x axis of a curve
    series: str | None = None
    baseline: str | None = None  # the row that its significance test compares it with, instead of the table's
    hidden: bool = False  # not shown, because only other rows use it
    member: int = 0  # number in an ensemble of models with equal flags, so that each model gets its own seed

    @property
    def title(self) -> str:
        return self.label or self.name

    @property
    def runs(self) -> bool:
        return self.arch is not None or self.path is not None

    @property
    def has_published_value(self) -> bool:
        return self.published is not None or bool(self.published_tests or self.published_parts)

    def needs(self) -> list[str]:
        """Return the names of the rows whose checkpoints its flags contain."""
        return list(dict.fromkeys(PLACEHOLDER.findall(f"{self.path or ''} {self.train} {self.generate}")))


@dataclass
class Profile:
    """Settings that replace a table's own, for smaller models and data."""

    optimizer: str | None = None  # replaces those of rows, too
    train: str | None = None
    generate: str | None = None  # flags of fairseq-generate
    average: int | None = None
    score: Score | None = None
    tests: dict[str, str] | None = None
    trials: list[str] | None = None  # replaces those of rows, too; a row with an empty list still tries nothing
    archs: dict[str, str] = field(default_factory=dict)  # flags that follow the row's, by a pattern for presets

    def flags_of(self, arch: str) -> list[str]:
        return [flag for pattern, flags in self.archs.items() if fnmatch(arch, pattern) for flag in shlex.split(flags)]


@dataclass
class Table:
    """Settings that all rows share, and the rows. Flags are written as in a shell; a row's flags follow the table's."""

    title: str
    paper: str = ""
    data: str = ""  # the data of the published values
    user_dir: str | None = None  # a package with the user's own models: a folder beside the file, or an installed one
    optimizer: str = ""
    train: str = ""
    generate: str = ""
    trials: list[str] = field(default_factory=list)  # flags of training, of which validation chooses one for each row
    average: int = 0  # the number of last epochs whose checkpoints are averaged
    metric: str = "bleu"  # or "aer", alignment error rate; `generate` then holds flags of `align`
    score: Score = field(default_factory=Score)
    tests: dict[str, str] = field(default_factory=dict)  # sets of the data by their names, if several are translated
    baseline: str | None = None  # the name of the row with which significance tests compare the others
    significance: str = RANDOMIZATION  # the significance test, a key of TESTS
    parts_of_speech: list[str] = field(default_factory=list)  # tags whose words are scored alone, such as NN or NN&VB
    curve: str | None = None  # the label of the x axis
    slurm: dict[str, str] = field(default_factory=dict)  # what a run asks of a cluster, by submitit's names
    rows: list[Row] = field(default_factory=list)

    def row(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)

    def baseline_of(self, row: Row) -> str | None:
        """Return the name of the row that significance tests compare a row with."""
        return row.baseline or self.baseline

    def trials_of(self, row: Row) -> list[str]:
        """Return the flags of training among which validation chooses for a row. Without any, nothing is tried."""
        if row.arch is None:
            return []
        return self.trials if row.trials is None else row.trials

    def with_profile(self, profile: Profile) -> "Table":
        """Return the table with the settings of a profile in place of its own."""
        settings = {name: value for name, value in vars(profile).items() if name != "archs" and value is not None}
        if self.metric == "aer":
            settings.pop("generate", None)  # the table's are flags of `align`
            settings.pop("tests", None)  # one set has gold alignments
        rows = self.rows if profile.optimizer is None else [replace(row, optimizer=None) for row in self.rows]
        rows = rows if profile.trials is None else [replace(row, trials=None) if row.trials else row for row in rows]
        return replace(self, **settings, rows=rows)


def find_file(given: Path, kind: str) -> Path:
    """Return the file of a path, or of the name of a table or profile (`kind`) that comes with the package.

    Raises UserError if there is no such file.
    """
    if given.is_file():
        return given
    package = Path(lwc_fairseq.__file__).parent
    tables = package / "tables"  # of an installed package; a checkout has them among its examples
    tables = tables if tables.is_dir() else package.parent / "examples" / "tables"
    files = {path.stem: path for path in sorted((tables / "profiles" if kind == "profile" else tables).glob("*.yaml"))}
    if str(given) not in files:
        raise UserError(f"{given}: no such file, and no {kind} of the papers; these are {', '.join(files)}")
    return files[str(given)]


def load_profile(path: Path | None) -> Profile:
    """Read a profile. Without a file, return one that changes nothing. Raises UserError if the file is invalid."""
    profile = Profile() if path is None else as_settings(str(path), Profile, read_yaml(path))
    flags = filter(None, (profile.optimizer, profile.train, profile.generate, *profile.archs.values()))
    mistakes = chain(
        problems_of_average(profile.average or 0),
        problems_of_tests(profile.tests or {}),
        problems_of_trials("trials", profile.trials or []),
        syntax_problems("flags of the profile", *flags),
    )
    if mistake := next(mistakes, None):
        raise UserError(f"{path}: {mistake}")
    return profile


def load_table(path: Path, only: list[str] | None = None) -> Table:
    """Read a table file.

    Args:
        only: the names of the rows to keep. The rows that they need are kept as well, but hidden.

    Raises:
        UserError: the file cannot be read, has an unknown key or an invalid value, lacks a row in `only`, or names a
            package `user_dir` that does not exist.
    """
    content = read_yaml(path)
    rows = content.pop("rows", None)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(f"{path}: rows: give a list of rows, each of keys and values")
    if not rows:
        raise UserError(f"{path}: rows: the list is empty")
    table = as_settings(str(path), Table, content)
    if table.user_dir is not None:
        beside = path.parent / table.user_dir
        table.user_dir = str(beside.resolve()) if beside.exists() else table.user_dir
        try:
            import_plugins([table.user_dir])  # registers presets that rows may name
        except UserError as error:
            raise UserError(f"{path}: user_dir: {str(error).removeprefix('--user-dir ')}") from error
    table.rows = [as_settings(f"{path}: row {row.get('name', i + 1)}", Row, row) for i, row in enumerate(rows)]
    if problem := next(problems(table), None):
        raise UserError(f"{path}: {problem}")
    for row in table.rows:
        check_name(row.title, f"{path}: row {row.name}: label")
    if only:
        unknown = sorted(set(only) - {row.name for row in table.rows})
        if unknown:
            known = ", ".join(row.name for row in table.rows)
            raise UserError(f"--rows {' '.join(unknown)}: {path} has no such row; it has {known}")
        keep_rows(table, only)
    return table


def problems(table: Table) -> Iterator[str]:
    """Yield what is invalid in a table, and where rows contradict each other."""
    rows: dict[str, Row] = {}
    labels = set()
    for row in table.rows:
        has_flags = row.train or row.generate or row.optimizer
        is_unknown = row.arch is not None and row.arch not in ARCH_MODEL_REGISTRY
        if not re.fullmatch(r"[a-z0-9_.]*[a-z0-9_][a-z0-9_.]*", row.name) or row.name in rows:
            yield f"row {row.name!r}: names are of a-z, 0-9, _ and ., each used once"
        mistakes = {
            "the table itself writes a file of this name: give another name": row.name in FILES,
            "give arch or path, not both": row.arch is not None and row.path is not None,
            "it has trials, but no arch to train": bool(row.trials) and row.arch is None,
            "it has flags, but no arch to train and no path to translate with": has_flags and not row.runs,
            "give arch or path or published": not (row.runs or row.has_published_value),
            f"arch {row.arch}: no such preset (your own models need user_dir)": is_unknown,
        }
        yield from (f"row {row.name}: {mistake}" for mistake, is_made in mistakes.items() if is_made)
        for name in row.published_tests.keys() - table.tests.keys():
            yield f"row {row.name}: published_tests: {name}: the table's `tests` has no test of that name"
        yield from problems_of_trials(f"row {row.name}: trials", row.trials or [])
        for name, values in row.published_parts.items():
            if len(values) != 4:
                yield f"row {row.name}: published_parts: {name}: {len(values)} values: give BLEU-1 to BLEU-4"
            if name not in table.parts_of_speech:
                yield f"row {row.name}: published_parts: {name}: the table's `parts_of_speech` does not have it"
        yield from syntax_problems(row.name, row.train, row.generate, row.optimizer or "", row.path or "")
        if row.path is not None and len(shlex.split(row.path)) != 1:
            yield f"row {row.name}: path {row.path}: give one path, quoted if it has blanks"
        for need in row.needs():
            if need not in rows or not rows[need].arch:
                yield f"row {row.name}: {{{need}}}: no row of that name is trained before it"
        if not row.hidden:  # pages and pictures tell rows apart by their labels
            if row.title in labels:
                yield f"row {row.name}: label {row.title}: another row has it"
            labels.add(row.title)
        rows[row.name] = row
    yield from problems_of_average(table.average)
    if table.metric not in ("bleu", "aer"):
        yield f"metric {table.metric}: choose bleu or aer"
    if table.metric == "aer" and table.tests:
        yield "tests: only translations have several test sets, not metric: aer"
    if table.metric == "aer" and table.parts_of_speech:
        yield "parts_of_speech: only translations have scores of their words, not metric: aer"
    for name in table.parts_of_speech:
        if not re.fullmatch(r"[^\s,&]+(&[^\s,&]+)*", name):
            yield f"parts_of_speech: {name!r}: give the beginnings of tags, joined by &, such as NN or NN&VB"
        if table.parts_of_speech.count(name) > 1:
            yield f"parts_of_speech: {name}: it is there twice"
    yield from problems_of_tests(table.tests)
    yield from problems_of_trials("trials", table.trials)
    if table.significance not in TESTS:
        yield f"significance {table.significance}: choose {' or '.join(TESTS)}"
    for name in filter(None, [table.baseline, *(row.baseline for row in table.rows)]):
        if name not in rows:
            yield f"baseline {name}: no such row"
        elif not rows[name].runs:
            yield f"baseline {name}: this row has no translations: it lacks arch and path"
        if table.metric == "aer":
            yield f"baseline {name}: significance is tested for BLEU only, not for metric: aer"
    yield from syntax_problems("flags of the table", table.optimizer, table.train, table.generate)


def problems_of_trials(where: str, trials: list[str]) -> Iterator[str]:
    """Yield what is invalid in the flags that are tried."""
    if len(trials) == 1 or len(set(trials)) < len(trials):
        yield f"{where}: give two or more flags that differ, or none"
    yield from syntax_problems(where, *trials)


def problems_of_tests(tests: dict[str, str]) -> Iterator[str]:
    """Yield what is invalid in the names of tests and of their sets, which are parts of file names."""
    for name, subset in tests.items():
        if name == ALL or not re.fullmatch(r"[^\s=]+", name):
            yield f"tests: {name!r}: give a name without blanks and =, which is not {ALL}"
        if not re.fullmatch(r"[\w.-]+", subset):
            yield f"tests: {name}: {subset}: give the name of one set, as fairseq-preprocess makes it: test, test1"
        if list(tests.values()).count(subset) > 1:
            yield f"tests: {name}: {subset}: another test is of the same set"


def problems_of_average(average: int) -> Iterator[str]:
    if average < 0:
        yield f"average {average}: must not be negative"


def syntax_problems(where: str, *flags: str) -> Iterator[str]:
    """Yield the flags that do not have the syntax of a shell."""
    for words in flags:
        try:
            shlex.split(words)
        except ValueError as error:
            yield f"{where}: {words}: {error}"


def keep_rows(table: Table, names: list[str]) -> None:
    """Remove the rows that are neither in `names` nor needed by a row in `names`, and hide those that are needed."""
    wanted = set(names)
    for row in reversed(table.rows):
        if row.name in wanted:
            wanted.update(row.needs())
    table.rows = [row for row in table.rows if row.name in wanted]
    for row in table.rows:
        row.hidden = row.hidden or row.name not in names
    if table.baseline not in wanted:
        table.baseline = None
