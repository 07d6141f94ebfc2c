"""What a step of a run is known by: its command, and the contents of the data and the files that the command names.

The contents stand as a comment in the step's file `STEP.command`. Files of earlier versions lack the comment.
"""

import functools
import hashlib
import itertools
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import lwc_fairseq

from .layout import RunFolder

Command = list[str]

BLOCK_BYTES, BLOCKS = 2**16, 256
"""A file is read whole up to 16 MiB. Of a larger one, so many blocks of this size are read, at equal distances."""

DIGITS = 32
"""Of a checksum. They tell contents apart; nobody is kept from forging one."""


@dataclass(frozen=True)
class Place:
    """The folder in which a command runs, and the folder of its table; both are absolute."""

    folder: str
    table: str

    def path(self, word: str) -> str:
        """Return the full path that a word of the command names; of files in the table's folder, from that folder."""
        path, table = (os.path.realpath(os.path.join(self.folder, name)) for name in (word, self.table))
        return f"TABLE{path.removeprefix(table)}" if (path + os.sep).startswith(table + os.sep) else path


def comment(command: Command, folder: RunFolder) -> str:
    """Return the comment of a command that runs now: where it runs, and the contents of what it names."""
    place = place_of(folder)
    found = {word: content for role, word in roles(command) if (content := content_of(role, word, command, place))}
    return "# " + json.dumps({"folder": place.folder, "table": place.table, "contents": found})


def place_of(folder: RunFolder) -> Place:
    return Place(os.getcwd(), os.path.abspath(folder.table))


def difference(recorded: str, command: Command, folder: RunFolder) -> str | None:
    """Return how a step that ran before differs from a command of now, or None if it does not.

    Args:
        recorded: the content of the file `STEP.command`.
    """
    line, mark, facts = recorded.rpartition("\n# ")
    if not mark:
        same = comparable(shlex.split(recorded)) == comparable(command)
        return None if same else "has other flags than this command"
    about = json.loads(facts)
    then, now = Place(about["folder"], about["table"]), place_of(folder)
    old_words, words = list(roles(shlex.split(line))), list(roles(command))
    if [role for role, _ in old_words] != [role for role, _ in words]:
        return "has other flags than this command"
    for (role, old), (_, new) in zip(old_words, words, strict=True):
        contents = about["contents"].get(old), content_of(role, new, command, now)
        if role == "package":
            same = Path(old).name == Path(new).name and (then.path(old) == now.path(new) or is_equal(*contents, True))
        else:
            same = is_equal(*contents, old == new or then.path(old) == now.path(new))
        if not same:
            if None in contents:
                return "has other flags than this command"
            paths = [os.path.normpath(os.path.join(place.folder, word)) for place, word in ((then, old), (now, new))]
            return f"ran with {paths[0]}, which had other contents than {paths[1]} has now"
    return None


def is_equal(old: str | None, new: str | None, otherwise: bool) -> bool:
    """Compare two contents; `otherwise` is the answer if one of them is not known."""
    return otherwise if old is None or new is None else old == new


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
    """Return what identifies the content of what a part of a command names, or None if it is not known.

    Files in the table's folder are not looked at, because the runs make them, nor is this package.
    """
    if role == "data":
        return data_content(word, sets_of(command))
    if role == "package":
        folder = Path(word).resolve()
        return None if folder == Path(lwc_fairseq.__file__).resolve().parent else content(folder.rglob("*.py"), folder)
    if not (os.path.isfile(word) and os.access(word, os.R_OK)) or place.path(word).startswith("TABLE"):
        return None
    return file_content(Path(word))


def sets_of(command: Command) -> list[str]:
    """Return the sets of the data that a command reads, as regular expressions."""
    if command[0] != "fairseq-train":
        return [re.escape(last_value(command, "--gen-subset") or last_value(command, "--subset") or "test")]
    validation = (last_value(command, "--valid-subset") or "valid").split(",")
    # fairseq also trains on the sets train1, train2 and so on
    return [re.escape(last_value(command, "--train-subset") or "train") + r"\d*", *map(re.escape, validation)]


def last_value(command: Command, flag: str) -> str | None:
    """Return the last value of a flag in a command."""
    words = [part for word in command for part in (word.split("=", 1) if word.startswith(flag + "=") else [word])]
    values = [value for word, value in itertools.pairwise(words) if word == flag]
    return values[-1] if values else None


def data_content(data: str, sets: list[str]) -> str | None:
    """Return what identifies the content of the dictionaries and of some sets of the data, or None if there are none.

    Args:
        data: the folders of binary data, separated as in fairseq's commands.
        sets: regular expressions of the names of the sets.
    """
    names = re.compile(rf"({'|'.join(['dict', *sets])})\..*")
    folders = [Path(folder) for folder in data.split(os.pathsep)]
    found = [content((file for file in folder.glob("*") if names.fullmatch(file.name)), folder) for folder in folders]
    return None if None in found else "+".join(found)


def content(files: Iterable[Path], folder: Path) -> str | None:
    """Return what identifies the names and the content of files in a folder, or None if there are none."""
    found = {str(file.relative_to(folder)): file_content(file) for file in files if file.is_file()}
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:DIGITS] if found else None


def file_content(path: Path) -> str:
    """Return what identifies the content of a file."""
    about = path.stat()
    return digest(path, about.st_size, about.st_mtime_ns)


@functools.cache
def digest(path: Path, size: int, changed: int) -> str:
    """Return a checksum of a file, which is computed once as long as its size and its time of change stay."""
    found = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        for start in range(0, size, max(BLOCK_BYTES, size // BLOCKS)):
            file.seek(start)
            found.update(file.read(BLOCK_BYTES))
    return found.hexdigest()[:DIGITS]


def comparable(command: Command) -> Command:
    """Replace the packages of --user-dir by their names, and all other words, as if they were paths, by full paths."""
    pairs = itertools.pairwise(["", *command])
    return [package_names(word) if flag == "--user-dir" else full_paths(word) for flag, word in pairs]


def package_names(user_dir: str) -> str:
    return os.pathsep.join(Path(one).name for one in user_dir.split(os.pathsep))


def full_paths(word: str) -> str:
    return os.pathsep.join(os.path.realpath(path) for path in word.split(os.pathsep))
