"""A row of a table with one seed, as commands of fairseq."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lwc_fairseq
from lwc_fairseq_compat import UserError

from .table import PLACEHOLDER, Profile, Row, Table

Command = list[str]


@dataclass(frozen=True)
class Job:
    """What is done in one folder. Each step leaves a file by which a later run knows that it is done."""

    row: Row
    seed: int
    folder: Path
    train: Command | None
    average: Command | None
    generate: Command | None  # of a row that others need, and that is not shown: none
    needs: tuple[Path, ...]  # folders of the jobs whose checkpoints it takes

    @property
    def name(self) -> str:
        return f"{self.row.name}, seed {self.seed}"

    @property
    def trained(self) -> Path:
        return self.folder / "trained"

    @property
    def done(self) -> bool:
        """Whether the last step is."""
        if self.generate:
            return self.generated.exists()
        return (self.averaged if self.average else self.trained).exists()

    @property
    def averaged(self) -> Path:
        return self.folder / "averaged.pt"

    @property
    def generated(self) -> Path:
        return self.folder / "generated.txt"

    @property
    def train_log(self) -> Path:
        return self.folder / "train.log"

    @property
    def generate_log(self) -> Path:
        return self.folder / "generate.log"

    def shell_lines(self) -> Iterator[str]:
        """The steps as lines for a shell, which leave what the runner would leave."""
        q = {name: shlex.quote(str(getattr(self, name))) for name in ("folder", "trained", "generated", "train_log")}
        if self.train:
            train = shlex.join(self.train)
            yield f"mkdir -p {q['folder']} && {train} >> {q['train_log']} 2>&1 && touch {q['trained']}"
        if self.average:
            yield shlex.join(self.average)
        if not self.generate:
            return
        making = shlex.quote(f"{self.generated}.making")
        yield (
            f"mkdir -p {q['folder']} && {shlex.join(self.generate)} > {making} 2> {shlex.quote(str(self.generate_log))}"
            f" && mv {making} {q['generated']}"
        )


@dataclass(frozen=True)
class Settings:
    """What holds for all rows of a run."""

    table: Table
    profile: Profile
    data: str
    out: Path
    train: tuple[str, ...] = ()  # flags that come last
    generate: tuple[str, ...] = ()

    @property
    def average(self) -> int:
        return self.table.average if self.profile.average is None else self.profile.average

    def folder(self, row: str, seed: int) -> Path:
        return self.out / row / f"seed{seed}"

    def checkpoint(self, row: str, seed: int) -> str:
        return str(self.folder(row, seed) / ("averaged.pt" if self.average else "checkpoint_best.pt"))

    def jobs(self, seeds: int) -> list[Job]:
        """All rows with the first seed, then with the second, and so on; a row comes after those that it needs.

        Raises:
            UserError: a row fixes its own seed, and several are asked for.
        """
        fixed = [row.name for row in self.table.rows if "--seed" in row.train.split()]
        if fixed and seeds > 1:
            raise UserError(
                f"--seeds {seeds}: the rows {', '.join(fixed)} have a --seed of their own, so their runs would be "
                "equal: leave --seeds out, or choose others with --rows"
            )
        return [self.job(row, seed) for seed in range(1, seeds + 1) for row in self.table.rows if row.runs]

    def job(self, row: Row, seed: int) -> Job:
        folder = self.folder(row.name, seed)
        average = None
        if row.arch and self.average:
            last = str(self.average)
            average = ["lwc-fairseq", "average", str(folder), "--last", last, "--out", str(folder / "averaged.pt")]
        return Job(
            row=row,
            seed=seed,
            folder=folder,
            train=self.train_command(row, seed) if row.arch else None,
            average=average,
            generate=self.generate_command(row, seed) if self.is_scored(row) else None,
            needs=tuple(self.folder(need, seed) for need in row.needs()),
        )

    def is_scored(self, row: Row) -> bool:
        return row.runs and (not row.hidden or row.name == self.table.baseline)

    def train_command(self, row: Row, seed: int) -> Command:
        table, profile = self.table, self.profile
        keep = ["--keep-last-epochs", str(self.average)] if self.average else ["--no-epoch-checkpoints"]
        return [
            *("fairseq-train", self.data, *self.common(), "--arch", row.arch, "--save-dir"),
            *(str(self.folder(row.name, seed)), *keep, "--seed", str(seed), "--log-format", "json"),
            *("--log-interval", "20"),
            *shlex.split(first(profile.optimizer, row.optimizer, table.optimizer)),
            *shlex.split(first(profile.train, table.train)),
            *self.fill(row.train, seed),
            *profile.flags_of(row.arch),
            *self.train,
        ]

    def generate_command(self, row: Row, seed: int) -> Command:
        if row.path:
            (path,) = self.fill(row.path, seed)
        else:
            path = self.checkpoint(row.name, seed)
        if self.table.metric == "aer":
            return ["lwc-fairseq", "align", path, "--data", self.data, *self.fill(row.generate, seed), *self.generate]
        return [
            *("fairseq-generate", self.data, *self.common(), "--path", path),
            *shlex.split(first(self.profile.generate, self.table.generate)),
            *self.fill(row.generate, seed),
            *self.generate,
        ]

    @staticmethod
    def common() -> Command:
        return ["--user-dir", str(Path(lwc_fairseq.__file__).parent), "--task", "concat_translation"]

    def fill(self, flags: str, seed: int) -> list[str]:
        """The words of a row's flags, its placeholders replaced by checkpoints."""

        def checkpoint(match: re.Match) -> str:
            return self.checkpoint(match[1], seed)

        return [PLACEHOLDER.sub(checkpoint, word) for word in shlex.split(flags)]


def first(*choices: str | None) -> str:
    """The first that is given."""
    return next(choice for choice in choices if choice is not None)
