"""A job: the fairseq commands for one row of a table with one seed."""

import itertools
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from .identity import Command, comment, difference
from .layout import RunFolder
from .table import Row


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

        A step that ran with other flags or other data is a reason if it is finished. Training is a reason as soon as it
        has begun, because it would continue from its last checkpoint. Another reason is that a row whose model it uses
        was trained again.
        """
        for step, command in self.steps().items():
            file = self.folder.command(step)
            begun = file.exists() and (step == "train" or self.folder.result(step).exists())
            if begun and (reason := difference(file.read_text(encoding="utf-8"), command, self.folder)):
                return f"{file} {reason}: remove {self._results_from(step)}, or give another --out"
            if begun and self.folder.needs.exists() and self.folder.needs.read_text() != self.needed_models():
                rows = ", ".join(need.row for need in self.needs)
                return (
                    f"{self.folder.path} was made with earlier models of the rows that it uses ({rows}): remove "
                    f"{self.folder.path}, or give another --out"
                )
        return None

    def _results_from(self, step: str) -> str:
        """Return what must be removed so that a step and those after it run again."""
        later = itertools.dropwhile(lambda name: name != step, self.steps())
        return str(self.folder.path) if step == "train" else " and ".join(str(self.folder.result(s)) for s in later)

    def needed_models(self) -> str:
        """Return what identifies the trained models that it uses: the times at which their trainings ended."""
        files = [need.result("train") for need in self.needs]
        return "".join(file.read_text() for file in files if file.exists())

    def shell_lines(self) -> Iterator[str]:
        """Yield the steps as shell commands, one per line, which leave the same files as the runner."""
        folder = self.folder
        trained = " ".join(quote(need.result("train")) for need in self.needs)
        needs = f"cat {trained} > {quote(folder.needs)} && " if trained else ""
        begin = f"mkdir -p {quote(folder.path)} && {needs}printf '%s\\n' {{}} {{}} > {{}} && {{}}"
        generating = f"{quote(folder.generated)}.$$.making"  # the number of the shell
        ends = {
            "train": f" >> {quote(folder.log('train'))} 2>&1 && date +%s.%N > {quote(folder.result('train'))}",
            "average": "",
            "generate": f" > {generating} 2> {quote(folder.log('generate'))}"
            f" && mv {generating} {quote(folder.generated)} || {{ rm -f {generating}; false; }}",
        }
        for step, command in self.steps().items():
            line = shlex.join(command)
            about = quote(comment(command, folder))
            yield begin.format(quote(line), about, quote(folder.command(step)), line) + ends[step]


def quote(value: object) -> str:
    return shlex.quote(str(value))
