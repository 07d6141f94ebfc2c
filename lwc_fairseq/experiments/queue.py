"""The jobs that were submitted for a table's runs: their numbers, and what SLURM or this machine says of them."""

import json
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from lwc_fairseq_compat import UserError

from ..files import write_whole
from .layout import RunFolder

SLURM, LOCAL = "slurm", "local"
"""submitit's names of the places that run jobs."""

POLL_S = {SLURM: 10.0, LOCAL: 0.5}
"""Seconds between two looks at the jobs."""

UNKNOWN = "UNKNOWN"
"""The state of all jobs if SLURM does not answer."""

ENDED = "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED TIMEOUT".split()
"""SLURM's states of a job that does not run again."""


@dataclass(frozen=True)
class Submission:
    """The job that was last submitted for a run. The file `job` in the run's folder describes it."""

    place: str  # SLURM or LOCAL
    number: str  # SLURM's number of the job, or that of its process
    after: tuple[str, ...]  # the numbers of the jobs that must end well before it starts
    asked: tuple[str, ...]  # of SLURM, as name=value
    commands: tuple[tuple[str, str], ...]  # of each step: its name, and what its file STEP.command will say


def read_submission(folder: RunFolder) -> Submission | None:
    """Return the job that was last submitted for a run, or None."""
    if not folder.job.exists():
        return None
    content = json.loads(folder.job.read_text(encoding="utf-8"))
    commands = tuple(content["commands"].items())
    return Submission(content["place"], content["number"], tuple(content["after"]), tuple(content["asked"]), commands)


def write_submission(folder: RunFolder, submission: Submission) -> None:
    content = asdict(submission) | {"commands": dict(submission.commands)}
    write_whole(folder.job, json.dumps(content, ensure_ascii=False) + "\n")


def look(submissions: Iterable[Submission]) -> dict[Submission, str]:
    """Return SLURM's states of jobs, such as RUNNING or PENDING (Priority). A job that has ended may have none.

    Raises:
        UserError: jobs are SLURM's, but this machine does not have its commands.
    """
    submissions = list(submissions)
    states = {job: "RUNNING" for job in submissions if job.place == LOCAL and runs_here(job)}
    queued = {job.number: job for job in submissions if job.place == SLURM}
    if queued:
        command = ["squeue", "--noheader", "--states=all", "--format=%i %T (%r)", f"--jobs={','.join(queued)}"]
        try:
            done = subprocess.run(command, capture_output=True, encoding="utf-8")
        except FileNotFoundError as error:
            raise UserError("these runs have jobs of SLURM: run the command on a machine that has squeue") from error
        if done.returncode and "Invalid job id" not in done.stderr:  # SLURM forgets jobs that have ended
            return states | dict.fromkeys(queued.values(), UNKNOWN)
        for line in done.stdout.splitlines():
            number, _, state = line.partition(" ")
            states[queued[number]] = state.removesuffix(" (None)")
    return states


def runs_here(submission: Submission) -> bool:
    """Return whether the process of a job runs on this machine. The process of its number may be another one."""
    try:
        return b"submitit.local" in Path(f"/proc/{submission.number}/cmdline").read_bytes()
    except OSError:
        return False


def is_active(state: str) -> bool:
    """Return whether a job in a state runs, or will run."""
    return state != "" and state.split()[0] not in ENDED
