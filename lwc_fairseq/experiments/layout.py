"""Where `lwc-fairseq table` puts its files.

OUT/table.md, table.json, table.png, report.html
OUT/ROW/seed1/                a run: a row with one seed
    train.command …           the command of each step (train, average, generate), as a line for a shell
    train.log …               what the step printed
    trained                   an empty file, which says that the training is done
    averaged.pt               the mean of the last checkpoints, if the table averages
    generated.txt             the translations, or the alignments; generated.making while they are written
    checkpoint_best.pt …      fairseq's checkpoints
    lock                      held by the process that works in the folder
"""

from dataclasses import dataclass
from pathlib import Path

RESULTS = {"train": "trained", "average": "averaged.pt", "generate": "generated.txt"}
"""The steps of a run, in their order, and the file that says that a step is done."""


@dataclass(frozen=True)
class TableFolder:
    """The folder of a table."""

    path: Path

    @property
    def page(self) -> Path:
        return self.path / "table.md"

    @property
    def record(self) -> Path:
        return self.path / "table.json"

    @property
    def curve(self) -> Path:
        return self.path / "table.png"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    def run(self, row: str, seed: int) -> "RunFolder":
        return RunFolder(self.path, row, seed)


@dataclass(frozen=True)
class RunFolder:
    """The folder of a row with one seed."""

    table: Path
    row: str
    seed: int

    @property
    def path(self) -> Path:
        return self.table / self.row / f"seed{self.seed}"

    def command(self, step: str) -> Path:
        return self.path / f"{step}.command"

    def log(self, step: str) -> Path:
        return self.path / f"{step}.log"

    def result(self, step: str) -> Path:
        return self.path / RESULTS[step]

    @property
    def generated(self) -> Path:
        return self.result("generate")

    @property
    def making(self) -> Path:
        """The file that becomes `generated` when it is complete."""
        return self.path / "generated.making"

    def checkpoint(self, averaged: bool) -> Path:
        """The checkpoint that translates."""
        return self.result("average") if averaged else self.path / "checkpoint_best.pt"

    @property
    def lock(self) -> Path:
        return self.path / "lock"
