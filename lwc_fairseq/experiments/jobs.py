"""The jobs of a table: the commands for each row and seed, made of a table, a profile and the command line."""

import math
import os
import shlex
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

import lwc_fairseq
from lwc_fairseq_compat import UserError

from .identity import TEST, Command, comment, difference, last_value
from .layout import RunFolder, generate_steps, hindrance
from .table_file import ALL, PLACEHOLDER, Profile, Row, Table
from .training_log import read_losses


class JobFailed(Exception):
    """A job failed; the message says why."""


class JobStopped(JobFailed):
    """The table was stopped, and the job with it."""


@dataclass(frozen=True)
class Job:
    """The commands that run in one folder. Each finished step leaves a file, so that a later run skips the step."""

    row: Row
    folder: RunFolder
    train: Command | None  # None if the row uses the models of other rows
    average: Command | None
    generate: Command | None  # None if only other rows use this one
    needs: tuple[RunFolder, ...] = ()  # folders of the jobs whose checkpoints it uses
    trials: tuple[RunFolder, ...] = ()  # folders of the trainings that choose its flags
    undecided: str = ""  # why its trials, which have ended, choose no flags
    subsets: tuple[str, ...] = ()  # the sets of the data that are named tests; each is translated in a step of its own

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def has_flags(self) -> bool:
        """Whether its trials have ended and chosen. Before, its commands lack the flags that they choose."""
        return not self.undecided and all(trial.result("train").exists() for trial in self.trials)

    def hindrance(self, failed: Container[RunFolder]) -> str | None:
        """Return why it can never run, or None: a job that it needs is among those that failed, or its trials choose no
        flags."""
        return hindrance((*self.trials, *self.needs), failed) or self.undecided or None

    def steps(self) -> dict[str, Command]:
        """Return the commands by step, in the order in which they run."""
        steps = {"train": self.train, "average": self.average}
        return {name: command for name, command in steps.items() if command} | self.generations()

    def generations(self) -> dict[str, Command]:
        """Return the commands that translate or align, by step."""
        if self.generate is None:
            return {}
        commands = [[*self.generate, "--gen-subset", subset] for subset in self.subsets] or [self.generate]
        return dict(zip(generate_steps(self.subsets), commands, strict=True))

    @property
    def done(self) -> bool:
        """Whether the last step is done."""
        return self.has_flags and self.folder.is_done(self.steps())

    def refusal(self) -> str | None:
        """Return the reason why the files in the folder cannot be used, or None.

        A finished step that ran with other flags or other data is a reason. So is an unfinished training with other
        flags or other data, because it would continue from its last checkpoint. Another reason is that a row whose
        model this job uses was trained again.
        """
        folder, commands = self.folder, self.steps() if self.has_flags else {}
        steps = list(commands)
        for step, command in commands.items():
            file = folder.command(step)
            if not file.exists() or (step != "train" and not folder.result(step).exists()):
                continue
            if reason := difference(file.read_text(encoding="utf-8"), command, folder.table):
                later = [result for name in steps[steps.index(step) :] if (result := folder.result(name)).exists()]
                results = [folder.path] if step == "train" else later
                return f"{file} {reason}: remove {' and '.join(map(str, results))}, or give another --out"
            if folder.needs.exists() and folder.needs.read_text() != self.needed_models():
                rows = ", ".join(need.row for need in self.needs)
                return (
                    f"{folder.path} was made with earlier models of the rows that it uses ({rows}): remove "
                    f"{folder.path}, or give another --out"
                )
        return None

    def needed_models(self) -> str:
        """Return what identifies the trained models that it uses: the times at which their trainings ended."""
        files = [need.result("train") for need in self.needs]
        return "".join(file.read_text() for file in files if file.exists())

    def shell_lines(self) -> Iterator[str]:
        """Yield the steps as shell commands, one per line, which leave the same files as the scheduler."""
        folder = self.folder
        trained = quote(*(need.result("train") for need in self.needs))
        needs = f"cat {trained} > {quote(folder.needs)} && " if trained else ""
        for step, command in self.steps().items():
            line = shlex.join(command)
            record = f"printf '%s\\n' {quote(line, comment(command, folder.table))} > {quote(folder.command(step))}"
            yield f"mkdir -p {quote(folder.path)} && {needs}{record} && {line}{self.shell_end(step)}"

    def shell_end(self, step: str) -> str:
        """Return what follows the command of a step in a shell: where its output goes, and how its result is left."""
        log, result = quote(self.folder.log(step)), quote(self.folder.result(step))
        if step == "train":
            return f" >> {log} 2>&1 && date +%s.%N > {result}"
        if step == "average":
            return f" >> {log} 2>&1"
        making = f"{result}.$$.making"  # the number of the shell
        return f" > {making} 2>> {log} && mv {making} {result} || {{ rm -f {making}; false; }}"


def quote(*values: object) -> str:
    return shlex.join(map(str, values))


@dataclass
class Settings:
    """A table with the settings of a profile, and the arguments of the command."""

    table: Table
    profile: Profile
    data: str
    out: Path
    train: tuple[str, ...] = ()  # extra training flags, which come last
    generate: tuple[str, ...] = ()  # extra generation flags, which come last
    plugins: tuple[str, ...] = ()  # the arguments of --user-dir

    def __post_init__(self):
        self.table = self.table.with_profile(self.profile)
        subsets = self.subsets_of_rows()
        if self.table.tests and any(subsets):
            subset, names = next(filter(None, subsets)), ", ".join(self.table.tests)
            raise UserError(f"--gen-subset {subset}: the table names its tests ({names}): leave the flag out")
        if len(different := {subset or TEST for subset in subsets}) > 1:
            raise UserError(f"the rows translate different sets, {', '.join(sorted(different))}: let all translate one")
        for row in self.table.rows:
            if self.table.trials_of(row) and row.needs():
                needs = ", ".join(row.needs())
                raise UserError(
                    f"row {row.name}: trials: all trials run before the rows that this row uses ({needs}): give it "
                    "`trials: []`, and the flags among its own"
                )

    @property
    def user_dirs(self) -> list[str]:
        """The packages with the user's own models."""
        return [*self.plugins, *([self.table.user_dir] if self.table.user_dir else [])]

    @property
    def folder_of_tests(self) -> str:
        """The folder of the data whose sets fairseq translates: the first of several."""
        return self.data.split(os.pathsep)[0]

    def subsets_of_rows(self) -> list[str | None]:
        """Return the set of the data that the flags of each scored row choose, or None where they choose none."""
        option = "--subset" if self.table.metric == "aer" else "--gen-subset"
        rows = filter(self.is_scored, self.table.rows)
        flags = [[*shlex.split(self.table.generate), *shlex.split(row.generate), *self.generate] for row in rows]
        return [last_value(of_row, option) for of_row in flags]

    @property
    def tests(self) -> dict[str, str]:
        """The sets of the data that are translated, or aligned, by the names of their tests. A set without a name is
        ALL."""
        return self.table.tests or {ALL: next(iter(self.subsets_of_rows()), None) or TEST}

    def trials(self) -> list[Job]:
        """Return the jobs that train each row with each of the flags among which its validation loss chooses."""
        return [
            Job(row, folder, self.train_command(row, folder, flags), average=None, generate=None)
            for row in self.table.rows
            for folder, flags in self.trials_of(row).items()
        ]

    def trials_of(self, row: Row) -> dict[RunFolder, str]:
        """Return the flags that are tried for a row, by the folder of the trial."""
        flags = self.table.trials_of(row)
        return {RunFolder(self.out, row.name, seed=1, trial=i): tried for i, tried in enumerate(flags, 1)}

    def losses_of_trials(self, row: Row) -> dict[RunFolder, float]:
        """Return the lowest validation loss of each of a row's trials that have ended, or infinity if it has none."""
        ended = [folder for folder in self.trials_of(row) if folder.result("train").exists()]
        return {folder: read_losses(folder.log("train")).best().get("valid_loss", math.inf) for folder in ended}

    def chosen_trial(self, row: Row) -> RunFolder | None:
        """Return the trial of a row with the lowest validation loss, or None if nothing is tried, not all have ended,
        or none has a loss."""
        losses = self.losses_of_trials(row)
        if not losses or len(losses) < len(self.trials_of(row)):
            return None
        best = min(losses, key=losses.__getitem__)
        return best if math.isfinite(losses[best]) else None

    def chosen_flags(self, row: Row) -> str:
        """Return the flags of a row's :meth:`chosen_trial`, or no flags without one."""
        trial = self.chosen_trial(row)
        return self.trials_of(row)[trial] if trial else ""

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
        folder, average, undecided = RunFolder(self.out, row.name, seed), None, ""
        trials = tuple(self.trials_of(row))
        if trials and len(self.losses_of_trials(row)) == len(trials) and not self.chosen_trial(row):
            undecided = f"no trial has a validation loss; see {trials[0].log('train')}"
        if row.arch and self.table.average:
            last = ["--last", str(self.table.average), "--out", self.checkpoint(row.name, seed)]
            average = ["lwc-fairseq", "average", str(folder.path), *last]
        return Job(
            row=row,
            folder=folder,
            train=self.train_command(row, folder, self.chosen_flags(row)) if row.arch else None,
            average=average,
            generate=self.generate_command(row, seed) if self.is_scored(row) else None,
            needs=tuple(RunFolder(self.out, need, seed) for need in row.needs()),
            trials=trials,
            undecided=undecided,
            subsets=tuple(self.table.tests.values()),
        )

    def is_scored(self, row: Row) -> bool:
        return row.runs and (not row.hidden or row.name in map(self.table.baseline_of, self.table.rows))

    def train_command(self, row: Row, folder: RunFolder, tried: str) -> Command:
        """Return the command that trains a row in a folder, with flags of a trial."""
        average, arch = self.table.average, row.arch or ""
        return [
            *("fairseq-train", self.data, *self.common_flags(), "--arch", arch, "--save-dir", str(folder.path)),
            *(["--keep-last-epochs", str(average)] if average and not folder.trial else ["--no-epoch-checkpoints"]),
            *("--seed", str(folder.seed + 100 * row.member), "--log-format", "json", "--log-interval", "20"),
            *shlex.split(self.table.optimizer if row.optimizer is None else row.optimizer),
            *shlex.split(self.table.train),
            *self.fill(row.train, folder.seed),
            *self.profile.flags_of(arch),
            *shlex.split(tried),
            *self.train,
        ]

    def generate_command(self, row: Row, seed: int) -> Command:
        (path,) = self.fill(row.path, seed) if row.path else [self.checkpoint(row.name, seed)]
        flags = [*shlex.split(self.table.generate), *self.fill(row.generate, seed), *self.generate]
        if self.table.metric == "aer":
            plugins = [word for user_dir in self.user_dirs for word in ("--user-dir", user_dir)]
            return ["lwc-fairseq", "align", path, "--data", self.data, *plugins, *flags]
        return ["fairseq-generate", self.data, *self.common_flags(), "--path", path, *flags]

    def common_flags(self) -> Command:
        """Return the flags of every fairseq command."""
        packages = os.pathsep.join([str(Path(lwc_fairseq.__file__).parent), *self.user_dirs])
        return ["--user-dir", packages, "--task", "concat_translation"]

    def checkpoint(self, row: str, seed: int) -> str:
        return str(RunFolder(self.out, row, seed).checkpoint(averaged=self.table.average > 0))

    def fill(self, flags: str, seed: int) -> list[str]:
        """Split a row's flags into words, and replace the names of rows by their checkpoints."""
        return [PLACEHOLDER.sub(lambda name: self.checkpoint(name[1], seed), word) for word in shlex.split(flags)]
