"""A table file: the rows of a paper's table, how each is trained and translated, and what the paper reports."""

import re
import shlex
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import TypeVar

import yaml
from fairseq.models import ARCH_MODEL_REGISTRY
from omegaconf import MISSING, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from lwc_fairseq_compat import UserError

from ..analysis.score import Score

PLACEHOLDER = re.compile(r"\{([^{}\"': ]+)\}")
"""In flags and paths: the checkpoint of an earlier row."""

Config = TypeVar("Config")


@dataclass
class Row:
    """A model that is trained (`arch`), a way to translate with those of other rows (`path`), or a published value."""

    name: str = MISSING  # its folder, and its name in placeholders
    label: str | None = None
    arch: str | None = None
    path: str | None = None
    optimizer: str | None = None  # instead of the table's
    train: str = ""
    generate: str = ""
    published: float | None = None
    source: str | None = None  # where the published value stands
    parameters: float | None = None  # published, in millions
    x: float | None = None  # on a curve
    series: str | None = None
    hidden: bool = False  # another row needs it
    member: int = 0  # of an ensemble; models of the same flags get other seeds by it

    @property
    def title(self) -> str:
        return self.label or self.name

    @property
    def runs(self) -> bool:
        return self.arch is not None or self.path is not None

    def needs(self) -> list[str]:
        """The rows whose checkpoints its flags name."""
        return list(dict.fromkeys(PLACEHOLDER.findall(f"{self.path or ''} {self.train} {self.generate}")))


@dataclass
class Table:
    """All flags are written as in a shell; those of a row come after those of the table."""

    title: str = MISSING
    paper: str = ""
    data: str = ""  # what the published values were measured on
    optimizer: str = ""
    train: str = ""
    generate: str = ""
    average: int = 0  # epochs whose checkpoints are averaged
    metric: str = "bleu"  # or "aer": word alignments against a gold file, with flags of `lwc-fairseq align`
    score: Score = field(default_factory=Score)
    baseline: str | None = None  # the row that the others are tested against
    curve: str | None = None  # label of the x axis
    rows: list[Row] = field(default_factory=list)

    def row(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)


@dataclass
class Profile:
    """What to use instead of a table's own settings, for smaller models and data."""

    optimizer: str | None = None
    train: str | None = None
    generate: str | None = None
    average: int | None = None
    score: Score | None = None
    archs: dict[str, str] = field(default_factory=dict)  # flags for presets that match a pattern, after the row's

    def flags_of(self, arch: str) -> list[str]:
        return [flag for pattern, flags in self.archs.items() if fnmatch(arch, pattern) for flag in shlex.split(flags)]


def load_table(path: Path, only: list[str] | None = None) -> Table:
    """Read a table file.

    Args:
        only: names of the rows to keep, with the rows that they need (hidden, unless they are named).

    Raises:
        UserError: the file cannot be read, or has an unknown key or value; it is named.
    """
    content = read_yaml(path)
    rows = content.pop("rows", None)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(f"{path}: rows: give a list of rows, each of keys and values")
    table = as_config(str(path), Table, content)
    table.rows = [as_config(f"{path}: row {row.get('name', i + 1)}", Row, row) for i, row in enumerate(rows)]
    check(path, table)
    if only:
        keep_rows(path, table, only)
    return table


def load_profile(path: Path | None) -> Profile:
    """Read a profile; without one nothing is changed."""
    return Profile() if path is None else as_config(str(path), Profile, read_yaml(path))


def read_yaml(path: Path) -> dict:
    """A YAML file that holds keys and values.

    Raises:
        UserError: it cannot be read.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise UserError(f"{path}: not a file of keys and values")
    return content


def as_config(where: str, kind: type[Config], values: dict) -> Config:
    """Values as a dataclass that knows every key.

    Raises:
        UserError: a key is unknown or missing, or a value of another type; `where` and the key are named.
    """
    try:
        return OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(kind), values))
    except MissingMandatoryValue as error:
        raise UserError(f"{where}: {error.full_key} is missing") from error
    except OmegaConfBaseException as error:
        raise UserError(f"{where}: {error.full_key}: {str(error).splitlines()[0]}") from error


def check(path: Path, table: Table) -> None:
    """Raises UserError if rows do not fit together."""
    seen: set[str] = set()
    for row in table.rows:
        if not re.fullmatch(r"[a-z0-9_.]*[a-z0-9_][a-z0-9_.]*", row.name) or row.name in seen:
            raise UserError(f"{path}: row {row.name!r}: names are of a-z, 0-9, _ and ., each used once")
        if row.arch is not None and row.path is not None:
            raise UserError(f"{path}: row {row.name}: give arch or path, not both")
        for flags in (row.train, row.generate, row.optimizer or "", row.path or ""):
            split(path, row.name, flags)
        if row.path is not None and len(shlex.split(row.path)) != 1:
            raise UserError(f"{path}: row {row.name}: path {row.path}: give one path, quoted if it has blanks")
        if row.arch is not None and row.arch not in ARCH_MODEL_REGISTRY:
            raise UserError(f"{path}: row {row.name}: arch {row.arch}: no such preset")
        for need in row.needs():
            if need not in seen or not table.row(need).arch:
                raise UserError(f"{path}: row {row.name}: {{{need}}}: no row of that name is trained before it")
        seen.add(row.name)
    if table.average < 0:
        raise UserError(f"{path}: average {table.average}: must not be negative")
    if table.metric not in ("bleu", "aer"):
        raise UserError(f"{path}: metric {table.metric}: choose bleu or aer")
    if table.baseline is not None and table.baseline not in seen:
        raise UserError(f"{path}: baseline {table.baseline}: no such row")
    for flags in (table.optimizer, table.train, table.generate):
        split(path, "flags of the table", flags)


def split(path: Path, where: str, flags: str) -> list[str]:
    """Words of a shell."""
    try:
        return shlex.split(flags)
    except ValueError as error:
        raise UserError(f"{path}: {where}: {flags}: {error}") from error


def keep_rows(path: Path, table: Table, names: list[str]) -> None:
    """Leave out the rows that are not wanted."""
    unknown = sorted(set(names) - {row.name for row in table.rows})
    if unknown:
        known = ", ".join(row.name for row in table.rows)
        raise UserError(f"--rows {' '.join(unknown)}: {path} has no such row; it has {known}")
    wanted = set(names)
    for row in reversed(table.rows):
        if row.name in wanted:
            wanted.update(row.needs())
    table.rows = [row for row in table.rows if row.name in wanted]
    for row in table.rows:
        row.hidden = row.hidden or row.name not in names
    if table.baseline not in wanted:
        table.baseline = None
