"""Reading tables and profiles from YAML files."""

import re
import shlex
from pathlib import Path

from fairseq.models import ARCH_MODEL_REGISTRY

from lwc_fairseq_compat import UserError

from ..analysis.comparison import check_name
from ..environment import import_plugins
from ..typed_yaml import as_settings, read_yaml
from .layout import FILES
from .table import Profile, Row, Table


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
        import_own_models(path, table.user_dir)
    table.rows = [as_settings(f"{path}: row {row.get('name', i + 1)}", Row, row) for i, row in enumerate(rows)]
    check(path, table)
    if only:
        keep_rows(path, table, only)
    return table


def load_profile(path: Path | None) -> Profile:
    """Read a profile. Without a file, return a profile that changes nothing.

    Raises:
        UserError: the file cannot be read, or has an unknown key or an invalid value.
    """
    return Profile() if path is None else as_settings(str(path), Profile, read_yaml(path))


def import_own_models(path: Path, user_dir: str) -> None:
    """Import the package of a table file, which registers presets that rows may name.

    Raises:
        UserError: there is no such package.
    """
    try:
        import_plugins([user_dir])
    except UserError as error:
        raise UserError(f"{path}: user_dir: {str(error).removeprefix('--user-dir ')}") from error


def check(path: Path, table: Table) -> None:
    """Raises UserError if a value is invalid or rows contradict each other."""
    seen: set[str] = set()
    for row in table.rows:
        check_row(path, table, row, seen)
        seen.add(row.name)
    if table.average < 0:
        raise UserError(f"{path}: average {table.average}: must not be negative")
    if table.metric not in ("bleu", "aer"):
        raise UserError(f"{path}: metric {table.metric}: choose bleu or aer")
    check_labels(path, table)
    for row in (table, *table.rows):
        if row.baseline is not None:
            check_baseline(path, table, row.baseline)
    for flags in (table.optimizer, table.train, table.generate):
        split(path, "flags of the table", flags)


def check_labels(path: Path, table: Table) -> None:
    """Raises UserError if two rows have the same label, because pages and pictures tell rows apart by it, or one has
    the label of something else there."""
    seen: set[str] = set()
    for row in table.rows:
        check_name(row.title, f"{path}: row {row.name}: label")
        if row.runs and not row.hidden:
            if row.title in seen:
                raise UserError(f"{path}: row {row.name}: label {row.title}: another row has it")
            seen.add(row.title)


def check_baseline(path: Path, table: Table, name: str) -> None:
    """Raises UserError if no row can be compared with the baseline of this name."""
    if name not in {row.name for row in table.rows}:
        raise UserError(f"{path}: baseline {name}: no such row")
    if not table.row(name).runs:
        raise UserError(f"{path}: baseline {name}: this row has no translations: it lacks arch and path")
    if table.metric == "aer":
        raise UserError(f"{path}: baseline {name}: significance is tested for BLEU only, not for metric: aer")


def check_row(path: Path, table: Table, row: Row, seen: set[str]) -> None:
    """Raises UserError if a row is invalid.

    Args:
        seen: the names of the preceding rows.
    """
    if not re.fullmatch(r"[a-z0-9_.]*[a-z0-9_][a-z0-9_.]*", row.name) or row.name in seen:
        raise UserError(f"{path}: row {row.name!r}: names are of a-z, 0-9, _ and ., each used once")
    if row.name in FILES:
        raise UserError(f"{path}: row {row.name}: the table itself writes a file of this name: give another name")
    if row.arch is not None and row.path is not None:
        raise UserError(f"{path}: row {row.name}: give arch or path, not both")
    if not row.runs and (row.train or row.generate or row.optimizer):
        raise UserError(f"{path}: row {row.name}: it has flags, but no arch to train and no path to translate with")
    if not row.runs and row.published is None:
        raise UserError(f"{path}: row {row.name}: give arch or path or published")
    for flags in (row.train, row.generate, row.optimizer or ""):
        split(path, row.name, flags)
    if row.path is not None and len(split(path, row.name, row.path)) != 1:
        raise UserError(f"{path}: row {row.name}: path {row.path}: give one path, quoted if it has blanks")
    if row.arch is not None and row.arch not in ARCH_MODEL_REGISTRY:
        raise UserError(f"{path}: row {row.name}: arch {row.arch}: no such preset (your own models need user_dir)")
    for need in row.needs():
        if need not in seen or not table.row(need).arch:
            raise UserError(f"{path}: row {row.name}: {{{need}}}: no row of that name is trained before it")


def split(path: Path, where: str, flags: str) -> list[str]:
    """Split flags into words.

    Raises:
        UserError: the flags do not have shell syntax.
    """
    try:
        return shlex.split(flags)
    except ValueError as error:
        raise UserError(f"{path}: {where}: {flags}: {error}") from error


def keep_rows(path: Path, table: Table, names: list[str]) -> None:
    """Remove the rows that are neither in `names` nor needed by a row in `names`.

    Raises:
        UserError: the table has no row with one of the names.
    """
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
