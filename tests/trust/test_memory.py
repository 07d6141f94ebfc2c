"""Long work needs no more memory than short work."""

import random
import re
import subprocess
import time
from pathlib import Path
from statistics import median

import pytest

from conftest import EACH_FAMILY, FAMILIES, FRONT_DOOR, LONG, ROOT, TASK, TINY_TRAINING

MIB = 2**20
GROWTH_MIB = 8  # of noise: the allocator's, and that of batches of other shapes


def memory_of(command, log: Path, begins: str, text: str = "") -> list[float]:
    """Resident memory of a command in MiB, a hundred times a second from the moment when its log says it begins."""
    given = log.with_suffix(".in")
    given.write_text(text)
    with log.open("w") as out, given.open() as stdin:
        files = {"stdin": stdin, "stdout": out, "stderr": out}
        process = subprocess.Popen([str(part) for part in command], cwd=ROOT, env=FRONT_DOOR.environment, **files)
    found, begun = [], False
    while process.poll() is None:
        begun = begun or begins in log.read_text()
        resident = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
        if begun and resident:
            found.append(int(resident[1]) * 1024 / MIB)
        time.sleep(0.01)
    assert process.returncode == 0, log.read_text()[-3000:]
    return found


def growth(found: list[float]) -> float:
    """From the second quarter of the time, after everything is loaded, to the last one."""
    quarter = len(found) // 4
    assert quarter >= 3
    return median(found[3 * quarter :]) - median(found[quarter : 2 * quarter])


@pytest.mark.parametrize(
    ("family", "updates"), [("lwc", 150), *(pytest.param(family, 2000, marks=LONG) for family in FAMILIES)]
)
def test_training(tiny_data, tmp_path, family, updates, record_property):
    flags = (
        "--max-update",
        updates,
        "--no-save",
        "--disable-validation",
        "--save-dir",
        tmp_path,
        "--log-format",
        "none",
    )
    command = ("fairseq-train", tiny_data, *TASK, *TINY_TRAINING, *FAMILIES[family], *flags)
    found = memory_of(command, tmp_path / "log", "begin training epoch 1")
    record_property("growth in MiB", round(growth(found), 1))
    assert growth(found) < GROWTH_MIB


@LONG
@EACH_FAMILY
def test_generation(tiny_data, checkpoints, tmp_path, family, record_property):
    draw = random.Random(1)
    words = [f"{a}{b}" for a in "bdfgk" for b in "aeio"]
    text = "".join(" ".join(draw.choices(words, k=draw.randint(1, 12))) + "\n" for _ in range(10_000))
    flags = ("--path", checkpoints[family], "--beam", "4", "--buffer-size", "20", "--batch-size", "10", "--cpu")
    command = ("fairseq-interactive", tiny_data, *TASK, *flags, "--max-len-a", "2", "--max-len-b", "5")
    found = memory_of(command, tmp_path / "log", "Type the input sentence", text)
    record_property("growth in MiB", round(growth(found), 1))
    assert growth(found) < GROWTH_MIB
