"""The running commands of a table."""

import os
import subprocess
import threading
from pathlib import Path
from typing import TextIO

from .devices import environment
from .job import Command, JobFailed, JobStopped
from .progress import Progress
from .training_log import tail


class Processes:
    """Runs commands from several threads, and terminates all of them when the table is stopped."""

    def __init__(self):
        self.mutex = threading.Lock()  # guards the next two attributes
        self.running: set[subprocess.Popen] = set()
        self.stopping = False

    def stop(self) -> None:
        """Terminate the running commands, and prevent new ones from starting."""
        with self.mutex:
            self.stopping = True
            for process in self.running:
                process.terminate()

    def run(
        self,
        command: Command,
        device: str | None,
        lock: TextIO,
        log: Path,
        output: TextIO | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Run a command until it ends.

        Args:
            device: see :func:`~.devices.devices`.
            lock: an open file that holds the lock of the folder.
            log: the file to which the command's output is appended.
            output: a file that receives the standard output instead of the log.
            progress: reads the log while the command runs.

        Raises:
            JobFailed: the command failed or was stopped (JobStopped); the message contains the end of the log.
        """
        with log.open("a", encoding="utf-8") as writer, log.open(encoding="utf-8", errors="replace") as reader:
            reader.seek(0, os.SEEK_END)
            process = self._start(command, device, lock, output or writer, writer)
            try:
                print(f"process {process.pid}", file=lock, flush=True)
                status = watch(process, reader, progress)
            except BaseException:
                process.kill()
                process.wait()
                raise
            finally:
                with self.mutex:
                    self.running.discard(process)
        if self.stopping:
            raise JobStopped
        if status:
            raise JobFailed(f"{command[0]} ended with status {status}; the end of {log}:\n{tail(log)}")

    def _start(
        self, command: Command, device: str | None, lock: TextIO, output: TextIO, errors: TextIO
    ) -> subprocess.Popen:
        with self.mutex:
            if self.stopping:
                raise JobStopped
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=environment(device),
                pass_fds=[lock.fileno()],  # keeps the lock if the command outlives this process
            )
            self.running.add(process)
            return process


def watch(process: subprocess.Popen, log: TextIO, progress: Progress | None) -> int:
    """Wait for a command while `progress` reads the log. Returns the exit status."""
    while True:
        try:
            status = process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            status = None
        for line in log if progress is not None else ():
            progress.see(line)
        if status is not None:
            return status
