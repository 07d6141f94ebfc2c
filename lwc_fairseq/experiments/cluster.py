"""The runs of a table as jobs of a cluster. submitit submits them to SLURM or, for trying, starts them here.

Each run is one job. It waits for the jobs of the rows that it needs, and is queued again when it is preempted or
reaches its time limit.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.search_options import check_names

from .identity import difference, record_of
from .jobs import Job, JobFailed
from .layout import RunFolder
from .progress import Bars
from .queue import POLL_S, SLURM, UNKNOWN, Submission, is_active, look, read_submission, write_submission
from .schedule import Runner
from .training_log import tail

if TYPE_CHECKING:
    from submitit import AutoExecutor
    from submitit.helpers import DelayedSubmission

GENERIC = {
    "timeout_min": "the time is in minutes, such as 240",
    "mem_gb": "the memory is in gigabytes, such as 16",
    "cpus_per_task": "give a whole number, such as 4",
    "gpus_per_node": "give a whole number, such as 1",
}
"""The parameters that submitit has for all clusters, and what a message says of a value that is not their number. The
names of the others get the prefix `slurm_`."""

LINES = ("setup", "teardown")
"""The parameters that are lines of a job's script. submitit wants lists of them."""

OWN = (
    *("name", "job_name", "dependency", "nodes", "tasks_per_node", "ntasks_per_node", "max_num_timeout"),
    *("additional_parameters", "srun_args"),
)
"""The parameters that the table itself sets."""

DEFAULT_MINUTES = 24 * 60
UNLIMITED = 10**6
"""How often a job may be queued again. submitit needs a number."""


class NodeTask:
    """What a job does on its node: the steps of a run that are not done. submitit calls it.

    Raises:
        JobFailed: the run failed; the file `failed` in its folder has the message.
    """

    def __init__(self, job: Job):
        self.job = job
        self.runner: Runner | None = None

    def __call__(self) -> None:
        self.runner = runner = Runner([None])
        if os.environ.get("SUBMITIT_PREEMPT_SIGNAL") != "TERM":
            # SLURM sends SIGTERM to all processes of a job that it preempts or cancels. The next step must not start.
            signal.signal(signal.SIGTERM, lambda number, frame: runner.stop())
        failures = runner.run([self.job])
        while failures and runner.stopping and os.environ["SUBMITIT_EXECUTOR"] == SLURM:
            time.sleep(1)  # SLURM decides whether it queues the job again, and then kills this process
        if failures:
            raise JobFailed(*failures.values())

    def checkpoint(self) -> "DelayedSubmission":
        """Stop the running step, wait until it has saved, and return what runs when the job is queued again.

        submitit calls this in its handler of the signal that announces the end of the job.
        """
        from submitit.helpers import DelayedSubmission

        if self.runner:
            self.runner.stop()
            for process in list(self.runner.running):
                process.wait()
        return DelayedSubmission(NodeTask(self.job))


class ClusterRunner:
    """Runs jobs on a cluster, as `Runner` does on this machine.

    Args:
        place: SLURM or LOCAL.
        settings: what a run asks of the cluster, by submitit's names; `time` stands for timeout_min.

    Raises:
        UserError: submitit or a command of SLURM is missing, or submitit refuses the settings.
    """

    def __init__(self, place: str, settings: dict[str, str]):
        missing = [name for name in ("sbatch", "srun", "squeue", "scancel") if shutil.which(name) is None]
        if place == SLURM and missing:
            raise UserError(
                f"--launcher submitit: no {missing[0]} on this machine: run the command where SLURM's commands are, or "
                "give --launcher local, which starts all runs here"
            )
        try:
            from submitit import SlurmExecutor
        except ModuleNotFoundError as error:
            raise UserError("--launcher needs submitit: pip install '.[cluster]'") from error
        self.place = place
        self.parameters: dict[str, Any] = {"timeout_min": DEFAULT_MINUTES}
        for name in settings:
            if name in OWN:
                raise UserError(f"slurm: {name}: the table itself sets it, because a run is one process on one node")
        check_names("slurm", settings, {"time", *GENERIC, *SlurmExecutor._valid_parameters()}.difference(OWN))
        for name, value in settings.items():
            parameter = "timeout_min" if name == "time" else name
            if parameter not in GENERIC:
                other = [value] if parameter in LINES else {"true": True, "false": False}.get(value, value)
                self.parameters[f"slurm_{parameter}"] = other
                continue
            try:
                self.parameters[parameter] = float(value) if parameter == "mem_gb" else int(value)
            except ValueError as error:
                raise UserError(f"slurm: {name}={value}: {GENERIC[parameter]}") from error
        try:
            self._executor(Path())  # checks the parameters
        except (AssertionError, OverflowError, TypeError, ValueError) as error:
            raise UserError(f"slurm: {str(error).splitlines()[0]}") from error
        self.asked = tuple(f"{name}={value}" for name, value in sorted(settings.items()))
        self.submissions: dict[RunFolder, Submission] = {}
        self.failures: dict[RunFolder, str] = {}
        self.shown: dict[RunFolder, str] = {}  # the state of each job that was last shown
        self.gone: set[RunFolder] = set()  # jobs that have ended, and whose runs were not yet seen to be finished

    def _executor(self, folder: Path, **parameters: object) -> "AutoExecutor":
        """Return what submits jobs whose files are in a folder."""
        from submitit import AutoExecutor

        executor = AutoExecutor(folder, self.place, slurm_max_num_timeout=UNLIMITED, local_max_num_timeout=UNLIMITED)
        cpus = self.parameters.get("cpus_per_task")
        executor.update_parameters(
            slurm_additional_parameters={"requeue": True},
            slurm_srun_args=[f"--cpus-per-task={cpus}"] if cpus else [],  # srun does not read that of sbatch
            **self.parameters,
            **parameters,
        )
        return executor

    def run(self, jobs: list[Job]) -> dict[RunFolder, str]:
        """Submit the unfinished jobs and follow them. Returns the reason of each failed job, by its folder.

        A job that an earlier command submitted, and that has not ended, is only followed. The trials of a job must have
        ended in an earlier call. An interruption leaves the jobs in the queue, says how to go on, and is raised again.

        Raises:
            UserError: SLURM refuses a job.
        """
        refusals = {job.folder: refusal for job in jobs if (refusal := job.refusal())}
        self.failures |= refusals
        unfinished = {job.folder: job for job in jobs if not job.done and job.folder not in refusals}
        done = len(jobs) - len(unfinished) - len(refusals)
        if done:
            show(f"{done} of {len(jobs)} runs are done")
        with Bars(len(jobs), len(jobs) - len(unfinished)) as bars:
            try:
                self._find(unfinished)
                for folder in unfinished.keys() - self.submissions.keys():  # a job in the queue may just have failed
                    folder.failure.unlink(missing_ok=True)
                while unfinished:
                    states = look(self.submissions[folder] for folder in unfinished if folder in self.submissions)
                    for job in list(unfinished.values()):
                        if self._has_ended(job, unfinished, states):
                            del unfinished[job.folder]
                            bars.table.update()
                    if unfinished:
                        time.sleep(POLL_S[self.place])
                return self.failures
            except BaseException:
                queued = [self.submissions[folder].number for folder in unfinished if folder in self.submissions]
                if queued:
                    how = "squeue --jobs" if self.place == SLURM else "ps -p"
                    waiting = [job.name for folder, job in unfinished.items() if folder not in self.submissions]
                    show(
                        f"the jobs go on without this command. To look at them: {how} {','.join(queued)}. To make the "
                        "table of the runs that have ended: this command with --collect. To cancel the jobs: this "
                        "command with --cancel."
                        + f" Only this command, given again, starts {'; '.join(waiting)}."
                        * bool(waiting)
                    )
                raise

    def _find(self, unfinished: dict[RunFolder, Job]) -> None:
        """Find the jobs that earlier commands submitted and that have not ended. Cancel those that wait in vain for a
        job that has failed. Raises UserError if a job was submitted with other commands."""
        submissions = {folder: submission for folder in unfinished if (submission := read_submission(folder))}
        states = look(submissions.values())
        for folder, submission in submissions.items():
            state, job = states.get(submission, ""), unfinished[folder]
            if is_active(state) and not is_for(submission, job):
                raise UserError(
                    f"{job.name}: job {submission.number} in the queue has other flags or other data: give those "
                    "again, or cancel the jobs first: this command with --cancel"
                )
            needed = [self.submissions.get(need) for need in job.needs if need in unfinished]
            is_missing = any(need is None or need.number not in submission.after for need in needed)
            if is_active(state) and ("NeverSatisfied" in state or (state.startswith("PENDING") and is_missing)):
                cancel(submission)
            elif is_active(state):
                self.submissions[folder] = submission
                if submission.place == SLURM and submission.asked != self.asked:
                    show(
                        f"{job.name}: job {submission.number} keeps what it asked SLURM for "
                        f"({' '.join(submission.asked)}): to ask anew, first give this command with --cancel"
                    )

    def _has_ended(self, job: Job, unfinished: dict[RunFolder, Job], states: dict[Submission, str]) -> bool:
        """Return whether a job has ended, well or not. Submit it if it has not been submitted.

        On this machine, where submitit's jobs do not wait for each other, it is submitted when the jobs that it needs
        have ended.
        """
        submission = self.submissions.get(job.folder)
        if reason := job.hindrance(self.failures):
            if submission:
                cancel(submission)
            return self._fail(job, reason)
        if submission is None:
            needed = [self.submissions.get(need) for need in job.needs if need in unfinished]
            if all(need and self.place == need.place == SLURM for need in needed):
                self._submit(job, tuple(need.number for need in needed if need))
            return False
        state = states.get(submission, "")
        if self.shown.get(job.folder) != state:
            self.shown[job.folder] = state
            show(f"{job.name}: job {submission.number}: {state or 'has ended'}")
        if is_active(state):
            return False
        if job.done:
            return True
        if job.folder not in self.gone:  # its files may be visible here a little later
            self.gone.add(job.folder)
            return False
        return self._fail(job, reason_of_end(job, submission, state))

    def _fail(self, job: Job, reason: str) -> bool:
        self.failures[job.folder] = reason
        show(f"{job.name}: failed: {reason.splitlines()[-1].strip()}")
        return True

    def _submit(self, job: Job, after: tuple[str, ...]) -> None:
        """Submit a job that waits until other jobs have ended well."""
        from submitit.core.utils import FailedJobError

        folder = job.folder
        more = {"slurm_dependency": ":".join(["afterok", *after])} if after else {}
        executor = self._executor(folder.submitit, name=f"{folder.row}.{folder.path.name}", **more)
        commands = tuple((step, record_of(command, folder.table)) for step, command in job.steps().items())
        try:
            with postponed_interruption():  # until the number is written down
                number = executor.submit(NodeTask(job)).job_id
                self.submissions[folder] = Submission(self.place, number, after, self.asked, commands)
                write_submission(folder, self.submissions[folder])
        except FailedJobError as error:
            raise UserError(f"sbatch refuses {job.name}: {str(error).splitlines()[-1]}") from error
        show(f"{job.name}: job {number}: submitted" + f", after {', '.join(after)}" * bool(after))


@contextlib.contextmanager
def postponed_interruption() -> Iterator[None]:
    """Postpone what Ctrl-C and SIGTERM do. The commands that start meanwhile inherit that SIGINT is blocked, and so the
    jobs of this machine go on after Ctrl-C."""
    received: list[int] = []
    handlers = {
        number: signal.signal(number, lambda number, frame: received.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # not enough: another thread would receive it
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])


def is_for(submission: Submission, job: Job) -> bool:
    """Return whether a job of the cluster will run the commands of a run as they are now, or as they are recorded."""
    recorded, commands = dict(submission.commands), job.steps()
    return recorded.keys() == commands.keys() and all(
        difference(recorded[step], command, job.folder.table) is None for step, command in commands.items()
    )


def reason_of_end(job: Job, submission: Submission, state: str) -> str:
    """Return why a job that has ended has not finished its run."""
    if job.folder.failure.exists():
        return job.folder.failure.read_text(encoding="utf-8")
    output = job.folder.submitit / f"{submission.number}_0_log.err"
    logs = [log for log in (output, *map(job.folder.log, job.steps())) if log.exists()]
    end = f"job {submission.number} has ended" + f": {state}" * bool(state)
    if not logs:
        return end
    log = max(logs, key=lambda path: path.stat().st_mtime)
    return f"{end}; the last line of {log}:\n{tail(log, lines=1)}"


def cancel(submission: Submission) -> None:
    """Cancel a job. The step that runs saves, if there is time.

    Raises:
        UserError: the job goes on, for example because it is another user's.
    """
    if submission.place == SLURM:
        done = subprocess.run(["scancel", submission.number], capture_output=True, encoding="utf-8")
        state = look([submission]).get(submission, "") if done.returncode else ""
        if is_active(state) and state != UNKNOWN:  # if SLURM does not answer, cancel_all tries again
            raise UserError(f"scancel {submission.number}: {done.stderr.strip()}")
        return
    try:
        os.kill(int(submission.number), signal.SIGTERM)
    except ProcessLookupError:  # it has ended
        pass
    except PermissionError as error:
        raise UserError(f"process {submission.number}: {error.strerror}: another user has started this job") from error


def cancel_all(jobs: list[Job]) -> None:
    """Cancel the jobs of the cluster that were submitted for runs, and wait until they have ended.

    Raises:
        UserError: some jobs go on; the others have ended.
    """
    submissions = {submission: job for job in jobs if (submission := read_submission(job.folder))}
    active: list[Submission] = []
    refused: dict[Submission, UserError] = {}
    while left := [job for job, state in look(submissions).items() if is_active(state) and job not in refused]:
        for submission in left:
            try:
                cancel(submission)
            except UserError as error:
                refused[submission] = error
                continue
            if submission not in active:
                show(f"{submissions[submission].name}: job {submission.number}: cancelled")
        active = active or left
        time.sleep(1)
    for reason in refused.values():
        raise reason
    show("the jobs have ended" if active else "no job of these runs is in the queue")


def show(line: str) -> None:
    tqdm.write(line, file=sys.stderr)
