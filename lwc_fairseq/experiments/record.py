"""The record of a table, `table.json`: its results and how they were measured."""

import json
import math
import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path

import sacrebleu

from lwc_fairseq_compat import UserError

from ..environment import hardware, versions
from ..files import read_lines, write_whole
from .identity import data_content, file_content
from .results import Result
from .settings import Settings
from .table import Row


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
    subset: str = "test"  # the set of the data that was translated, or aligned
    references: list[str] = field(default_factory=list)  # files that replace the references of the data
    user_dirs: list[str] = field(default_factory=list)  # packages with the user's own models
    baseline: str | None = None  # the title of the row with which significance tests compare the others
    row_flags: dict[str, dict[str, str]] = field(default_factory=dict)  # by name; of rows that are not shown, too
    data: str = ""  # the full path of the data folder
    contents: dict[str, str] = field(default_factory=dict)  # what identifies "data", "gold" and each of `references`


def make_record(
    settings: Settings,
    results: list[Result],
    seeds: int,
    references: Sequence[Path] = (),
    gold: Path | None = None,
    ran: bool = True,
) -> Record:
    """Create the record of results, with today's date.

    Args:
        references: the files that replace the references of the data.
        gold: the gold alignments of the test set.
        ran: whether the rows ran on this machine.
    """
    table = settings.table
    return Record(
        title=table.title,
        metric=table.metric.upper(),
        paper=table.paper,
        published_on=table.data,
        measured_on=settings.data,
        date=date.today().isoformat(),
        hardware=hardware() if ran else "collected from runs that may come from other machines",
        versions=f"{versions()}, sacrebleu {sacrebleu.__version__}",
        command=shlex.join(["lwc-fairseq", *sys.argv[1:]]),
        seeds=seeds,
        flags={name: value for name, value in flags(settings).items() if value},
        rows=results,
        subset=settings.subset,
        references=[str(path.absolute()) for path in references],
        user_dirs=settings.user_dirs,
        baseline=table.row(table.baseline).title if table.baseline else None,
        row_flags={row.name: row_flags(settings, row) for row in table.rows if row.runs or row.source},
        data=os.pathsep.join(map(os.path.abspath, settings.data.split(os.pathsep))),
        contents=contents(settings, references, gold),
    )


def contents(settings: Settings, references: Sequence[Path], gold: Path | None) -> dict[str, str]:
    """Return what identifies the contents of the data and files that the results depend on."""
    found = {str(path.absolute()): file_content(path) for path in references if path.is_file()}
    if gold is not None:
        found["gold"] = file_content(gold)
    data = data_content(settings.data, [re.escape(settings.subset)])
    return found if data is None else {**found, "data": data}


def flags(settings: Settings) -> dict[str, str]:
    """Return the flags that all rows share, and where models and weights come from."""
    return {
        "optimizer": settings.optimizer_flags,
        "train": settings.train_flags,
        "generate": settings.generate_flags,
        "more of train": shlex.join(settings.train),
        "more of generate": shlex.join(settings.generate),
        "checkpoint": f"mean of the last {settings.average} epochs" if settings.average else "",
        "packages of models": " ".join(settings.user_dirs),
    }


def row_flags(settings: Settings, row: Row) -> dict[str, str]:
    """Return a row's label, its preset or path, the flags that it adds to those of the table, and where its published
    value stands."""
    found = {"label": row.label or "", "arch": row.arch or "", "path": row.path or ""}
    if row.arch:
        found["own optimizer"] = (row.optimizer or "") if settings.profile.optimizer is None else ""
        found["train"] = f"{row.train.strip()} {shlex.join(settings.profile.flags_of(row.arch))}".strip()
        found["member"] = str(row.member or "")
    if settings.is_scored(row):
        found["generate"] = row.generate.strip()
    found["published in"] = row.source or ""
    return {name: value for name, value in found.items() if value}


def write_record(record: Record, path: Path) -> None:
    write_whole(path, json.dumps(only_finite(asdict(record)), indent=1, allow_nan=False))


def only_finite(value: object) -> object:
    """Return a value of JSON with texts, such as "nan", in place of the numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: only_finite(part) for key, part in value.items()}
    if isinstance(value, list):
        return [only_finite(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def read_record(path: Path) -> Record:
    """Read a record.

    Raises:
        UserError: the file cannot be read, or is not a record.
    """
    try:
        content = json.loads("\n".join(read_lines(path)))
        return Record(**{**content, "rows": [Result(**row) for row in content["rows"]]})
    except json.JSONDecodeError as error:
        raise UserError(f"{path}, line {error.lineno}: not JSON: {error.msg}") from error
    except (KeyError, TypeError) as error:
        raise UserError(f"{path}: `lwc-fairseq table` did not write this file: {error}") from error
