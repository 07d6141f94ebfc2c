"""Reading and writing files. A path that cannot be used raises UserError, which names it."""

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


def read_lines(path: Path) -> list[str]:
    """Read the lines of a UTF-8 text that is not empty. As in fairseq, only the newline character ends a line."""
    text = read_utf8(path)
    if not text:
        raise UserError(f"{path}: the file is empty")
    return text.removesuffix("\n").split("\n")


def make_place(out: Path, option: str = "--out") -> None:
    """Create the folder of the file that an option names. The path must not be a folder itself."""
    make_folder(out.parent, option)
    if out.is_dir():
        raise UserError(f"{option} {out}: a folder; give the name of a file")


def make_folder(out: Path, option: str = "--out") -> None:
    """Create the folder that an option names."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{option} {out}: {error.strerror}") from error
