"""The settings that all rows of a table share, and the jobs that follow from them."""

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import lwc_fairseq
from lwc_fairseq_compat import UserError

from ..analysis.translations import Score
from .identity import Command, last_value
from .job import Job
from .layout import TableFolder
from .table import PLACEHOLDER, Profile, Row, Table


@dataclass(frozen=True)
class Settings:
    """A table, a profile, and the arguments of the command."""

    table: Table
    profile: Profile
    data: str
    out: Path
    train: tuple[str, ...] = ()  # extra training flags, which come last
    generate: tuple[str, ...] = ()  # extra generation flags, which come last
    plugins: tuple[str, ...] = ()  # the arguments of --user-dir

    @property
    def user_dirs(self) -> list[str]:
        """The packages with the user's own models."""
        return [*self.plugins, *([self.table.user_dir] if self.table.user_dir else [])]

    @property
    def folder(self) -> TableFolder:
        return TableFolder(self.out)

    @property
    def average(self) -> int:
        """The number of epochs whose checkpoints are averaged."""
        return self.table.average if self.profile.average is None else self.profile.average

    @property
    def score(self) -> Score:
        return self.profile.score or self.table.score

    @property
    def optimizer_flags(self) -> str:
        return first(self.profile.optimizer, self.table.optimizer)

    @property
    def train_flags(self) -> str:
        return first(self.profile.train, self.table.train)

    @property
    def generate_flags(self) -> str:
        if self.table.metric == "aer":
            return self.table.generate  # flags of `align`; those of a profile are for fairseq-generate
        return first(self.profile.generate, self.table.generate)

    @property
    def subset(self) -> str:
        """The set of the data that is translated, or aligned."""
        option = "--subset" if self.table.metric == "aer" else "--gen-subset"
        return last_value([*shlex.split(self.generate_flags), *self.generate], option) or "test"

    def jobs(self, seeds: int) -> list[Job]:
        """Return the jobs of all rows with the first seed, then with the second seed, and so on.

        A row follows the rows that it needs.

        Raises:
            UserError: flags set the seed, but several seeds are requested.
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
        folder = self.folder.run(row.name, seed)
        average = None
        if row.arch and self.average:
            out = str(folder.checkpoint(averaged=True))
            average = ["lwc-fairseq", "average", str(folder.path), "--last", str(self.average), "--out", out]
        return Job(
            row=row,
            folder=folder,
            train=self.train_command(row, seed) if row.arch else None,
            average=average,
            generate=self.generate_command(row, seed) if self.is_scored(row) else None,
            needs=tuple(self.folder.run(need, seed) for need in row.needs()),
        )

    def is_scored(self, row: Row) -> bool:
        return row.runs and (not row.hidden or row.name in map(self.table.baseline_of, self.table.rows))

    def train_command(self, row: Row, seed: int) -> Command:
        keep = ["--keep-last-epochs", str(self.average)] if self.average else ["--no-epoch-checkpoints"]
        return [
            *("fairseq-train", self.data, *self.common_flags(), "--arch", row.arch, "--save-dir"),
            *(str(self.folder.run(row.name, seed).path), *keep, "--seed", str(seed + 100 * row.member)),
            *("--log-format", "json", "--log-interval", "20"),
            *shlex.split(first(self.profile.optimizer, row.optimizer, self.table.optimizer)),
            *shlex.split(self.train_flags),
            *self.fill(row.train, seed),
            *self.profile.flags_of(row.arch),
            *self.train,
        ]

    def generate_command(self, row: Row, seed: int) -> Command:
        if row.path:
            (path,) = self.fill(row.path, seed)
        else:
            path = self.checkpoint(row.name, seed)
        if self.table.metric == "aer":
            plugins = [word for user_dir in self.user_dirs for word in ("--user-dir", user_dir)]
            flags = [*shlex.split(self.generate_flags), *self.fill(row.generate, seed), *self.generate]
            return ["lwc-fairseq", "align", path, "--data", self.data, *plugins, *flags]
        return [
            *("fairseq-generate", self.data, *self.common_flags(), "--path", path),
            *shlex.split(self.generate_flags),
            *self.fill(row.generate, seed),
            *self.generate,
        ]

    def common_flags(self) -> Command:
        """Return the flags of every fairseq command."""
        packages = os.pathsep.join([str(Path(lwc_fairseq.__file__).parent), *self.user_dirs])
        return ["--user-dir", packages, "--task", "concat_translation"]

    def checkpoint(self, row: str, seed: int) -> str:
        return str(self.folder.run(row, seed).checkpoint(averaged=self.average > 0))

    def fill(self, flags: str, seed: int) -> list[str]:
        """Split a row's flags into words, and replace the names of rows by their checkpoints."""

        def checkpoint(match: re.Match) -> str:
            return self.checkpoint(match[1], seed)

        return [PLACEHOLDER.sub(checkpoint, word) for word in shlex.split(flags)]


def first(*choices: str | None) -> str:
    """Return the first choice that is not None."""
    return next(choice for choice in choices if choice is not None)
