"""A table: the rows of a paper's table, how each is trained and translated, and what the paper reports."""

import re
import shlex
from dataclasses import dataclass, field
from fnmatch import fnmatch

from omegaconf import MISSING

from ..analysis.score import Score

PLACEHOLDER = re.compile(r"\{([^{}\"': ]+)\}")
"""In flags and paths, the name of an earlier row, whose checkpoint takes its place."""


@dataclass
class Row:
    """A model to train (`arch`), a way to translate with the models of other rows (`path`), or a published value."""

    name: str = MISSING  # names its folder, and stands in placeholders
    label: str | None = None
    arch: str | None = None
    path: str | None = None
    optimizer: str | None = None  # in place of the table's
    train: str = ""
    generate: str = ""
    published: float | None = None
    source: str | None = None  # of the published value, such as a table of the paper
    parameters: float | None = None  # published, in millions
    x: float | None = None  # its place on a curve
    series: str | None = None
    hidden: bool = False  # only other rows need it
    member: int = 0  # its number in an ensemble of models with the same flags, which gives each model its own seed

    @property
    def title(self) -> str:
        return self.label or self.name

    @property
    def runs(self) -> bool:
        return self.arch is not None or self.path is not None

    def needs(self) -> list[str]:
        """The names of the rows whose checkpoints its flags contain."""
        return list(dict.fromkeys(PLACEHOLDER.findall(f"{self.path or ''} {self.train} {self.generate}")))


@dataclass
class Table:
    """Settings that all rows share, and the rows. Flags are written as in a shell; a row's come after the table's."""

    title: str = MISSING
    paper: str = ""
    data: str = ""  # of the published values
    optimizer: str = ""
    train: str = ""
    generate: str = ""
    average: int = 0  # the number of last epochs whose checkpoints are averaged
    metric: str = "bleu"  # or "aer", the error rate of word alignments; `generate` then has flags of `align`
    score: Score = field(default_factory=Score)
    baseline: str | None = None  # the name of the row that the others are tested against
    curve: str | None = None  # the label of the x axis
    rows: list[Row] = field(default_factory=list)

    def row(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)


@dataclass
class Profile:
    """Settings in place of a table's own, for smaller models and data."""

    optimizer: str | None = None
    train: str | None = None
    generate: str | None = None
    average: int | None = None
    score: Score | None = None
    archs: dict[str, str] = field(default_factory=dict)  # by a pattern of presets, flags that come after the row's

    def flags_of(self, arch: str) -> list[str]:
        return [flag for pattern, flags in self.archs.items() if fnmatch(arch, pattern) for flag in shlex.split(flags)]
