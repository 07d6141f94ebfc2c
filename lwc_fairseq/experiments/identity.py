"""What identifies a step of a run: its command, and the contents of the data and the files that the command names.

A comment in the step's file `STEP.command` has checksums of the contents.
"""

import functools
import hashlib
import itertools
import json
import os
import platform
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fairseq
import torch

import lwc_fairseq

Command = list[str]

BLOCK_BYTES, BLOCKS = 2**16, 256
"""A file of up to 16 MiB is read whole. Of a larger file, about 256 blocks of 64 KiB are read, at equal distances."""

TEST = "test"
"""The set of the data that fairseq-generate and `lwc-fairseq align` read if no flag names another."""

DIGITS = 32
"""The length of a checksum. Checksums tell contents apart, but do not protect against forgery."""


@dataclass(frozen=True)
class Place:
    """The folder in which a command runs, and the folder of its table; both are absolute."""

    folder: str
    table: str

    @classmethod
    def here(cls, table: Path) -> "Place":
        return cls(os.getcwd(), os.path.abspath(table))

    def path(self, word: str) -> str:
        """Return the full path, or the list of paths, that a word of the command names. In a path inside the table's
        folder, TABLE stands for that folder."""
        table = os.path.realpath(self.table)
        paths = [os.path.realpath(os.path.join(self.folder, part)) for part in word.split(os.pathsep)]
        return os.pathsep.join(
            f"TABLE{path.removeprefix(table)}" if (path + os.sep).startswith(table + os.sep) else path for path in paths
        )


def hardware() -> str:
    """Describe the GPUs or, without GPUs, the processor."""
    if torch.cuda.is_available():
        return f"{torch.cuda.device_count()} × {torch.cuda.get_device_name()}"
    cpuinfo = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else []
    return f"{os.cpu_count()} cores, {names[0] if names else platform.processor() or 'CPU'}, no GPU"


def versions() -> str:
    """Return the versions of Python, PyTorch, fairseq and this package in one line."""
    python = f"Python {platform.python_version()}, PyTorch {torch.__version__}"
    return f"{python}, fairseq {fairseq.__version__}, lwc_fairseq {lwc_fairseq.__version__}"


def comment(command: Command, table: Path, ran_on: Mapping[str, list[str]] | None = None) -> str:
    """Return the comment of a command that runs now: where it runs, and the contents of what it names.

    Args:
        table: the folder of the table.
        ran_on: the "machines" and "versions" with which it runs and, if it was stopped, ran before.
    """
    place = Place.here(table)
    contents = {word: content for role, word in roles(command) if (content := content_of(role, word, command, place))}
    about = {"folder": place.folder, "table": place.table, "contents": contents, **(ran_on or {})}
    return "# " + json.dumps(about, ensure_ascii=False)


def record_of(command: Command, table: Path, ran_on: Mapping[str, list[str]] | None = None) -> str:
    """Return the content of the file `STEP.command` of a step: the command, and its :func:`comment`."""
    return f"{shlex.join(command)}\n{comment(command, table, ran_on)}\n"


def ran_before(recorded: str, key: str) -> list[str]:
    """Return the "machines" or "versions" of a step, as far as the content of its file `STEP.command` says so."""
    _, mark, facts = recorded.rpartition("\n# ")
    return json.loads(facts).get(key, []) if mark else []


def difference(recorded: str, command: Command, table: Path) -> str | None:
    """Return how a step that ran before differs from a command of now, or None if it does not.

    Args:
        recorded: the content of the file `STEP.command`.
        table: the folder of the table.
    """
    now = Place.here(table)
    line, mark, facts = recorded.rpartition("\n# ")
    if not mark:
        return "does not say where it ran"
    about: dict[str, Any] = json.loads(facts)
    then = Place(about["folder"], about["table"])
    old_words, new_words = list(roles(shlex.split(line))), list(roles(command))
    if [role for role, _ in old_words] != [role for role, _ in new_words]:
        return "has other flags than this command"
    for (role, old), (_, new) in zip(old_words, new_words, strict=True):
        contents = about["contents"].get(old), content_of(role, new, command, now)
        if role == "data" and contents[0] and not contents[1] and then.path(old) != now.path(new):
            return f"ran with the data {then.path(old)}, and there is none in {now.path(new)}, which --data names"
        known = None not in contents
        same_content, same_path = contents[0] == contents[1], then.path(old) == now.path(new)
        if role == "package":
            same = Path(old).name == Path(new).name and (same_path or same_content or not known)
        else:
            same = same_content if known else old == new or same_path
        if not same and not known:
            return "has other flags than this command"
        if not same:
            paths = [os.path.normpath(os.path.join(place.folder, word)) for place, word in ((then, old), (now, new))]
            return f"ran with {paths[0]}, which had other contents than {paths[1]} has now"
    return None


def roles(command: Command) -> Iterator[tuple[str, str]]:
    """Yield the parts of a command, each with what it is: "data", a "package" of models, or another "word".

    A list of paths, and a flag with its value in one word, have several parts.
    """
    for place, (flag, word) in enumerate(itertools.pairwise(["", *command])):
        if flag == "--data" or (place == 1 and command[0].startswith("fairseq-")):
            yield "data", word
        elif flag == "--user-dir":
            yield from (("package", part) for part in word.split(os.pathsep))
        else:
            name, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
            yield "word", name + equals
            yield from (("word", part) for part in value.split(os.pathsep))


def content_of(role: str, word: str, command: Command, place: Place) -> str | None:
    """Return a checksum of the files that a part of a command names, or None if there is none.

    There is none for this package, nor for files in the table's folder, because the runs make them.
    """
    if role == "data":
        reads_reverse = "--reverse-from-data" in command or last_value(command, "--reverse-context") == "translations"
        return data_content(word, sets_of(command), reads_reverse)
    if role == "package":
        folder = Path(word).resolve()
        return None if folder == Path(lwc_fairseq.__file__).resolve().parent else content(folder.rglob("*.py"), folder)
    if os.path.isfile(word) and os.access(word, os.R_OK) and not place.path(word).startswith("TABLE"):
        return file_content(Path(word))
    return None


def sets_of(command: Command) -> list[str]:
    """Return the sets of the data that a command reads, as regular expressions."""
    if command[0] != "fairseq-train":
        return [re.escape(last_value(command, "--gen-subset") or last_value(command, "--subset") or TEST)]
    validation = (last_value(command, "--valid-subset") or "valid").split(",")
    # fairseq also trains on the sets train1, train2 and so on
    return [re.escape(last_value(command, "--train-subset") or "train") + r"\d*", *map(re.escape, validation)]


def last_value(command: Command, flag: str) -> str | None:
    """Return the last value of a flag in a command."""
    words = [part for word in command for part in (word.split("=", 1) if word.startswith(flag + "=") else [word])]
    values = [value for word, value in itertools.pairwise(words) if word == flag]
    return values[-1] if values else None


def data_content(data: str, sets: list[str], with_reverse: bool = False) -> str | None:
    """Return what identifies the content of the dictionaries and of some sets of the data, or None if there are none.

    Args:
        data: the folders of binary data, separated as in fairseq's commands.
        sets: regular expressions of the names of the sets.
        with_reverse: whether the reverse translations of these sets count.
    """
    places = ["*", "reverse/*.bin", "reverse/*.idx"] if with_reverse else ["*"]
    names = re.compile(rf"({'|'.join(['dict', *sets])})\..*")
    folders = [Path(folder) for folder in data.split(os.pathsep)]
    contents = [
        content((path for place in places for path in folder.glob(place) if names.fullmatch(path.name)), folder)
        for folder in folders
    ]
    return None if None in contents else "+".join(filter(None, contents))


def content(files: Iterable[Path], folder: Path) -> str | None:
    """Return what identifies the names and the content of files in a folder, or None if there are none."""
    contents = {str(path.relative_to(folder)): file_content(path) for path in files if path.is_file()}
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()[:DIGITS] if contents else None


def file_content(path: Path) -> str:
    """Return what identifies the content of a file."""
    about = path.stat()
    return digest(path, about.st_size, about.st_mtime_ns)


@functools.cache
def digest(path: Path, size: int, changed: int) -> str:
    """Return a checksum of a file, which is computed once as long as its size and its time of change stay."""
    checksum = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        for start in range(0, size, max(BLOCK_BYTES, size // BLOCKS)):
            file.seek(start)
            checksum.update(file.read(BLOCK_BYTES))
    return checksum.hexdigest()[:DIGITS]
