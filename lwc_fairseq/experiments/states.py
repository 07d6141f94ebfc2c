"""The states of a table's runs, or of a single training, read from the files that they leave.

Nothing is locked or written, so a table can be looked at while it runs, also on another machine.
"""

import contextlib
import functools
import json
import re
import shlex
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lwc_fairseq_compat import UserError

from ..files import write_whole
from .layout import PLAN, RESULTS, RunFolder, hindrance
from .queue import SLURM, UNKNOWN, is_active, look, read_submission
from .training_log import Losses, Position, has_ended, read_losses, read_position, tail, text_of

if TYPE_CHECKING:
    from .jobs import Job

WAITING, RUNNING, DONE, FAILED, STOPPED, SILENT = "waiting", "running", "done", "failed", "stopped", "silent"
"""SILENT is a run of which this machine knows no process, and whose log has not grown for SILENT_S."""

SILENT_S = 600
"""The log of a table's training grows every 20 updates, which take minutes if the model is large."""

BETWEEN_STEPS_S = 5
"""For a moment after a step, a run has no process."""

VERBS = {"train": "training", "average": "averaging", "generate": "translating"}


@dataclass(frozen=True)
class Planned:
    """A run that a table plans."""

    folder: RunFolder
    steps: tuple[str, ...]
    needs: tuple[RunFolder, ...] = ()  # runs that must end before it begins


@dataclass(frozen=True)
class Run:
    """What the files of a run say."""

    name: str
    state: str
    note: str = ""  # more about the state
    losses: Losses = field(default_factory=Losses)
    position: Position | None = None
    job: str = ""  # on a cluster: what SLURM says of its job

    @property
    def has_ended(self) -> bool:
        """Whether it will not go on by itself."""
        return self.state in (DONE, FAILED)


def write_plan(out: Path, jobs: Iterable["Job"]) -> None:
    """Write which runs a table consists of, in their order."""
    plan = {
        str(job.folder.path.relative_to(out)): {
            "steps": list(job.steps()),
            "needs": [str(other.path.relative_to(out)) for other in (*job.trials, *job.needs)],
        }
        for job in jobs
    }
    write_whole(out / PLAN, json.dumps(plan, indent=1) + "\n")


def read_plan(out: Path) -> list[Planned]:
    """Return the runs of a table in their order, and after them those of earlier commands in the same folder.

    The steps of runs without a plan are those that have begun.
    """
    plan = {}
    if (out / PLAN).exists():
        for path, run in json.loads((out / PLAN).read_text(encoding="utf-8")).items():
            needs = tuple(folder for need in run["needs"] if (folder := RunFolder.at(out / need)))
            if folder := RunFolder.at(out / path):
                plan[folder] = Planned(folder, tuple(run["steps"]), needs)
    for path in sorted(out.glob("*/*/")):
        folder, begun = RunFolder.at(path), [command.stem for command in path.glob("*.command")]
        if folder and begun and folder not in plan:
            in_order = sorted(begun, key=lambda step: list(RESULTS).index(step.partition(".")[0]))
            plan[folder] = Planned(folder, tuple(in_order))
    return list(plan.values())


def read_runs(path: Path) -> list[Run]:
    """Return the runs of a table, or a single training.

    Args:
        path: the folder of a table, that of a training, or a log of fairseq-train. An empty folder has no runs.

    Raises:
        UserError: it is none of these.
    """
    if path.is_file():
        if not is_log(path):
            raise UserError(f"{path}: not a log of fairseq-train")
        return [run_of_log(path, path.name)]
    if not path.is_dir():
        raise UserError(f"{path}: no such folder; give that of a table (its --out) or of a training (its --save-dir)")
    if planned := read_plan(path):
        return runs_of_table(planned)
    if logs := [log for log in path.glob("*.log") if is_log(log)]:
        return [run_of_log(max(logs, key=lambda log: log.stat().st_mtime), path.name)]
    if any(path.glob("checkpoint*.pt")):
        raise UserError(
            f"{path}: it has checkpoints, but no log: append `> {path}/train.log 2>&1` to the command that trains, or "
            "give the file with its log"
        )
    if any(path.iterdir()):
        raise UserError(
            f"{path}: not the folder of a table (no ROW/seed1), nor that of a training (no log of fairseq-train)"
        )
    return []


def is_log(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as lines:
        return any("| fairseq_cli.train |" in line for line, _ in zip(lines, range(200), strict=False))


def runs_of_table(planned: list[Planned]) -> list[Run]:
    unfinished = [run.folder for run in planned if not run.folder.is_done(run.steps)]
    submissions = {folder: job for folder in unfinished if (job := read_submission(folder))}
    try:
        queue = look(submissions.values())
    except UserError:  # no SLURM on this machine; the logs say enough
        submissions, queue = {}, {}
    runs: dict[RunFolder, Run] = {}
    for run in planned:
        job = submissions.get(run.folder)
        queued = queue.get(job, "" if job.place == SLURM else UNKNOWN) if job else UNKNOWN
        state, note = state_of(run, queued, runs)
        said = ""
        if job and job.place == SLURM:
            said = f"job {job.number}: {'no answer' if queued == UNKNOWN else queued or 'has ended'}"
        runs[run.folder] = Run(run.folder.name, state, note, *read_log(run.folder.log("train")), said)
    return list(runs.values())


def state_of(run: Planned, queued: str, others: dict[RunFolder, Run]) -> tuple[str, str]:
    """Return the state of a run, and a note.

    Args:
        queued: what SLURM says of its job, nothing if SLURM has forgotten the job, or UNKNOWN.
        others: the runs before it.
    """
    folder = run.folder
    step = next((step for step in run.steps if not folder.result(step).exists()), None)
    if step is None or folder.is_done(run.steps):
        return DONE, ""
    doing = VERBS[step.partition(".")[0]]
    if has_process(folder, step):
        return RUNNING, doing
    has_ended = not is_active(queued)
    if queued != UNKNOWN and not has_ended:
        return (RUNNING, doing) if queued.split()[0] in ("RUNNING", "COMPLETING") else (WAITING, "")
    if folder.failure.exists():
        return FAILED, last_line(folder.failure)
    if reason := hindrance(run.needs, [need for need, other in others.items() if other.state == FAILED]):
        return FAILED, reason
    trials = [others[need] for need in run.needs if need.trial and need in others]
    if trials and all(trial.state == DONE and not trial.losses.best() for trial in trials):
        return FAILED, "no trial has a validation loss"
    if not folder.command(run.steps[0]).exists():
        return WAITING, ""
    if has_ended:
        return STOPPED, f"while {doing}"
    process, silence = process_of(folder), time.time() - time_of_change(folder.path)
    was_here = process is not None and process[1] == socket.gethostname()
    if silence < (BETWEEN_STEPS_S if was_here else SILENT_S):
        return RUNNING, doing
    return (STOPPED, f"while {doing}") if was_here else (SILENT, f"while {doing}, for {duration(silence)}")


def read_log(log: Path) -> tuple[Losses, Position | None]:
    """Return what the log of a training says. A log is read again when it has grown."""
    if not log.exists():
        return Losses(), None
    status = log.stat()
    return read_version(log, status.st_size, status.st_mtime_ns)


@functools.lru_cache(1024)  # more than a table has runs, all of which `watch` asks for again and again
def read_version(log: Path, size: int, time_ns: int) -> tuple[Losses, Position | None]:
    return read_losses(log), read_position(log)


def time_of_change(folder: Path) -> float:
    times = []
    for file in (folder, *folder.iterdir()):
        with contextlib.suppress(FileNotFoundError):  # it was an unfinished file
            times.append(file.stat().st_mtime)
    return max(times)


def process_of(folder: RunFolder) -> tuple[str, str] | None:
    """Return the number and the machine of the process that last worked in a folder, or None if its lock has none."""
    processes = re.findall(r"^process (\d+) on (.*)$", text_of(folder.lock), re.MULTILINE)
    return processes[-1] if processes else None


def has_process(folder: RunFolder, step: str) -> bool:
    """Return whether the process that last worked in a folder runs a step on this machine.

    The process of its number may be another one, so the arguments are compared.
    """
    process, file = process_of(folder), folder.command(step)
    if process is None or process[1] != socket.gethostname() or not file.exists():
        return False
    arguments = shlex.split(text_of(file).rpartition("\n# ")[0])[1:]
    try:
        words = Path(f"/proc/{process[0]}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return False
    return words[-len(arguments) :] == arguments


def run_of_log(log: Path, name: str) -> Run:
    """Return a training of which there is only a log."""
    losses, position = read_log(log)
    silence = time.time() - log.stat().st_mtime
    last = last_line(log)
    if has_ended(log):
        return Run(name, DONE, "", losses, position)
    if re.match(r"([\w.]*(Error|Exception)|fairseq-train: error)\b", last):
        return Run(name, FAILED, last, losses, position)
    if silence < SILENT_S:
        return Run(name, RUNNING, "training", losses, position)
    return Run(name, SILENT, f"for {duration(silence)}", losses, position)


def last_line(file: Path) -> str:
    return tail(file, lines=1).strip()


def duration(seconds: float) -> str:
    """Return a duration as a person says it, in its largest unit."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
