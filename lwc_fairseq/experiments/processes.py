"""The commands of a table that run at the moment."""

import os
import subprocess
import threading
from pathlib import Path
from typing import TextIO

from .devices import environment
from .job import Command, JobFailed
from .progress import Progress
from .training_log import tail


class Processes:
    """Runs commands from several threads, and ends them all when the table is stopped."""

    def __init__(self):
        self.mutex = threading.Lock()  # of the next two
        self.running: set[subprocess.Popen] = set()
        self.stopping = False

    def stop(self) -> None:
        """End the commands that run, and start no other."""
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
            log: gets what the command prints, behind what is there.
            output: gets its standard output instead.
            progress: reads the log meanwhile.

        Raises:
            JobFailed: the command failed or was stopped; the message has the end of the log.
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
            raise JobFailed("stopped")
        if status:
            raise JobFailed(f"{command[0]} ended with status {status}; the end of {log}:\n{tail(log)}")

    def _start(
        self, command: Command, device: str | None, lock: TextIO, output: TextIO, errors: TextIO
    ) -> subprocess.Popen:
        with self.mutex:
            if self.stopping:
                raise JobFailed("stopped")
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=environment(device),
                pass_fds=[lock.fileno()],  # the command may outlive this process, and then it holds the lock
            )
            self.running.add(process)
            return process


def watch(process: subprocess.Popen, log: TextIO, progress: Progress | None) -> int:
    """Wait for a command, and let `progress` read the log meanwhile. Returns the exit status."""
    while True:
        try:
            status = process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            status = None
        for line in log if progress is not None else ():
            progress.see(line)
        if status is not None:
            return status
