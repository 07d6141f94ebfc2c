"""The runner of a table's jobs, in parallel on several GPUs. It can be stopped and restarted at any time."""

import queue
import shlex
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TextIO

from tqdm import tqdm

from lwc_fairseq_compat.files import whole_file

from ..files import write_whole
from .identity import Command, comment, difference
from .job import Job, JobFailed
from .layout import RunFolder
from .lock import locked
from .processes import Processes
from .progress import TRAINING_SHARE, Bars, JobBar, Progress
from .training_log import has_ended


@dataclass(frozen=True)
class Place:
    """The device and the lock with which a job runs."""

    job: Job
    device: str | None  # a value of CUDA_VISIBLE_DEVICES
    lock: TextIO  # the open lock file of the job's folder


class Runner:
    """Runs jobs in parallel, one for each device.

    Args:
        devices: values of CUDA_VISIBLE_DEVICES, one for each parallel job; None leaves the variable unchanged.
    """

    def __init__(self, devices: list[str | None]):
        self.devices = devices
        self.free: queue.Queue[int] = queue.Queue()
        for slot in range(len(devices)):
            self.free.put(slot)
        self.processes = Processes()
        self.futures: dict[RunFolder, Future] = {}
        self.steps: dict[str, str] = {}  # the running step of each running job, by the job's name

    def run(self, jobs: list[Job]) -> dict[RunFolder, str]:
        """Run the unfinished jobs. Returns the reason of each failed job, by its folder; all other jobs are finished.

        An interruption terminates the running commands, prints which ones, and is raised again.
        """
        kept = sum(job.done for job in jobs)
        with Bars(len(jobs), kept) as bars, ThreadPoolExecutor(len(self.devices)) as pool:
            try:
                waiting = list(jobs)
                while waiting:
                    self._start_jobs(waiting, pool, bars)
                    wait(self._running(), return_when=FIRST_COMPLETED)
                return {folder: str(error) for folder, future in self.futures.items() if (error := future.exception())}
            except BaseException:
                tqdm.write(self._what_stops(jobs), file=sys.stderr)
                self.processes.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _start_jobs(self, waiting: list[Job], pool: ThreadPoolExecutor, bars: Bars) -> None:
        """Start jobs in their order, one for each free device. A job waits until the jobs that it needs have ended."""
        for job in list(waiting):
            ended = {folder for folder, future in self.futures.items() if future.done()}
            if len(self._running()) < len(self.devices) and ended.issuperset(job.needs):
                waiting.remove(job)
                self.futures[job.folder] = pool.submit(self._run_job, job, bars)

    def _running(self) -> list[Future]:
        return [future for future in self.futures.values() if not future.done()]

    def _what_stops(self, jobs: list[Job]) -> str:
        running = ", ".join(f"{name} ({step})" for name, step in self.steps.items())
        return f"stopping {running or 'the table'}; {sum(job.done for job in jobs)} of {len(jobs)} runs are finished"

    def _run_job(self, job: Job, bars: Bars) -> None:
        for need in job.needs:
            if self.futures[need].exception():
                raise JobFailed(f"it needs {need.row}, which failed")
        if is_done(job):
            return
        slot = self.free.get()
        try:
            with bars.job(slot, job) as bar, locked(job.folder) as lock:
                if is_done(job):  # by another table, since the first look
                    return
                if job.needs:
                    write_whole(job.folder.needs, job.needed_models())
                place = Place(job, self.devices[slot], lock)
                steps = {"train": self._train, "average": self._average, "generate": self._generate}
                for step, command in job.steps().items():
                    steps[step](place, command, bar)
        finally:
            self.free.put(slot)

    def _train(self, place: Place, command: Command, bar: JobBar) -> None:
        folder = place.job.folder
        if folder.result("train").exists():
            return
        if not has_ended(folder.log("train")):
            self._run_command(place, "train", command, progress=Progress(command, bar))
        write_whole(folder.result("train"), f"{time.time()}\n")

    def _average(self, place: Place, command: Command, bar: JobBar) -> None:
        if not place.job.folder.result("average").exists():
            self._run_command(place, "average", command)

    def _generate(self, place: Place, command: Command, bar: JobBar) -> None:
        folder = place.job.folder
        bar.advance_to(TRAINING_SHARE)
        with whole_file(folder.generated) as making, open(making, "w") as output:
            self._run_command(place, "generate", command, output=output)

    def _run_command(self, place: Place, step: str, command: Command, **more) -> None:
        """Run the command of a step. `more` are further arguments of :meth:`.processes.Processes.run`."""
        folder = place.job.folder
        file = folder.command(step)
        if not file.exists() or difference(file.read_text(encoding="utf-8"), command, folder):
            write_whole(file, f"{shlex.join(command)}\n{comment(command, folder)}\n")
        self.steps[place.job.name] = step
        try:
            self.processes.run(command, place.device, place.lock, folder.log(step), **more)
        finally:
            del self.steps[place.job.name]


def is_done(job: Job) -> bool:
    """Return whether a job is finished.

    Raises:
        JobFailed: the files in its folder cannot be used.
    """
    if refusal := job.refusal():
        raise JobFailed(refusal)
    return job.done
