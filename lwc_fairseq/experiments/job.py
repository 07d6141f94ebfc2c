"""A row of a table with one seed, as commands of fairseq."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lwc_fairseq
from lwc_fairseq_compat import UserError

from ..analysis.score import Score
from .table import PLACEHOLDER, Profile, Row, Table

Command = list[str]

PLACE = re.compile(r"(?<= --user-dir )('[^']*'|\S+)")  # in a command's line, where this package lies


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

    def command_file(self, step: str) -> Path:
        """What was run for a step ("train", "average" or "generate"), as a line for a shell."""
        return self.folder / f"{step}.command"

    def steps(self) -> dict[str, Command]:
        """The commands, in their order."""
        steps = {"train": self.train, "average": self.average, "generate": self.generate}
        return {name: command for name, command in steps.items() if command}

    def other_flags(self) -> Path | None:
        """The file of a step that was run with other flags than those of now, if there is one.

        A training that was begun counts, since it would go on from there; of the other steps those that are done. Where
        this package lies does not: it may have been moved or installed elsewhere meanwhile.
        """
        begun = {"train": True, "average": self.averaged.exists(), "generate": self.generated.exists()}
        for step, command in self.steps().items():
            file = self.command_file(step)
            if begun[step] and file.exists() and not has_flags_of(file.read_text(encoding="utf-8"), command):
                return file
        return None

    def refusal(self) -> str | None:
        """Why what is in the folder cannot be used, or None."""
        other = self.other_flags()
        return other and f"{other} has other flags than those of now: remove {self.folder}, or give another --out"

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
    def making(self) -> Path:
        """`generated` while it is not whole."""
        return self.folder / "generated.making"

    @property
    def train_log(self) -> Path:
        return self.folder / "train.log"

    @property
    def generate_log(self) -> Path:
        return self.folder / "generate.log"

    def shell_lines(self) -> Iterator[str]:
        """The steps as lines for a shell, which leave what the runner would leave."""
        begin = f"mkdir -p {quote(self.folder)} && printf %s {{}} > {{}} && {{}}"
        ends = {
            "train": f" >> {quote(self.train_log)} 2>&1 && touch {quote(self.trained)}",
            "average": "",
            "generate": f" > {quote(self.making)} 2> {quote(self.generate_log)}"
            f" && mv {quote(self.making)} {quote(self.generated)}",
        }
        for step, command in self.steps().items():
            line = shlex.join(command)
            yield begin.format(quote(line), quote(self.command_file(step)), line) + ends[step]


def quote(value: object) -> str:
    return shlex.quote(str(value))


def has_flags_of(line: str, command: Command) -> bool:
    """Whether a line is that command, wherever this package lies."""
    return PLACE.sub("", line, count=1) == PLACE.sub("", shlex.join(command), count=1)


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
            UserError: flags fix the seed, and several are asked for.
        """
        jobs = [self.job(row, seed) for seed in range(1, seeds + 1) for row in self.table.rows if row.runs]
        fixed = [job.row.name for job in jobs if job.train and sum(w.startswith("--seed") for w in job.train) > 1]
        if fixed and seeds > 1:
            raise UserError(
                f"--seeds {seeds}: the flags of {fixed[0]} fix a --seed, so its runs would be equal: leave one of the "
                "two out (a row's member: 1, 2, ... makes models of the same flags differ)"
            )
        return jobs

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

    @property
    def score(self) -> Score:
        return self.profile.score or self.table.score

    def is_scored(self, row: Row) -> bool:
        return row.runs and (not row.hidden or row.name == self.table.baseline)

    def train_command(self, row: Row, seed: int) -> Command:
        table, profile = self.table, self.profile
        keep = ["--keep-last-epochs", str(self.average)] if self.average else ["--no-epoch-checkpoints"]
        return [
            *("fairseq-train", self.data, *self.common(), "--arch", row.arch, "--save-dir"),
            *(str(self.folder(row.name, seed)), *keep, "--seed", str(seed + 100 * row.member), "--log-format", "json"),
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
