"""What happened on the simulated device: kernel launches, and waits of the host with their places."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PACKAGES = ("lwc_fairseq", "lwc_fairseq_compat", "fairseq", "fairseq_cli")
TORCH = ("torch/optim", "torch/amp")


class Tally:
    """Counts since it was made.

    Attributes:
        kernels: estimated launches of each operation.
        waits: how often the host waited, for each "file:line reason".
    """

    def __init__(self):
        self.kernels: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()

    def launch(self, operation: str, count: int) -> None:
        """Add `count` kernels of an operation."""
        if count:
            self.kernels[operation] += count

    def wait(self, reason: str) -> None:
        """Add one wait of the host, at the line that is running."""
        self.waits[f"{current_place()} {reason}"] += 1


def current_place() -> str:
    """Return "file:line" of the innermost running line in the plugin, fairseq, or PyTorch's optimizers and scaler.

    If none of them is running, this is the innermost line outside of PyTorch and of this package.
    """
    frame = sys._getframe(1)
    outside = "?"
    while frame is not None:
        name, line = frame.f_code.co_filename, frame.f_lineno
        if shown := place_in_packages(name):
            return f"{shown}:{line}"
        of_device = frame.f_globals.get("__name__", "").startswith("pretended_cuda.")
        if outside == "?" and not of_device and "/torch/" not in name and not name.startswith("<"):
            outside = f"{Path(name).name}:{line}"
        frame = frame.f_back
    return outside


def place_in_packages(file: str) -> str | None:
    """The path of a file from its package on; None if it belongs to none of the packages that we look at."""
    parts = Path(file).parts
    for i in range(len(parts) - 2, -1, -1):
        if parts[i] in PACKAGES or "/".join(parts[i : i + 2]) in TORCH:
            return "/".join(parts[i:])
    return None


_tallies = [Tally()]


def tally() -> Tally:
    """The tally that counts now."""
    return _tallies[-1]


@contextmanager
def counting() -> Iterator[Tally]:
    """Count in a tally of its own within this block."""
    _tallies.append(Tally())
    try:
        yield _tallies[-1]
    finally:
        _tallies.pop()
