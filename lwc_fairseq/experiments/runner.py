"""Runs the jobs of a table: side by side on several GPUs, with progress, to be stopped and started again at will."""

import contextlib
import fcntl
import itertools
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import torch
from tqdm import tqdm

from lwc_fairseq_compat import UserError

from .job import Command, Job

TRAINING_SHARE = 0.9
"""How much of a job training is, for the progress bar."""


class RowFailed(Exception):
    """A command of a job ended with an error; the message has the end of its log."""


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
        self.running: set[subprocess.Popen] = set()
        self.stopping = threading.Event()
        self.futures: dict[Path, Future] = {}

    def run(self, jobs: list[Job]) -> dict[Path, str]:
        """Run what is not done yet. Returns why jobs failed, by folder; the others are done.

        An interruption ends the commands that run, and goes on to the caller.
        """
        with Bars(len(jobs), len(self.devices)) as bars, ThreadPoolExecutor(len(self.devices)) as pool:
            # a job comes after those that it needs, so whoever waits waits for one that runs or is done
            for job in jobs:
                self.futures[job.folder] = pool.submit(self._run_job, job, bars)
            try:
                return {folder: str(error) for folder, future in self.futures.items() if (error := future.exception())}
            except BaseException:
                self.stopping.set()
                pool.shutdown(wait=False, cancel_futures=True)
                for process in list(self.running):
                    process.terminate()
                raise

    def _run_job(self, job: Job, bars: "Bars") -> None:
        for need in job.needs:
            if self.futures[need].exception():
                raise RowFailed(f"{need.parent.name}, which it needs, failed")
        slot = self.free.get()
        try:
            with bars.job(slot, job) as bar:
                if job.done:
                    return
                with locked(job.folder) as lock:
                    self._steps(job, self.devices[slot], lock, bar)
        finally:
            self.free.put(slot)

    def _steps(self, job: Job, device: str | None, lock: int, bar: "JobBar") -> None:
        remember_commands(job)
        if job.train and not job.trained.exists():
            with job.train_log.open("a") as log:
                self._call(job.train, device, lock, log, job.train_log, Progress(job.train, bar))
            job.trained.touch()
        if job.average and not job.averaged.exists():
            log_path = job.folder / "average.log"
            with log_path.open("w") as log:
                self._call(job.average, device, lock, log, log_path)
        if not job.generate:
            return
        bar.advance_to(TRAINING_SHARE)
        making = job.generated.with_name(job.generated.name + ".making")
        with making.open("w") as out, job.generate_log.open("w") as log:
            self._call(job.generate, device, lock, log, job.generate_log, out=out)
        os.replace(making, job.generated)

    def _call(self, command: Command, device, lock: int, log, log_path: Path, progress=None, out=None) -> None:
        """One command; its errors, and its output unless `out` takes that, go to the log, line by line."""
        if self.stopping.is_set():
            raise RowFailed("stopped")
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if out is None else out,
            stderr=subprocess.STDOUT if out is None else subprocess.PIPE,
            text=True,
            errors="replace",
            env=environment(device),
            pass_fds=[lock],  # the command holds the lock, too: it may outlive this process
        )
        self.running.add(process)
        try:
            for line in process.stdout if out is None else process.stderr:
                log.write(line)
                log.flush()
                if progress is not None:
                    progress.see(line)
            status = process.wait()
        finally:
            self.running.discard(process)
        if status and not self.stopping.is_set():
            raise RowFailed(f"{command[0]} ended with status {status}; the end of {log_path}:\n{tail(log_path)}")
        if status:
            raise RowFailed("stopped")


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
def locked(folder: Path) -> Iterator[int]:
    """Hold a folder as long as any process has the file that is handed out.

    Raises:
        RowFailed: another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RowFailed(f"another process is at work in {folder}: wait for it, or stop it") from None
        yield lock.fileno()


def remember_commands(job: Job) -> None:
    """Write down what is run in a folder, or see that it is the same as before.

    Raises:
        RowFailed: it is not.
    """
    path = job.folder / "commands"
    commands = "\n".join(job.shell_lines()) + "\n"
    if path.exists() and path.read_text() != commands:
        raise RowFailed(f"{job.folder} was begun with other flags (see {path}): remove it, or give another --out")
    path.write_text(commands)


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

    def see(self, line: str) -> None:
        shares = [
            float(match[1]) / goal
            for pattern, goal in self.goals.items()
            if goal and (match := re.search(pattern, line)) is not None
        ]
        if shares:
            self.bar.advance_to(TRAINING_SHARE * min(1.0, max(shares)))


def number_after(flag: str, command: Command) -> float | None:
    """The last value of a flag."""
    words = [part for word in command for part in (word.split("=", 1) if word.startswith(flag + "=") else [word])]
    values = [value for word, value in itertools.pairwise(words) if word == flag]
    return float(values[-1]) if values else None


class Bars:
    """A bar for the table, which estimates the time left, and one for each job that runs."""

    def __init__(self, jobs: int, slots: int):
        plain = {"mininterval": 0.5 if sys.stderr.isatty() else 30}
        form = "{desc}: {percentage:3.0f}% |{bar:30}| {elapsed} gone, {remaining} left"
        self.table = tqdm(total=jobs, desc=f"table, {jobs} runs", position=0, bar_format=form, **plain)
        self.plain = plain
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
            bar.advance_to(1.0)
        finally:
            bar.close()


class JobBar:
    """The bar of a running job, whose progress counts in the table's bar as well."""

    def __init__(self, bars: Bars, slot: int, job: Job):
        self.bars, self.done = bars, 0.0
        form = "  {desc}: {percentage:3.0f}% |{bar:30}| {elapsed} gone, {remaining} left"
        with bars.mutex:
            self.bar = tqdm(total=1.0, desc=job.name, position=slot + 1, leave=False, bar_format=form, **bars.plain)

    def advance_to(self, share: float) -> None:
        step = max(0.0, share - self.done)
        self.done += step
        with self.bars.mutex:
            self.bar.update(step)
            self.bars.table.update(step)

    def close(self) -> None:
        with self.bars.mutex:
            self.bar.close()


def announce(failures: dict[Path, str]) -> None:
    """Say on the screen which rows failed, and why."""
    for folder, reason in failures.items():
        print(f"{folder.parent.name}, {folder.name}: failed: {reason}", file=sys.stderr)


def check_out(out: Path) -> None:
    """Raises UserError if the output folder cannot be one."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {out}: {error.strerror}") from error
