"""`lwc-fairseq doctor`: checks the installation, and prints a command for each problem."""

import argparse
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import lwc_fairseq

from .. import FAIRSEQ

MISSING = "missing"
PIP = shlex.join([sys.executable, "-m", "pip", "install"])
WIDTH = len("compatibility")  # the longest name of a finding


@dataclass(frozen=True)
class Finding:
    """A line of the report. It is a problem if it has a command, which solves the problem."""

    name: str
    value: str
    mend: str | None = None


def add_doctor(commands) -> None:
    doctor = commands.add_parser(
        "doctor",
        help="check the installation, and print a command for each problem",
        description="Check versions, fairseq, CUDA and its kernels, and print for each problem the "
        "command that solves it. The exit status is 1 if there is a problem.",
    )
    doctor.set_defaults(call=doctor_command)


def doctor_command(args: argparse.Namespace) -> int:
    problems = []
    for finding in examine():
        print(f"{finding.name:{WIDTH}}  {finding.value}", flush=True)  # the next one may take seconds
        problems += [finding] if finding.mend else []
    print(f"\n{len(problems) or 'no'} problem{'' if len(problems) == 1 else 's'} found")
    for problem in problems:
        print(f"\n{problem.name}: {problem.value}\n    {problem.mend}")
    return 1 if problems else 0


def examine() -> Iterator[Finding]:
    yield Finding("Python", f"{platform.python_version()}, {sys.executable}")
    yield Finding("lwc_fairseq", f"{lwc_fairseq.__version__}, --user-dir {Path(lwc_fairseq.__file__).parent}")
    is_complete = True
    for finding in of_packages():
        is_complete &= finding.value != MISSING
        yield finding
    try:
        import torch
    except ModuleNotFoundError:
        return
    except Exception as error:  # such as an OSError: a library of CUDA is missing
        yield Finding("PyTorch", f"it does not import: {first_line(error)}", f"{PIP} --force-reinstall torch")
        return
    if is_complete:
        yield of_import()
        yield of_commands()
    yield from of_cuda()
    has_backends = torch.distributed.is_available()
    backends = [name for name in ("nccl", "gloo") if has_backends and torch.distributed.is_backend_available(name)]
    yield Finding("processes", ", ".join(backends) or "PyTorch was built without communication between processes")


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def of_packages() -> Iterator[Finding]:
    """Look at the requirements in pyproject.toml at the time when the package was installed, and at fairseq."""
    from packaging.requirements import Requirement

    try:
        requirements = [Requirement(text) for text in requires("lwc_fairseq") or []]
    except PackageNotFoundError:
        requirements = []
    for wanted in requirements:
        if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
            yield of_requirement(wanted)
    yield of_fairseq()


def of_requirement(wanted) -> Finding:
    """Look at a requirement of the class `packaging.requirements.Requirement`."""
    try:
        installed = version(wanted.name)
    except PackageNotFoundError:
        return Finding(wanted.name, MISSING, f"{PIP} {shlex.quote(str(wanted))}")
    if wanted.specifier.contains(installed, prereleases=True):
        return Finding(wanted.name, installed)
    return Finding(wanted.name, f"{installed}, but it must be {wanted.specifier}", f"{PIP} {shlex.quote(str(wanted))}")


def of_fairseq() -> Finding:
    try:
        installed = version("fairseq")
    except PackageNotFoundError:
        return Finding("fairseq", MISSING, f"{PIP} --no-deps fairseq=={FAIRSEQ}")
    install = f"{PIP} --no-deps --force-reinstall fairseq=={FAIRSEQ}"
    if installed != FAIRSEQ:
        return Finding("fairseq", f"{installed}, but it must be {FAIRSEQ}", install)
    try:
        import fairseq.data.data_utils_fast
        import fairseq.libbleu  # noqa: F401
    except ImportError as error:
        if str(error.name).startswith("fairseq"):  # any other module is a requirement and has its own line
            return Finding("fairseq", f"{installed}, whose compiled part is missing ({error})", install)
    except Exception:  # of PyTorch, which has its own line
        pass
    return Finding("fairseq", installed)


def of_import() -> Finding:
    """Check that another Python process can import fairseq. (This process always patches fairseq.)"""
    name, off = "compatibility", "TORCH_DEVICE_BACKEND_AUTOLOAD"
    if os.environ.get(off) == "0":
        return Finding(name, f"{off}=0 keeps PyTorch from loading lwc_fairseq_compat", f"unset {off}")
    done = subprocess.run([sys.executable, "-c", "import fairseq.trainer"], capture_output=True, text=True)
    if done.returncode == 0:
        return Finding(name, "lwc_fairseq_compat is active: fairseq imports by itself")
    reason = done.stderr.strip().splitlines()[-1:]
    root = Path(lwc_fairseq.__file__).parent.parent
    source = shlex.quote(str(root)) if (root / "setup.py").exists() else ".  # in the checkout"
    install = f"{PIP} --force-reinstall --no-deps {source}"
    return Finding(name, f"fairseq does not import without --user-dir: {''.join(reason)}", install)


def of_commands() -> Finding:
    here, command = Path(sys.executable).parent, shutil.which("fairseq-train")
    if command:
        with open(command, "rb") as script:
            runs_here = script.readline().strip() == b"#!" + os.fsencode(sys.executable)
        # `pip install --target` puts commands into another folder; their first line names the Python that runs them.
        if runs_here or Path(command).parent.resolve() == here.resolve():
            return Finding("commands", str(Path(command).parent))
    activate, folder = here / "activate", shlex.quote(str(here))
    mend = f"source {shlex.quote(str(activate))}" if activate.exists() else f'export PATH={folder}:"$PATH"'
    value = (
        f"fairseq-train belongs to another environment, {command}" if command else "fairseq-train is not on the PATH"
    )
    return Finding("commands", value, mend)


def of_cuda() -> list[Finding]:
    import torch

    has_driver = shutil.which("nvidia-smi") is not None
    if torch.version.cuda is None:
        mend = f"{PIP} --force-reinstall torch" if has_driver and torch.version.hip is None else None
        return [Finding("CUDA", f"this PyTorch was built without it{', but there is a driver' if mend else ''}", mend)]
    if not torch.cuda.is_available():
        mend = "nvidia-smi  # its CUDA version must not be older than PyTorch's" if has_driver else None
        return [Finding("CUDA", f"{torch.version.cuda}, no device was found", mend)]
    return [Finding("CUDA", torch.version.cuda), *map(of_device, range(torch.cuda.device_count()))]


def of_device(number: int) -> Finding:
    """Check whether a GPU computes, and whether packed batches use flash attention on it in half precision."""
    import torch

    about = torch.cuda.get_device_properties(number)
    value = f"{about.name}, {about.total_memory / 2**30:.0f} GiB, compute capability {about.major}.{about.minor}"
    try:
        from ..modules.mixed_attention import flash_kernel, flash_runs_on
    except ModuleNotFoundError:  # fairseq, which has its own line
        pass
    else:
        if not flash_runs_on((about.major, about.minor)):
            value += ", no flash attention, which needs capability 8.0"
        else:
            has = "flash attention in half precision"
            value += f", {has if flash_kernel() else 'no flash attention, which needs PyTorch 2.11'}"
    try:
        torch.ones(8, 8, device=f"cuda:{number}").mm(torch.ones(8, 8, device=f"cuda:{number}")).sum().item()
    except RuntimeError as error:
        return Finding(f"device {number}", f"{value}: {first_line(error)}", f"{PIP} --force-reinstall --upgrade torch")
    return Finding(f"device {number}", value)
