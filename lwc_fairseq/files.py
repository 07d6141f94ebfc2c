"""Files, folders and packages that a user names. One that cannot be used raises UserError, which names it."""

import hashlib
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.files import whole_file
from lwc_fairseq_compat.text import read_utf8


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically, so that other processes never see an incomplete file."""
    try:
        with whole_file(path) as making:
            Path(making).write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_lines(path: Path) -> list[str]:
    """Read the lines of a UTF-8 text that is not empty. As in fairseq, only the newline character ends a line."""
    text = read_utf8(path)
    if not text:
        raise UserError(f"{path}: the file is empty")
    return text.removesuffix("\n").split("\n")


def make_place(out: Path, option: str = "--out", inputs: Iterable[Path] = ()) -> None:
    """Create the folder of the file that an option names. The path must not be a folder itself, a device, which the
    file would replace, nor one of the files that are read."""
    make_folder(out.parent, option)
    if out.is_dir():
        raise UserError(f"{option} {out}: a folder; give the name of a file")
    if out.exists() and not out.is_file():
        raise UserError(f"{option} {out}: a device or a pipe; give the name of a file")
    if out.exists() and any(path.exists() and path.samefile(out) for path in inputs):
        raise UserError(f"{option} {out}: this file is read, and would be lost: give another name")


def make_folder(out: Path, option: str = "--out") -> None:
    """Create the folder that an option names."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{option} {out}: {error.strerror}") from error


def import_plugins(user_dirs: Iterable[str]) -> None:
    """Import packages that register models, as ``fairseq-train --user-dir`` does, by their folders or names.

    Raises:
        UserError: there is no such folder or package.
    """
    from fairseq.utils import import_user_module

    for user_dir in user_dirs:
        import_user_module(Namespace(user_dir=user_dir))


def absolute(user_dir: str) -> str:
    """Return the full path of a folder, so that it is valid in other folders. Return the name of a package as it is."""
    return str(Path(user_dir).resolve()) if Path(user_dir).exists() else user_dir
