"""The machine under test: its GPU or, without one, the simulated device of the tests."""

import functools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from lwc_fairseq.experiments.identity import content, hardware, versions
from lwc_fairseq.experiments.schedule import environment
from outcome import StepFailed

ROOT = Path(__file__).resolve().parents[2]
USER_DIR = ("--user-dir", str(ROOT / "lwc_fairseq"))
CODE = ("lwc_fairseq", "lwc_fairseq_compat", "examples", "tests")
"""The folders whose Python files results depend on."""
PRETENDED = "simulated device: no GPU was used"
PRETEND = (sys.executable, str(ROOT / "tests" / "pretended_cuda" / "run.py"))
LIMIT = 1200
"""Seconds after which a command is killed, such as one whose processes wait for each other."""


@dataclass(frozen=True)
class Machine:
    """Runs commands on the GPU or on the CPU, and keeps what they print.

    Args:
        out: the folder of all files.
        quick: whether to measure less.
        gpus: the devices under test, as values of CUDA_VISIBLE_DEVICES; empty on the simulated device.
    """

    out: Path
    quick: bool
    gpus: tuple[str, ...]

    @property
    def pretended(self) -> bool:
        return not self.gpus

    @property
    def device(self) -> str:
        """What every line of results says about the device."""
        return PRETENDED if self.pretended else torch.cuda.get_device_name()

    @functools.cached_property
    def conditions(self) -> str:
        code = (path for folder in CODE for path in (ROOT / folder).rglob("*.py"))
        return f"{self.device}, {hardware()}, {versions()}{', quick' if self.quick else ''}, code {content(code, ROOT)}"

    def run(self, command: Sequence[object], log: Path, output: Path | None = None) -> None:
        """Run a command or a Python file on the first GPU or on the simulated device; see :func:`execute`."""
        is_file = str(command[0]).endswith(".py")
        before = PRETEND if self.pretended else (sys.executable,) if is_file else ()
        execute([*before, *command], log, output, next(iter(self.gpus), None))

    def run_on_two(self, command: Sequence[object], log: Path) -> None:
        """Run a command in two processes, on the first two GPUs."""
        torchrun = ("torchrun", "--standalone", "--nproc_per_node", "2", "--no-python")
        execute([*torchrun, *command], log, None, ",".join(self.gpus[:2]))

    @staticmethod
    def run_on_cpu(command: Sequence[object], log: Path) -> None:
        execute(command, log, None, "")  # fairseq starts as many processes as it sees GPUs, even with --cpu


def execute(command: Sequence[object], log: Path, output: Path | None, gpus: str | None) -> None:
    """Run a command in the repository's root until it ends.

    Args:
        log: receives what the command prints.
        output: receives the standard output instead of the log.
        gpus: CUDA_VISIBLE_DEVICES, empty for none; None leaves it as it is.

    Raises:
        StepFailed: the command failed or took too long; the message has the last line of the log.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    words = [str(word) for word in command]
    name = next(Path(word).name for word in words if word not in PRETEND)
    with log.open("w", encoding="utf-8") as errors, (output or log).open("a" if output is None else "w") as printed:
        process = subprocess.Popen(
            words,
            cwd=ROOT,
            env=environment(gpus),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=errors,
            start_new_session=True,  # so that its own processes end with it
        )
        try:
            status = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            raise StepFailed(f"{name} took more than {LIMIT} s; the log is {log}") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if status:
        raise StepFailed(f"{name} ended with status {status}: {last_line(log)}; the log is {log}")


def last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].strip()[:300] if lines else "it printed nothing"


def empty_folder(path: Path) -> Path:
    """Make a folder, without what an earlier run left in it."""
    if path.is_dir():
        shutil.rmtree(path)
    path.mkdir(parents=True)
    return path
