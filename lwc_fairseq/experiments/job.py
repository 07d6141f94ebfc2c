"""A job: the fairseq commands for one row of a table with one seed."""

import itertools
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .layout import RunFolder
from .table import Row

Command = list[str]


class JobFailed(Exception):
    """A job failed; the message says why."""


class JobStopped(JobFailed):
    """The table was stopped, and the job with it."""

    def __init__(self):
        super().__init__("stopped")


@dataclass(frozen=True)
class Job:
    """The commands that run in one folder. Each finished step leaves a file, so that a later run skips the step."""

    row: Row
    folder: RunFolder
    train: Command | None  # None if the row uses the models of other rows
    average: Command | None
    generate: Command | None  # None if only other rows use this one
    needs: tuple[RunFolder, ...] = ()  # folders of the jobs whose checkpoints it uses

    @property
    def name(self) -> str:
        return f"{self.row.name}, seed {self.folder.seed}"

    def steps(self) -> dict[str, Command]:
        """Return the commands by step, in the order in which they run."""
        steps = {"train": self.train, "average": self.average, "generate": self.generate}
        return {name: command for name, command in steps.items() if command}

    @property
    def done(self) -> bool:
        """Whether the last step is done."""
        return all(self.folder.result(step).exists() for step in list(self.steps())[-1:])

    def refusal(self) -> str | None:
        """Return the reason why the files in the folder cannot be used, or None.

        A step that ran with other flags is a reason if it is finished. Training is a reason as soon as it has begun,
        because it would continue from its last checkpoint. Another reason is that a row whose model it uses was trained
        again.
        """
        remedy = f"remove {self.folder.path}, or give another --out"
        for step, command in self.steps().items():
            file = self.folder.command(step)
            begun = file.exists() and (step == "train" or self.folder.result(step).exists())
            if begun and not is_same_command(file.read_text(encoding="utf-8"), command):
                return f"{file} has other flags than this command: {remedy}"
            if begun and self.folder.needs.exists() and self.folder.needs.read_text() != self.needed_models():
                rows = ", ".join(need.row for need in self.needs)
                return f"{self.folder.path} was made with earlier models of the rows that it uses ({rows}): {remedy}"
        return None

    def needed_models(self) -> str:
        """Return what identifies the trained models that it uses: the times at which their trainings ended."""
        files = [need.result("train") for need in self.needs]
        return "".join(file.read_text() for file in files if file.exists())

    def shell_lines(self) -> Iterator[str]:
        """Yield the steps as shell commands, one per line, which leave the same files as the runner."""
        folder = self.folder
        trained = " ".join(quote(need.result("train")) for need in self.needs)
        needs = f"cat {trained} > {quote(folder.needs)} && " if trained else ""
        begin = f"mkdir -p {quote(folder.path)} && {needs}printf %s {{}} > {{}} && {{}}"
        ends = {
            "train": f" >> {quote(folder.log('train'))} 2>&1 && date +%s.%N > {quote(folder.result('train'))}",
            "average": "",
            "generate": f" > {quote(folder.making)} 2> {quote(folder.log('generate'))}"
            f" && mv {quote(folder.making)} {quote(folder.generated)}",
        }
        for step, command in self.steps().items():
            line = shlex.join(command)
            yield begin.format(quote(line), quote(folder.command(step)), line) + ends[step]


def quote(value: object) -> str:
    return shlex.quote(str(value))


def is_same_command(line: str, command: Command) -> bool:
    """Return whether a shell line is that command. Paths may be relative in one and absolute in the other, and packages
    of --user-dir may have moved since the line was written."""
    return comparable(shlex.split(line)) == comparable(command)


def comparable(command: Command) -> Command:
    """Replace the packages of --user-dir by their names, and all other words, as if they were paths, by full paths."""
    pairs = itertools.pairwise(["", *command])
    return [package_names(word) if flag == "--user-dir" else full_paths(word) for flag, word in pairs]


def package_names(user_dir: str) -> str:
    return os.pathsep.join(Path(one).name for one in user_dir.split(os.pathsep))


def full_paths(word: str) -> str:
    return os.pathsep.join(os.path.realpath(path) for path in word.split(os.pathsep))
