"""Fetch files that examples/sources.yaml lists, and compare them with their sizes and checksums.

    python examples/fetch.py NAME [NAME ...] --to FOLDER [--from FOLDER|URL] [--room GIB]

A file that is already in FOLDER is not fetched again, and an interrupted download resumes. If there is no network, or
if a file has moved, name a folder with the files or the address of a mirror by --from. A file from your own folder is
taken even if it is not the original, with a warning; a file from a mirror must be the original.
"""

import argparse
import errno
import fcntl
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
from zlib import crc32

import yaml
from tqdm import tqdm

from lwc_fairseq_compat.files import whole_file

SOURCES = Path(__file__).with_name("sources.yaml")
CHUNK_BYTES = 2**20
TIMEOUT_S = 60
SPARE_BYTES = 2**26  # that stay free on the disk


class FetchError(Exception):
    """The message is one line: which file, what went wrong, what to do."""


@dataclass(frozen=True)
class Source:
    """An entry of sources.yaml."""

    name: str
    url: str
    bytes: int | None = None
    sha256: str | None = None
    md5: str | None = None  # if no SHA-256 is published
    other_name: str | None = None  # the last part of its URL, if that of no other source is the same

    @property
    def file(self) -> str:
        return Path(self.name).name


def read_sources(path: Path) -> dict[str, Source]:
    """Reads the entries. All values but `bytes` are text, as they stand.

    Raises FetchError.
    """
    entries = yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)
    for name, entry in entries.items():
        if unknown := entry.keys() - {"url", "bytes", "sha256", "md5"}:
            raise FetchError(f"{path}: {name}: {min(unknown)}: no such key; the keys are url, bytes, sha256 and md5")
        if "url" not in entry or not entry.get("bytes", "0").isdecimal():
            raise FetchError(f"{path}: {name}: give a url, and bytes as a number")
        entry |= {"bytes": int(entry["bytes"])} if "bytes" in entry else {}
    names = {name: Path(urllib.parse.urlsplit(entry["url"]).path).name for name, entry in entries.items()}
    counts = Counter(names.values())
    return {
        name: Source(name, **entry, other_name=names[name] if counts[names[name]] == 1 else None)
        for name, entry in entries.items()
    }


def fetch(source: Source, folder: Path, place: str | None) -> Path:
    """Returns the path of the file in `folder`, after fetching it if it is not there. `place` is the value of --from.

    Raises FetchError.
    """
    path = folder / source.file
    if path.exists():
        print(f"{path} is there already", file=sys.stderr)
        return path
    url = source.url if place is None else f"{place.rstrip('/')}/{source.file}"
    part = path.with_name(f"{path.name}.{crc32(url.encode()):08x}.part")
    check_space(folder, (source.bytes or 0) - arrived(path))
    if is_folder(place):
        with whole_file(path) as making:
            copy(source, Path(place), Path(making))
        return path
    for other in parts(path):
        if other != part:  # of another place, whose file may differ
            other.unlink()
    download(url, part, source.bytes)
    check(source, part, url)
    os.replace(part, path)
    return path


def lock(folder: Path) -> None:
    """Waits until no other process fetches into the folder. The end of this process ends the lock."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"{folder}: another process fetches files into it; waiting for its end", file=sys.stderr)
        fcntl.flock(handle, fcntl.LOCK_EX)


def is_folder(place: str | None) -> bool:
    return place is not None and "://" not in place


def check_space(folder: Path, wanted: int) -> None:
    """Raises FetchError unless so many bytes are free."""
    free = shutil.disk_usage(folder).free
    if wanted + SPARE_BYTES > free:
        raise FetchError(
            f"{folder}: {free >> 20} MiB are free, and {(wanted + SPARE_BYTES) >> 20} MiB are needed: make room, or "
            "name another folder (--to; of a recipe, --out)"
        )


def parts(path: Path) -> list[Path]:
    """What has been downloaded of a file. The name has a checksum of the URL."""
    return list(path.parent.glob(f"{path.name}.{'[0-9a-f]' * 8}.part"))


def arrived(path: Path) -> int:
    """The bytes of a file, or of the part of it that has been downloaded."""
    return sum(file.stat().st_size for file in (path, *parts(path)) if file.exists())


def copy(source: Source, place: Path, to: Path) -> None:
    """Copies the file from the user's folder, where it may have its name here or the last part of its URL."""
    if not place.is_dir():
        raise FetchError(f"--from {place}: there is no such folder")
    names = [name for name in (source.file, source.other_name) if name]
    file = next((place / name for name in names if (place / name).is_file()), None)
    if file is None:
        raise FetchError(f"--from {place}: there is no {' and no '.join(names)}")
    if not is_of_its_kind(source, file):
        raise FetchError(f"{file} is damaged, or not a {Path(source.file).suffix} file: put the original there")
    shutil.copyfile(file, to)
    if not expected(source, to):
        print(f"{file} is not the file at {source.url}: taken as it is", file=sys.stderr)


def download(url: str, part: Path, size: int | None) -> None:
    """Downloads what is missing and appends it to `part`. Raises FetchError."""
    have = part.stat().st_size if part.exists() else 0
    try:
        request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            if have and answer.status != 206:  # the server does not resume: it sends the whole file
                have = 0
            length = answer.headers.get("Content-Length")
            total = have + int(length) if length else size
            settings = {"total": total, "initial": have, "unit": "B", "unit_scale": True, "desc": Path(part.stem).stem}
            with part.open("ab" if have else "wb") as out, tqdm(**settings) as progress:
                while chunk := answer.read(CHUNK_BYTES):
                    out.write(chunk)
                    progress.update(len(chunk))
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # "range not satisfiable": the part is the whole file
            return
        raise FetchError(
            f"{url}: {error.code} {error.reason}: get the file elsewhere, and name its place by --from"
        ) from error
    except (OSError, http.client.HTTPException, ValueError) as error:  # the last of a malformed address
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise  # the disk is at fault, not the network
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise FetchError(
            f"{url}: {reason}: the same command goes on where it stopped. Without a network, name a folder with the "
            "file, or a mirror, by --from"
        ) from error
    if total is not None and part.stat().st_size < total:
        raise FetchError(f"{url}: the connection ended early: the same command goes on where it stopped")


def check(source: Source, part: Path, url: str) -> None:
    """Compares the size and the checksum. Raises FetchError after removing a file that differs."""
    if not (expected(source, part) and is_of_its_kind(source, part)):
        actual = f"bytes {part.stat().st_size}, sha256 {digest(part, 'sha256')}"
        part.unlink()
        wanted = [f"{name} {getattr(source, name)}" for name in ("bytes", "sha256", "md5") if getattr(source, name)]
        wanted = wanted or [f"a {Path(source.file).suffix} file"]
        raise FetchError(
            f"{url} is not the file that was expected ({actual}; expected {', '.join(wanted)}); it was removed. Name "
            "another place by --from"
        )
    if source.sha256 is None:
        part.with_name(f"{source.file}.sha256").write_text(f"{digest(part, 'sha256')}  {source.file}\n")


def expected(source: Source, path: Path) -> bool:
    """Whether a file has the size and the checksums that are published."""
    if source.bytes not in (None, path.stat().st_size):
        return False
    published = {"sha256": source.sha256, "md5": source.md5}
    return all(value is None or digest(path, kind) == value for kind, value in published.items())


def is_of_its_kind(source: Source, path: Path) -> bool:
    """Whether an archive is an archive, and no file a web page. A server may send one that says that the file has
    moved."""
    if source.file.endswith((".tgz", ".tar")):
        return tarfile.is_tarfile(path)
    if source.file.endswith(".zip"):
        return zipfile.is_zipfile(path)
    heads = {".gz": b"\x1f\x8b", ".bz2": b"BZh"}
    with path.open("rb") as file:
        head = file.read(64)
    is_page = head.lstrip().lower().startswith((b"<!doctype html", b"<html"))
    return not is_page and head.startswith(heads.get(Path(source.file).suffix, b""))


def digest(path: Path, kind: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--to", required=True, type=Path, metavar="FOLDER", help="where the files go")
    parser.add_argument("--from", dest="place", metavar="FOLDER|URL", help="default: the URLs in sources.yaml")
    parser.add_argument(
        "--room", default=0.0, type=float, metavar="GIB", help="free space that the download and what follows it need"
    )
    parser.add_argument("--sources", type=Path, default=SOURCES, metavar="FILE", help="default: examples/sources.yaml")
    args = parser.parse_args()
    try:
        sources = read_sources(args.sources)
    except FetchError as error:
        sys.exit(f"fetch.py: error: {error}")
    if unknown := [name for name in args.names if name not in sources]:
        parser.error(f"{', '.join(unknown)}: not in {args.sources}, which has {', '.join(sources)}")
    try:
        args.to.mkdir(parents=True, exist_ok=True)
        lock(args.to)
        files = [args.to / sources[name].file for name in args.names]
        if not is_folder(args.place) and not all(file.exists() for file in files):
            check_space(args.to, round(args.room * 2**30) - sum(map(arrived, files)))
        for name in args.names:
            print(fetch(sources[name], args.to, args.place))
    except FetchError as error:
        sys.exit(f"fetch.py: error: {error}")
    except OSError as error:
        place = error.filename or args.to
        sys.exit(f"fetch.py: error: {place}: {error.strerror}: mend this, or name another folder by --to or --from")
    except KeyboardInterrupt:
        sys.exit("fetch.py: interrupted: the same command goes on where it stopped")


if __name__ == "__main__":
    main()
