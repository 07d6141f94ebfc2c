"""Fetch files that examples/sources.yaml lists: resumed where it stopped, compared with sizes and checksums.

    python examples/fetch.py NAME [NAME ...] --to FOLDER [--from FOLDER|URL] [--room GIB]

What is there already is not fetched again. Without a network, or where the official place has moved, --from names a
folder with the files, or the address of a mirror. A file in a folder of yours is taken even if it is not the original,
which is said; one from a mirror is not.
"""

import argparse
import hashlib
import http.client
import os
import shutil
import sys
import tarfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import yaml
from tqdm import tqdm

SOURCES = Path(__file__).with_name("sources.yaml")
CHUNK_BYTES = 2**20
TIMEOUT_S = 60
SPARE_BYTES = 2**26  # left free on the disk


class FetchError(Exception):
    """What went wrong, in a line: what, which file, what to do."""


@dataclass(frozen=True)
class Source:
    """An entry of sources.yaml."""

    name: str
    url: str
    bytes: int | None = None
    sha256: str | None = None
    md5: str | None = None  # where that is what is published
    other_name: str | None = None  # in its official place, if no other source has that name

    @property
    def file(self) -> str:
        return Path(self.name).name


def read_sources(path: Path) -> dict[str, Source]:
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    names = {name: Path(urllib.parse.urlsplit(entry["url"]).path).name for name, entry in entries.items()}
    counts = Counter(names.values())
    return {
        name: Source(name, **entry, other_name=names[name] if counts[names[name]] == 1 else None)
        for name, entry in entries.items()
    }


def fetch(source: Source, folder: Path, place: str | None) -> Path:
    """The file of a source in `folder`, fetched if it is not there yet; `place` is the value of --from."""
    path = folder / source.file
    if path.exists():
        print(f"{path} is there already", file=sys.stderr)
        return path
    part = path.with_name(path.name + ".part")
    check_space(folder, (source.bytes or 0) - arrived(path))
    if is_folder(place):
        copy_own(source, Path(place), part)
    else:
        url = source.url if place is None else f"{place.rstrip('/')}/{source.file}"
        download(url, part, source.bytes)
        check(source, part, url)
    os.replace(part, path)
    return path


def is_folder(place: str | None) -> bool:
    return place is not None and "://" not in place


def check_space(folder: Path, wanted: int) -> None:
    free = shutil.disk_usage(folder).free
    if wanted + SPARE_BYTES > free:
        raise FetchError(
            f"{folder}: {free >> 20} MiB are free, and {(wanted + SPARE_BYTES) >> 20} MiB are needed: make room, or "
            "name another folder (--to; of a recipe, --out)"
        )


def arrived(path: Path) -> int:
    """Bytes of a file, or of what has come of it."""
    return sum(file.stat().st_size for file in (path, path.with_name(path.name + ".part")) if file.exists())


def copy_own(source: Source, place: Path, part: Path) -> None:
    """From a folder of the user's, under the name here or under that at the official place."""
    names = [name for name in (source.file, source.other_name) if name]
    own = next((place / name for name in names if (place / name).is_file()), None)
    if own is None:
        raise FetchError(f"--from {place}: there is no {' and no '.join(names)}")
    if not is_of_its_kind(source, own):
        raise FetchError(f"{own} is damaged, or not a {Path(source.file).suffix} file: put the original there")
    shutil.copyfile(own, part)
    if not expected(source, part):
        print(f"{own} is not the file at {source.url}: taken as it is", file=sys.stderr)


def download(url: str, part: Path, size: int | None) -> None:
    """Append what is missing to `part`."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            if have and answer.status != 206:  # it sends the whole file
                have = 0
            length = answer.headers.get("Content-Length")
            total = have + int(length) if length else size
            settings = {"total": total, "initial": have, "unit": "B", "unit_scale": True, "desc": part.stem}
            with part.open("ab" if have else "wb") as out, tqdm(**settings) as progress:
                while chunk := answer.read(CHUNK_BYTES):
                    out.write(chunk)
                    progress.update(len(chunk))
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # there is nothing after what is here
            return
        raise FetchError(
            f"{url}: {error.code} {error.reason}: get the file elsewhere, and name its place by --from"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise FetchError(
            f"{url}: {getattr(error, 'reason', error)}: the same command goes on where it stopped"
        ) from error
    if total is not None and part.stat().st_size < total:
        raise FetchError(f"{url}: the connection ended early: the same command goes on where it stopped")


def check(source: Source, part: Path, url: str) -> None:
    """Compare size and checksum; a file that is another one is removed."""
    if not (expected(source, part) and is_of_its_kind(source, part)):
        found = f"bytes {part.stat().st_size}, sha256 {digest(part, 'sha256')}"
        part.unlink()
        wanted = [f"{name} {getattr(source, name)}" for name in ("bytes", "sha256", "md5") if getattr(source, name)]
        wanted = wanted or [f"a {Path(source.file).suffix} file"]
        raise FetchError(
            f"{url} is not the file that was expected ({found}; expected {', '.join(wanted)}); it was removed. Name "
            "another place by --from"
        )
    if source.sha256 is None:
        part.with_name(f"{source.file}.sha256").write_text(f"{digest(part, 'sha256')}  {source.file}\n")


def expected(source: Source, path: Path) -> bool:
    """Whether a file is the one of the list, as far as that is known."""
    if source.bytes not in (None, path.stat().st_size):
        return False
    published = {"sha256": source.sha256, "md5": source.md5}
    return all(value is None or digest(path, kind) == value for kind, value in published.items())


def is_of_its_kind(source: Source, path: Path) -> bool:
    """Whether an archive is one: a server may send a page that says that the file is elsewhere."""
    if source.file.endswith((".tgz", ".tar")):
        return tarfile.is_tarfile(path)
    if source.file.endswith(".zip"):
        return zipfile.is_zipfile(path)
    with path.open("rb") as file:
        return not source.file.endswith(".gz") or file.read(2) == b"\x1f\x8b"


def digest(path: Path, kind: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--to", required=True, type=Path, metavar="FOLDER")
    parser.add_argument("--from", dest="place", metavar="FOLDER|URL")
    parser.add_argument(
        "--room", default=0.0, type=float, metavar="GIB", help="free space that what follows a download will need"
    )
    parser.add_argument("--sources", type=Path, default=SOURCES, metavar="FILE", help="default: examples/sources.yaml")
    args = parser.parse_args()
    sources = read_sources(args.sources)
    if unknown := [name for name in args.names if name not in sources]:
        parser.error(f"{', '.join(unknown)}: not in {args.sources}, which has {', '.join(sources)}")
    args.to.mkdir(parents=True, exist_ok=True)
    try:
        files = [args.to / sources[name].file for name in args.names]
        if not is_folder(args.place) and not all(file.exists() for file in files):
            check_space(args.to, round(args.room * 2**30) - sum(map(arrived, files)))
        for name in args.names:
            print(fetch(sources[name], args.to, args.place))
    except FetchError as error:
        sys.exit(f"fetch.py: error: {error}")


if __name__ == "__main__":
    main()
