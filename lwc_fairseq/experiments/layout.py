"""The layout of the folder that `lwc-fairseq table` writes.

OUT/plan.json                 the runs of the last command: their steps, and which runs they need
OUT/table.md, table.json, table.png, learning_curves.png, report.html
OUT/ROW/trial1/               a training with flags that are tried; its files are those of a run
OUT/ROW/seed1/                a run: one row with one seed
    train.command …           the command of each step (train, average, generate), as a shell line, and a comment:
                              where it ran, and what the contents of its data and files were
    train.log …               what the step printed
    trained                   marks the training as finished, and contains the time
    needs                     a copy of the files `trained` of the rows whose models this row uses
    averaged.pt               the mean of the last checkpoints, if the table averages
    generated.txt             the translations or alignments
    generated.test1.txt …     in their place, the translations of each set of a table with named tests
    checkpoint_best.pt …      fairseq's checkpoints
    lock                      locked by the process that works in the folder
    job                       on a cluster: the last job that was submitted for this run
    failed                    why the last attempt failed
    submitit/                 on a cluster: submitit's files, with the output of each job
"""

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path

PAGE, RECORD, CURVE, LEARNING_CURVES = "table.md", "table.json", "table.png", "learning_curves.png"
REPORT, PLAN = "report.html", "plan.json"
FILES = (PAGE, RECORD, CURVE, LEARNING_CURVES, REPORT, PLAN)
"""The names of the files in a table's folder, which no row can have."""

RESULTS = {"train": "trained", "average": "averaged.pt", "generate": "generated.txt"}
"""The steps of a run, in the order in which they run, and the file that marks each step as finished."""


def hindrance(needs: Iterable["RunFolder"], failed: Container["RunFolder"]) -> str | None:
    """Return why a run that needs other runs can never begin, or None if none of them failed."""
    for need in needs:
        if need in failed:
            return f"its trial {need.trial} failed" if need.trial else f"it needs {need.row}, which failed"
    return None


def generate_steps(subsets: Iterable[str]) -> list[str]:
    """Return the steps that translate: one for each set of named tests or, without any, one for the only set."""
    return [f"generate.{subset}" for subset in subsets] or ["generate"]


@dataclass(frozen=True)
class RunFolder:
    """The folder of one row with one seed, or of one of its trials, in the folder of the table."""

    table: Path
    row: str
    seed: int
    trial: int = 0  # the number of the trial; 0 in a run

    @property
    def path(self) -> Path:
        return self.table / self.row / (f"trial{self.trial}" if self.trial else f"seed{self.seed}")

    @classmethod
    def at(cls, path: Path) -> "RunFolder | None":
        """Return what a path OUT/ROW/seed1 or OUT/ROW/trial1 stands for. None if it is another one."""
        match = re.fullmatch(r"(seed|trial)(\d+)", path.name)
        if match is None:
            return None
        table, row, number = path.parent.parent, path.parent.name, int(match[2])
        return cls(table, row, number) if match[1] == "seed" else cls(table, row, 1, number)

    @property
    def name(self) -> str:
        return f"{self.row}, trial {self.trial}" if self.trial else f"{self.row}, seed {self.seed}"

    def command(self, step: str) -> Path:
        return self.path / f"{step}.command"

    def log(self, step: str) -> Path:
        return self.path / f"{step}.log"

    def result(self, step: str) -> Path:
        kind, _, subset = step.partition(".")
        file = self.path / RESULTS[kind]
        return file.with_stem(f"{file.stem}.{subset}") if subset else file

    def is_done(self, steps: Iterable[str]) -> bool:
        """Return whether the last of the steps of a run is done. All translations count as the last step."""
        names = list(steps)
        last = [step for step in names if step.startswith("generate")] or names[-1:]
        return all(self.result(step).exists() for step in last)

    def checkpoint(self, averaged: bool) -> Path:
        """Return the checkpoint that generation uses."""
        return self.result("average") if averaged else self.path / "checkpoint_best.pt"

    @property
    def needs(self) -> Path:
        return self.path / "needs"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def job(self) -> Path:
        return self.path / "job"

    @property
    def failure(self) -> Path:
        return self.path / "failed"

    @property
    def submitit(self) -> Path:
        return self.path / "submitit"
