"""The layout of the folder that `lwc-fairseq table` writes.

OUT/table.md, table.json, table.png, learning_curves.png, report.html
OUT/ROW/seed1/                a run: one row with one seed
    train.command …           the command of each step (train, average, generate), as a shell line, and a comment:
                              where it ran, and what the contents of its data and files were
    train.log …               what the step printed
    trained                   marks the training as finished, and contains the time
    needs                     `trained` of the rows whose models this row uses
    averaged.pt               the mean of the last checkpoints, if the table averages
    generated.txt             the translations or alignments
    checkpoint_best.pt …      fairseq's checkpoints
    lock                      locked by the process that works in the folder
"""

from dataclasses import dataclass
from pathlib import Path

RESULTS = {"train": "trained", "average": "averaged.pt", "generate": "generated.txt"}
"""The steps of a run, in the order in which they run, and the file that marks each step as finished."""

FILES = ("table.md", "table.json", "table.png", "learning_curves.png", "report.html")
"""The names of the files in a table's folder, which no row can have."""


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
    def learning_curves(self) -> Path:
        return self.path / "learning_curves.png"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    def run(self, row: str, seed: int) -> "RunFolder":
        return RunFolder(self.path, row, seed)


@dataclass(frozen=True)
class RunFolder:
    """The folder of one row with one seed."""

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
    def needs(self) -> Path:
        return self.path / "needs"

    @property
    def generated(self) -> Path:
        return self.result("generate")

    def checkpoint(self, averaged: bool) -> Path:
        """Return the checkpoint that generation uses."""
        return self.result("average") if averaged else self.path / "checkpoint_best.pt"

    @property
    def lock(self) -> Path:
        return self.path / "lock"
