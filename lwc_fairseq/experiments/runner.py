"""Runs the jobs of a table: side by side on several GPUs, with progress, to be stopped and started again at will."""

import contextlib
import fcntl
import itertools
import os
import queue
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import torch
from tqdm import tqdm

from ..files import write_whole
from .job import Command, Job

TRAINING_SHARE = 0.9
"""How much of a job training is, for the progress bar."""


class RowFailed(Exception):
    """A command of a job ended with an error; the message has the end of its log."""


@dataclass(frozen=True)
class Place:
    """Where a job runs."""

    job: Job
    device: str | None  # value of CUDA_VISIBLE_DEVICES
    lock: TextIO  # of its folder


class Runner:
    """Runs jobs, as many at a time as there are devices.

    Args:
        devices: values of CUDA_VISIBLE_DEVICES, one for each job that may run; None leaves the variable alone.
    """

    def __init__(self, devices: list[str | None]):
        self.devices = devices
        self.free: queue.Queue[int] = queue.Queue()
        for slot in range(len(devices)):
            self.free.put(slot)
        self.mutex = threading.Lock()  # of the next two
        self.running: set[subprocess.Popen] = set()
        self.stopping = False
        self.futures: dict[Path, Future] = {}

    def run(self, jobs: list[Job]) -> dict[Path, str]:
        """Run what is not done yet. Returns why jobs failed, by folder; the others are done.

        An interruption ends the commands that run, and goes on to the caller.
        """
        kept = sum(job.done for job in jobs)
        # a thread for each job, most of which wait for those that they need, or for a device
        with Bars(len(jobs), kept) as bars, ThreadPoolExecutor(max(1, len(jobs))) as pool:
            try:
                for job in jobs:  # those that a job needs come before it
                    self.futures[job.folder] = pool.submit(self._run_job, job, bars)
                return {folder: str(error) for folder, future in self.futures.items() if (error := future.exception())}
            except BaseException:
                self._stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _stop(self) -> None:
        with self.mutex:
            self.stopping = True
            for process in self.running:
                process.terminate()

    def _run_job(self, job: Job, bars: "Bars") -> None:
        for need in job.needs:
            if self.futures[need].exception():
                raise RowFailed(f"{need.parent.name}, which it needs, failed")
        if refusal := job.refusal():
            raise RowFailed(refusal)
        if job.done:
            return
        slot = self.free.get()
        try:
            with bars.job(slot, job) as bar, locked(job.folder) as lock:
                place = Place(job, self.devices[slot], lock)
                for step, command in job.steps().items():
                    self._step(place, step, command, bar)
        finally:
            self.free.put(slot)

    def _step(self, place: Place, step: str, command: Command, bar: "JobBar") -> None:
        """One command, unless what it leaves is there."""
        job = place.job
        if step == "train":
            if not job.trained.exists() and not training_ended(job.train_log):
                self._call(place, step, command, job.train_log, progress=Progress(command, bar))
            job.trained.touch()
        elif step == "average":
            if not job.averaged.exists():
                self._call(place, step, command, job.folder / "average.log")
        else:
            bar.advance_to(TRAINING_SHARE)
            with job.making.open("w") as out:
                self._call(place, step, command, job.generate_log, out=out)
            os.replace(job.making, job.generated)

    def _call(
        self,
        place: Place,
        step: str,
        command: Command,
        log_path: Path,
        progress: "Progress | None" = None,
        out: TextIO | None = None,
    ) -> None:
        """Run a command; its errors go to the end of the log, and so does its output unless `out` takes that."""
        write_whole(place.job.command_file(step), shlex.join(command))
        with log_path.open("a", encoding="utf-8") as log, log_path.open(encoding="utf-8", errors="replace") as reader:
            reader.seek(0, os.SEEK_END)
            with self.mutex:
                if self.stopping:
                    raise RowFailed("stopped")
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=out or log,
                    stderr=log,
                    env=environment(place.device),
                    pass_fds=[place.lock.fileno()],  # the command may outlive this process, and then holds the lock
                )
                self.running.add(process)
            try:
                print(f"process {process.pid}", file=place.lock, flush=True)
                status = watch(process, reader, progress)
            except BaseException:
                process.kill()
                process.wait()
                raise
            finally:
                with self.mutex:
                    self.running.discard(process)
        if self.stopping:
            raise RowFailed("stopped")
        if status:
            raise RowFailed(f"{command[0]} ended with status {status}; the end of {log_path}:\n{tail(log_path)}")


def watch(process: subprocess.Popen, log: TextIO, progress: "Progress | None") -> int:
    """Wait for a command, and read what it logs meanwhile. Returns its exit status."""
    while True:
        try:
            status = process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            status = None
        for line in log if progress is not None else ():
            progress.see(line)
        if status is not None:
            return status


def training_ended(log: Path) -> bool:
    """Whether fairseq-train came to its end by itself; resumed then, it would make an update more."""
    return log.exists() and "done training in" in tail(log, lines=3)


def environment(device: str | None) -> dict[str, str]:
    """Commands are those beside this Python."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    chosen = {} if device is None else {"CUDA_VISIBLE_DEVICES": device}
    return {**os.environ, "PATH": path, **chosen}


def devices(parallel: int | None) -> list[str | None]:
    """One for each GPU, or as many as are asked for, which share the GPUs; without GPUs one."""
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if torch.cuda.is_available() else []
    if gpus == [""]:
        gpus = [str(i) for i in range(torch.cuda.device_count())]
    count = parallel or max(1, len(gpus))
    return [gpus[i % len(gpus)] if gpus else None for i in range(count)]


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[TextIO]:
    """Hold a folder as long as any process has the file that is handed out.

    Raises:
        RowFailed: another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            who = (lock.read().splitlines() or ["another process"])[-1]
            raise RowFailed(f"{who} is at work in {folder}: wait for it, or stop it") from None
        lock.truncate(0)
        yield lock


def tail(path: Path, lines: int = 15) -> str:
    """The end of a log."""
    return "\n".join("    " + line[:300] for line in path.read_text(errors="replace").splitlines()[-lines:])


class Progress:
    """How far a training is, from the lines that it logs."""

    def __init__(self, command: Command, bar: "JobBar"):
        self.goals = {
            r'"num_updates": "(\d+)"': number_after("--max-update", command),
            r'"update": ([\d.]+)': number_after("--max-epoch", command),  # in epochs
        }
        self.bar = bar
        self.begun = False

    def see(self, line: str) -> None:
        shares = [
            float(match[1]) / goal
            for pattern, goal in self.goals.items()
            if goal and (match := re.search(pattern, line)) is not None
        ]
        if not shares:
            return
        share = TRAINING_SHARE * min(1.0, max(shares))
        if self.begun:
            self.bar.advance_to(share)
        else:
            self.bar.begin_at(share)  # where it was, if it is resumed
        self.begun = True


def number_after(flag: str, command: Command) -> float | None:
    """The last value of a flag."""
    words = [part for word in command for part in (word.split("=", 1) if word.startswith(flag + "=") else [word])]
    values = [value for word, value in itertools.pairwise(words) if word == flag]
    return float(values[-1]) if values else None


class Bars:
    """A bar for the table, which estimates the time left, and one for each job that runs.

    What was done before does not count as speed.
    """

    def __init__(self, jobs: int, kept: int):
        self.plain = {"mininterval": 0.5 if sys.stderr.isatty() else 30, "smoothing": 0}
        form = "{desc}: {percentage:3.0f}% |{bar:30}| {elapsed} gone, {remaining} left"
        self.table = tqdm(
            total=jobs, initial=kept, desc=f"table, {jobs} runs", position=0, bar_format=form, **self.plain
        )
        self.mutex = threading.Lock()

    def __enter__(self) -> "Bars":
        return self

    def __exit__(self, *exception) -> None:
        self.table.close()

    @contextlib.contextmanager
    def job(self, slot: int, job: Job) -> Iterator["JobBar"]:
        bar = JobBar(self, slot, job)
        try:
            yield bar
        finally:
            bar.advance_to(1.0)
            bar.close()


class JobBar:
    """The bar of a running job, whose progress counts in the table's bar as well."""

    def __init__(self, bars: Bars, slot: int, job: Job):
        self.bars, self.done = bars, 0.0
        form = "  {desc}: {percentage:3.0f}% |{bar:30}| {elapsed} gone, {remaining} left"
        with bars.mutex:
            self.bar = tqdm(total=1.0, desc=job.name, position=slot + 1, leave=False, bar_format=form, **bars.plain)

    def begin_at(self, share: float) -> None:
        """That much was done before."""
        with self.bars.mutex:
            for bar in (self.bar, self.bars.table):
                bar.initial += share
        self.advance_to(share)

    def advance_to(self, share: float) -> None:
        step = max(0.0, share - self.done)
        self.done += step
        with self.bars.mutex:
            for bar in (self.bar, self.bars.table):
                bar.update(min(step, bar.total - bar.n))  # sums of shares may pass the total by rounding

    def close(self) -> None:
        with self.bars.mutex:
            self.bar.close()


def announce(failures: dict[Path, str]) -> None:
    """Say on the screen which rows failed, and why."""
    for folder, reason in failures.items():
        print(f"{folder.parent.name}, {folder.name}: failed: {reason}", file=sys.stderr)
