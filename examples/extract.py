r"""Extract parallel text from the archives of a corpus: one sentence a line, equally many lines on both sides.

    python examples/extract.py SOURCE TARGET --archives FOLDER --to PREFIX \
        --corpus ARCHIVE SOURCE_FILE TARGET_FILE [--corpus ...]

writes PREFIX.SOURCE and PREFIX.TARGET, one corpus after the other.

- An ARCHIVE is a tar or zip file in FOLDER, or `.` for FOLDER itself. A file in it is found by its name, in any folder
  of the archive.
- Of `.sgm` files, the test sets of WMT, only the segments are taken. `.gz` files are unpacked.
- Other characters that programs take for the end of a line (a carriage return, Unicode's line separator) become spaces.
"""

import argparse
import contextlib
import gzip
import re
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

SEGMENT = re.compile(r"<seg[^>]*>(.*)</seg>")
LINE_BREAKS = str.maketrans(dict.fromkeys("\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", " "))


class ExtractError(Exception):
    """The archives are not as expected. The message is one line."""


@contextlib.contextmanager
def opened(archive: Path, name: str) -> Iterator[BinaryIO]:
    """The file of that name in a folder, or in a tar or zip file. Raises ExtractError if there is none."""
    with contextlib.ExitStack() as stack:
        if archive.is_dir():
            file = (archive / name).open("rb") if (archive / name).is_file() else None
        elif archive.suffix == ".zip":
            members = stack.enter_context(zipfile.ZipFile(archive))
            path = next((path for path in members.namelist() if Path(path).name == name), None)
            file = path and members.open(path)
        else:
            members = stack.enter_context(tarfile.open(archive))
            member = next((member for member in members if member.isfile() and Path(member.name).name == name), None)
            file = member and members.extractfile(member)
        if file is None:
            raise ExtractError(f"{archive}: {name} is not in it: not the whole archive, or another one")
        yield stack.enter_context(file)


def sentences(file: BinaryIO, name: str) -> Iterator[str]:
    """The lines of a file without their ends; of a `.sgm` file its segments."""
    if name.endswith(".gz"):
        file, name = gzip.GzipFile(fileobj=file), name.removesuffix(".gz")
    for line in file:
        text = line.decode("utf-8").removesuffix("\n").translate(LINE_BREAKS)
        if not name.endswith(".sgm"):
            yield text
        elif segment := SEGMENT.search(text):
            yield " ".join(segment[1].split())


def extract(archives: Path, corpora: list[list[str]], to: list[Path]) -> None:
    """Writes both sides. Raises ExtractError if a file is missing or the sides of a corpus differ in length."""
    with contextlib.ExitStack() as stack:
        out = [stack.enter_context(path.open("w", encoding="utf-8", newline="\n")) for path in to]
        for archive, *names in corpora:
            counts = []
            for name, side in zip(names, out, strict=True):
                with opened(archives / archive, name) as file:
                    counts.append(sum(1 for text in sentences(file, name) if side.write(f"{text}\n")))
            print(f"  {names[0]}, {names[1]}: {counts[0]} pairs", file=sys.stderr)
            if counts[0] != counts[1]:
                raise ExtractError(f"{archive}: {names[0]} has {counts[0]} sentences, {names[1]} has {counts[1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="SOURCE", help="language of the source")
    parser.add_argument("target", metavar="TARGET", help="language of the target")
    parser.add_argument("--archives", required=True, type=Path, metavar="FOLDER", help="where the archives are")
    parser.add_argument("--to", required=True, metavar="PREFIX", help="the files to write, without the languages")
    names = ("ARCHIVE", "SOURCE_FILE", "TARGET_FILE")
    parser.add_argument("--corpus", required=True, nargs=3, action="append", metavar=names, help="may be repeated")
    args = parser.parse_args()
    try:
        extract(args.archives, args.corpus, [Path(f"{args.to}.{side}") for side in (args.source, args.target)])
    except ExtractError as error:
        sys.exit(f"extract.py: error: {error}")
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error, UnicodeDecodeError) as error:
        sys.exit(f"extract.py: error: {error}: if an archive in {args.archives} is damaged, remove it and start again")


if __name__ == "__main__":
    main()
