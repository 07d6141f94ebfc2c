"""A row of a table with one seed, as commands of fairseq."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from .layout import RunFolder
from .table import Row

Command = list[str]

PLUGIN_FOLDER = re.compile(r"(?<= --user-dir )('[^']*'|\S+)")
"""In the line of a command, the folder of this package."""


class JobFailed(Exception):
    """A job could not be done; the message says why."""


@dataclass(frozen=True)
class Job:
    """What is done in one folder. Each step leaves a file by which a later run knows that it is done."""

    row: Row
    folder: RunFolder
    train: Command | None  # None if the row uses the models of other rows
    average: Command | None
    generate: Command | None  # None if only other rows need this one
    needs: tuple[RunFolder, ...] = ()  # the folders of the jobs whose checkpoints it uses

    @property
    def name(self) -> str:
        return f"{self.row.name}, seed {self.folder.seed}"

    def steps(self) -> dict[str, Command]:
        """The commands, in their order."""
        steps = {"train": self.train, "average": self.average, "generate": self.generate}
        return {name: command for name, command in steps.items() if command}

    @property
    def done(self) -> bool:
        """Whether the last step is done."""
        return all(self.folder.result(step).exists() for step in list(self.steps())[-1:])

    def refusal(self) -> str | None:
        """Why the files in the folder cannot be used, or None.

        A step that ran with other flags counts if it is done, and training counts from its beginning, since it would
        continue from its last checkpoint.
        """
        for step, command in self.steps().items():
            file = self.folder.command(step)
            begun = step == "train" or self.folder.result(step).exists()
            if begun and file.exists() and not is_same_command(file.read_text(encoding="utf-8"), command):
                return f"{file} has other flags than those of now: remove {self.folder.path}, or give another --out"
        return None

    def shell_lines(self) -> Iterator[str]:
        """The steps as lines for a shell. They leave the files that the runner would leave."""
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
    """Whether a line for a shell is that command. This package may have moved since the line was written."""
    return PLUGIN_FOLDER.sub("", line, count=1) == PLUGIN_FOLDER.sub("", shlex.join(command), count=1)
