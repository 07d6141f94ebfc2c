"""Users' own plugins: packages that register models, criterions or tasks with fairseq."""

from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

from fairseq.utils import import_user_module


def import_plugins(user_dirs: Iterable[str]) -> None:
    """Import packages as ``fairseq-train --user-dir`` does.

    Args:
        user_dirs: the folders, or the names of installed packages.

    Raises:
        UserError: there is no such folder or package.
    """
    for user_dir in user_dirs:
        import_user_module(Namespace(user_dir=user_dir))


def absolute(user_dir: str) -> str:
    """Return the full path of a folder, which commands in other folders find, too. The name of a package is returned
    as it is."""
    path = Path(user_dir)
    return str(path.resolve()) if path.exists() else user_dir
