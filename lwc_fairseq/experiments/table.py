"""A table: the rows of a paper's table, how to train each row and translate with it, and what the paper reports."""

import re
import shlex
from dataclasses import dataclass, field
from fnmatch import fnmatch

from ..analysis.translations import Score

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
    published: float | None = None
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

    def needs(self) -> list[str]:
        """Return the names of the rows whose checkpoints its flags contain."""
        return list(dict.fromkeys(PLACEHOLDER.findall(f"{self.path or ''} {self.train} {self.generate}")))


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
    average: int = 0  # the number of last epochs whose checkpoints are averaged
    metric: str = "bleu"  # or "aer", alignment error rate; `generate` then holds flags of `align`
    score: Score = field(default_factory=Score)
    baseline: str | None = None  # the name of the row with which significance tests compare the others
    curve: str | None = None  # the label of the x axis
    rows: list[Row] = field(default_factory=list)

    def row(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)

    def baseline_of(self, row: Row) -> str | None:
        """Return the name of the row that significance tests compare a row with."""
        return row.baseline or self.baseline


@dataclass
class Profile:
    """Settings that replace a table's own, for smaller models and data."""

    optimizer: str | None = None
    train: str | None = None
    generate: str | None = None
    average: int | None = None
    score: Score | None = None
    archs: dict[str, str] = field(default_factory=dict)  # flags that follow the row's, by a pattern for presets

    def flags_of(self, arch: str) -> list[str]:
        return [flag for pattern, flags in self.archs.items() if fnmatch(arch, pattern) for flag in shlex.split(flags)]
