"""A job: the fairseq commands for one row of a table with one seed."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from .layout import RunFolder
from .table import Row

Command = list[str]

PLUGIN_FOLDER = re.compile(r"(?<= --user-dir )('[^']*'|\S+)")
"""Matches the folder of this package in a command line."""


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
        because it would continue from its last checkpoint.
        """
        for step, command in self.steps().items():
            file = self.folder.command(step)
            begun = step == "train" or self.folder.result(step).exists()
            if begun and file.exists() and not is_same_command(file.read_text(encoding="utf-8"), command):
                return f"{file} has other flags than this command: remove {self.folder.path}, or give another --out"
        return None

    def shell_lines(self) -> Iterator[str]:
        """Yield the steps as shell commands, one per line, which leave the same files as the runner."""
        folder = self.folder
        begin = f"mkdir -p {quote(folder.path)} && printf %s {{}} > {{}} && {{}}"
        ends = {
            "train": f" >> {quote(folder.log('train'))} 2>&1 && touch {quote(folder.result('train'))}",
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
    """Return whether a shell line is that command, even if this package has moved since the line was written."""
    return PLUGIN_FOLDER.sub("", line, count=1) == PLUGIN_FOLDER.sub("", shlex.join(command), count=1)
