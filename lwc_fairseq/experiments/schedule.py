"""The schedule of a table's jobs, in parallel on several GPUs. It can be stopped and restarted at any time."""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import TextIO

import torch
from tqdm import tqdm

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.files import whole_file

from ..files import write_whole
from .identity import Command, difference, hardware, ran_before, record_of, versions
from .jobs import Job, JobFailed, JobStopped
from .layout import RunFolder
from .progress import TRAINING_SHARE, Bars, JobBar, Progress
from .training_log import has_ended, tail, text_of


def devices(parallel: int | None) -> list[str | None]:
    """Return one value of CUDA_VISIBLE_DEVICES for each job that may run at the same time; None without GPUs.

    Args:
        parallel: the number of jobs, which share the GPUs; by default one job per GPU, or one job without GPUs.
    """
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if torch.cuda.is_available() else []
    if gpus == [""]:
        gpus = [str(i) for i in range(torch.cuda.device_count())]
    count = parallel or max(1, len(gpus))
    return [gpus[i % len(gpus)] if gpus else None for i in range(count)]


def environment(device: str | None) -> dict[str, str]:
    """Return the environment of a command on a device. Its PATH starts with the folder of this Python."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    chosen = {} if device is None else {"CUDA_VISIBLE_DEVICES": device}
    return {**os.environ, "PATH": path, **chosen}


@contextlib.contextmanager
def locked(folder: RunFolder) -> Iterator[TextIO]:
    """Lock a folder as long as any process has the yielded file open. Raises JobFailed if another process has it."""
    folder.path.mkdir(parents=True, exist_ok=True)
    with folder.lock.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            who = (lock.read().splitlines() or ["another process"])[-1]
            raise JobFailed(f"{who} is at work in {folder.path}: wait for it, or stop it") from None
        except OSError as error:
            raise JobFailed(
                f"{folder.lock}: {error.strerror}: this file system has no locks; give an --out on another one"
            ) from None
        lock.truncate(0)
        yield lock


@contextlib.contextmanager
def noted_failure(folder: RunFolder) -> Iterator[None]:
    """Keep the reason of a failure in the run's folder, where other commands find it. An interruption is none."""
    folder.failure.unlink(missing_ok=True)
    try:
        yield
    except JobStopped:
        raise
    except Exception as error:
        with contextlib.suppress(UserError):  # of a full disk
            write_whole(folder.failure, reason_of(error))
        raise


def reason_of(error: BaseException) -> str:
    """Return the message of an error, or its name if it has none, such as one of Python's about memory."""
    return str(error) or type(error).__name__


def noted_failures(jobs: Iterable[Job]) -> dict[RunFolder, str]:
    """Return why jobs failed that earlier commands ran, by their folders.

    Args:
        jobs: each follows those that it needs.
    """
    failures: dict[RunFolder, str] = {}
    for job in jobs:
        if not job.done and (reason := text_of(job.folder.failure) or job.hindrance(failures)):
            failures[job.folder] = reason
    return failures


class Runner:
    """Runs jobs in parallel, one for each device.

    Args:
        devices: values of CUDA_VISIBLE_DEVICES, one for each parallel job; None leaves the variable unchanged.
    """

    def __init__(self, devices: list[str | None]):
        self.devices = devices
        self.free = deque(range(len(devices)))  # the numbers of free devices, as many as there are idle threads
        self.futures: dict[RunFolder, Future] = {}
        self.mutex = threading.RLock()  # guards the next two attributes
        self.running: dict[subprocess.Popen, str] = {}  # the job and the step of each running command
        self.stopping = False

    def run(self, jobs: list[Job]) -> dict[RunFolder, str]:
        """Run the unfinished jobs. Returns the reason of each failed job, by its folder; all other jobs are finished.

        Jobs start in their order, one for each free device. A job waits until those that it needs, of the given ones,
        have ended; its trials must have ended in an earlier call. An interruption terminates the running commands,
        prints which ones, and is raised again.
        """
        kept, given = sum(job.done for job in jobs), {job.folder for job in jobs}
        for folder in given:
            folder.failure.unlink(missing_ok=True)  # of an earlier command
        # A cluster sends one of these signals to all processes of a job, and the commands of these threads would die of
        # it. The main thread receives it, and passes SIGTERM on.
        of_users = signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGUSR2}
        threads = ThreadPoolExecutor(len(self.devices), initializer=signal.pthread_sigmask, initargs=of_users)
        with Bars(len(jobs), kept) as bars, threads as pool:
            try:
                waiting, running = list(jobs), set[Future]()
                while waiting or running:
                    for job in list(waiting):
                        needs = given.intersection(job.needs)
                        needs_ended = all(need in self.futures and self.futures[need].done() for need in needs)
                        if len(running) < len(self.devices) and needs_ended:
                            waiting.remove(job)
                            self.futures[job.folder] = pool.submit(self._run_job, job, bars)
                            running.add(self.futures[job.folder])
                    # Another thread may have received a signal, and Python handles it when this one wakes up.
                    _, running = wait(running, timeout=1, return_when=FIRST_COMPLETED)
                errors = {folder: future.exception() for folder, future in self.futures.items()}
                return {folder: reason_of(error) for folder, error in errors.items() if error}
            except BaseException:
                with self.mutex:
                    what = ", ".join(self.running.values()) or "the table"
                    self.stop()  # at once: a signal that came long after Ctrl-C would be a second request
                done = sum(job.done for job in jobs)
                tqdm.write(f"stopping {what}; {done} of {len(jobs)} runs are finished", file=sys.stderr)
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def stop(self) -> None:
        """Terminate the running commands, and start no more. A handler of signals may call it, also twice."""
        with self.mutex:
            if not self.stopping:  # a second signal would end a training that saves
                for process in self.running:
                    process.terminate()
                self.stopping = True

    def _run_job(self, job: Job, bars: Bars) -> None:
        before = [other for other in (*job.trials, *job.needs) if other in self.futures]
        if reason := job.hindrance([other for other in before if self.futures[other].exception()]):
            raise JobFailed(reason)
        if job.done and not job.refusal():
            return
        slot = self.free.popleft()
        try:
            with bars.job(slot, job) as bar, locked(job.folder) as lock, noted_failure(job.folder):
                if refusal := job.refusal():
                    raise JobFailed(refusal)
                if job.done:  # by another table, since the first look
                    return
                if job.needs:
                    write_whole(job.folder.needs, job.needed_models())
                for step, command in job.steps().items():
                    if not job.folder.result(step).exists():
                        execute = partial(self._execute, job, step, command, self.devices[slot], lock)
                        run_step(job.folder, step, command, bar, execute)
        finally:
            self.free.append(slot)

    def _execute(
        self,
        job: Job,
        step: str,
        command: Command,
        device: str | None,
        lock: TextIO,
        output: TextIO | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Run the command of a step until it ends.

        Args:
            lock: an open file that holds the lock of the folder.
            output: a file that receives the standard output instead of the log.
            progress: reads the log while the command runs.

        Raises:
            JobFailed: the command failed or was stopped (JobStopped); the message contains the end of the log.
        """
        file, log = job.folder.command(step), job.folder.log(step)
        before = text_of(file)
        is_resumed = difference(before, command, job.folder.table) is None
        ran_on = {
            key: list(dict.fromkeys([*(ran_before(before, key) if is_resumed else []), now]))
            for key, now in (("machines", hardware()), ("versions", versions()))
        }
        write_whole(file, record_of(command, job.folder.table, ran_on))
        with log.open("a", encoding="utf-8") as writer, log.open(encoding="utf-8", errors="replace") as reader:
            reader.seek(0, os.SEEK_END)
            with self.mutex:
                if self.stopping:
                    raise JobStopped("stopped")
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output or writer,
                    stderr=writer,
                    env=environment(device),
                    pass_fds=[lock.fileno()],  # keeps the lock if the command outlives this process
                )
                self.running[process] = f"{job.name} ({step})"
            try:
                print(f"process {process.pid} on {socket.gethostname()}", file=lock, flush=True)
                status = None
                while status is None:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        status = process.wait(timeout=0.5)
                    if progress:
                        for line in reader:
                            progress.see(line)
            except BaseException:
                process.kill()
                process.wait()
                raise
            finally:
                with self.mutex:
                    del self.running[process]
        if self.stopping:
            raise JobStopped("stopped")
        if status:
            raise JobFailed(f"{command[0]} ended with status {status}; the end of {log}:\n{tail(log)}")


def run_step(folder: RunFolder, step: str, command: Command, bar: JobBar, execute: Callable[..., None]) -> None:
    """Run a step with `execute`, and leave the file that marks it as finished. (`average` itself leaves its file.)"""
    if step == "train":
        if not has_ended(folder.log(step)):
            execute(progress=Progress(command, bar))
        write_whole(folder.result(step), f"{time.time()}\n")
    elif step == "average":
        execute()
    else:
        bar.advance_to(TRAINING_SHARE)
        with whole_file(folder.result(step)) as making, open(making, "w") as output:
            execute(output=output)
