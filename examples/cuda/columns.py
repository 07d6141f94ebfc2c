"""The CUDA columns of examples/benchmark, and its counts of kernel launches."""

import json
import shlex
import statistics
from dataclasses import dataclass

from machine import Machine, empty_folder
from models import MODELS
from outcome import Findings, Row

TYPES, LENGTH = ("--types", "120"), ("--length", "4", "9")
TINY = (*TYPES, *LENGTH, "--blocks", "1", "--updates", "1", "--beam", "2")
"""The sizes of the benchmark on the simulated device."""


@dataclass(frozen=True)
class Column:
    """A run of the benchmark.

    Args:
        tokens: the tokens of an update; a batch of generation has one sentence for 50 of them.
    """

    family: str
    phase: str
    tokens: int
    precision: str

    @property
    def name(self) -> str:
        return f"{self.family}_{self.phase}_{self.tokens}_{self.precision}"


def columns(quick: bool) -> list[Column]:
    """All runs of the benchmark."""
    if quick:
        runs = [("train", 4096, "fp16"), ("generate", 4096, "fp16")]
    else:
        runs = [("train", 4096, "bf16")]
        runs += [(phase, 4096, precision) for phase in ("train", "generate") for precision in ("fp32", "fp16")]
        runs += [(phase, 32768, "fp16") for phase in ("train", "generate")]
    return [Column(family, *run) for family in MODELS for run in runs]


def measure(machine: Machine, column: Column) -> Findings:
    """Run the benchmark, and take the speeds from the file that it writes."""
    out = empty_folder(machine.out / "benchmark" / column.name)
    command = ["examples/benchmark/benchmark.py", "--family", column.family, "--phase", column.phase]
    command += ["--device", "cuda", "--precision", column.precision, "--out", out, "--work", machine.out / "work"]
    command += tiny_sizes(column) if machine.pretended else sizes(column, machine.quick)
    machine.run(command, out / "log", out / "page")
    (result,) = out.glob("*.json")
    about = json.loads(result.read_text(encoding="utf-8"))
    return Findings([speed_row(column, about["settings"]["max_tokens"], system) for system in about["systems"]])


def sizes(column: Column, quick: bool) -> list[object]:
    batch = column.tokens // 50
    flags = ["--max-tokens", column.tokens, "--batch-size", batch, "--sentences", max(256, 2 * batch)]
    flags += ["--blocks", 2 if quick else 3]
    return [*flags, *(["--updates", 10, "--memory"] if column.phase == "train" else [])]


def tiny_sizes(column: Column) -> list[object]:
    """Without memory, which the simulated device does not have."""
    model = MODELS[column.family]
    models = [f"--ours={shlex.join(model.tiny)}", f"--peer={shlex.join(model.peer)}"]
    return [*TINY, "--max-tokens", column.tokens // 20, "--sentences", "4", "--batch-size", "4", *models]


def speed_row(column: Column, tokens: str, system: dict) -> Row:
    peak = system["peak bytes"]
    return {
        "system": system["name"],
        "phase": column.phase,
        "precision": column.precision,
        "tokens of a batch": f"{int(tokens):,}",
        "target tokens a second": f"{statistics.median(system['tokens a second']):,.0f}",
        "ours ÷ this": f"{system['ours / this']:.2f}",
        "peak memory": f"{peak / 2**30:.2f} GiB" if peak else "not measured",
    }


def launches(machine: Machine, family: str) -> Findings:
    """Profile an update and a decoding step."""
    kept = machine.out / "launches" / f"{family}.json"
    kept.unlink(missing_ok=True)
    command = ["examples/benchmark/launches.py", "--family", family, "--device", "cuda", "--out", kept]
    command += ["--precision", "fp16", "--work", machine.out / "work"]
    if machine.pretended:
        command += [*TYPES, *LENGTH, "--max-tokens", "60", "--sentences", "2", "--steps", "3"]
        command += [f"--ours={shlex.join(MODELS[family].tiny)}"]
    machine.run(command, kept.with_suffix(".log"))
    return Findings([{key: str(value) for key, value in row.items()} for row in json.loads(kept.read_text("utf-8"))])
