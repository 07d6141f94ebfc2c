"""The table files and profiles that come with this package: those of the papers."""

from pathlib import Path

import lwc_fairseq
from lwc_fairseq_compat import UserError


def published_folder() -> Path:
    """Return the folder of the papers' tables: in an installed package `tables`, in a checkout `examples/tables`."""
    package = Path(lwc_fairseq.__file__).parent
    installed = package / "tables"
    return installed if installed.is_dir() else package.parent / "examples" / "tables"


def find_table(given: Path) -> Path:
    """Return the table file that a path, or the name of one of the papers' tables, stands for.

    Raises:
        UserError: there is no such table.
    """
    return find(given, published_folder(), "table")


def find_profile(given: Path) -> Path:
    """Return the profile that a path, or the name of one that comes with the package, stands for.

    Raises:
        UserError: there is no such profile.
    """
    return find(given, published_folder() / "profiles", "profile")


def find(given: Path, folder: Path, kind: str) -> Path:
    if given.is_file():
        return given
    files = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    if str(given) in files:
        return files[str(given)]
    raise UserError(f"{given}: no such file, and no {kind} of the papers; these are {', '.join(files)}")
