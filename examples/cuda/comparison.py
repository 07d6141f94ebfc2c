"""Training and translation in one precision, beside training on the CPU in fp32."""

import json
import math
import re
import statistics
from dataclasses import dataclass
from pathlib import Path

from lwc_fairseq.analysis.translations import scored
from lwc_fairseq.files import write_whole
from machine import USER_DIR, Machine, empty_folder
from models import make_data, optimizer, training
from outcome import Findings, Row, StepFailed

UPDATES, TINY_UPDATES = (20, 25), (4, 6)
"""The last updates of the first training and of the one that resumes it; on the simulated device, the fewer."""

Losses = dict[int, float]
"""The training loss of each update, in bits a token as fairseq prints it."""


@dataclass(frozen=True)
class Precision:
    """A precision of fairseq-train.

    Args:
        tolerance: the largest relative difference of losses from those of the CPU in fp32.
        score: the largest difference of the mean score of two searches, in bits a token.
    """

    name: str
    train: tuple[str, ...]
    generate: tuple[str, ...]
    optimizer: str
    tolerance: float
    score: float


FP32, AMP = (), ("--amp",)
# A scale that is too large makes fairseq skip a batch, so that the same update has another one than on the CPU.
FP16 = ("--fp16", "--fp16-init-scale", "4")
PRECISIONS = {
    "fp32": Precision("fp32", FP32, FP32, "fused_adam", 2e-3, 1e-3),
    "fp16": Precision("fp16", FP16, ("--fp16",), "fused_adam", 1e-2, 2e-2),
    "bf16": Precision("bf16", ("--bf16",), FP32, "fused_adam", 3e-2, 1e-3),
    "amp": Precision("amp", AMP, FP32, "fused_adam", 1e-2, 1e-3),
    "amp_sgd": Precision("amp, SGD", AMP, FP32, "sgd", 1e-2, 1e-3),
}


def compare(machine: Machine, family: str, precision: Precision) -> Findings:
    """Train, resume and translate, and compare the losses with the CPU's and both searches with each other."""
    expected = reference(machine, family, precision.optimizer)
    folder = empty_folder(machine.out / "models" / f"{family}_{precision.name.replace(', ', '_').lower()}")
    losses = train(machine, folder, family, precision)
    searches = [translate(machine, folder, precision, *flags) for flags in ((), ("--stock-search",))]
    return judge(family, precision, losses, expected, *searches)


def updates(machine: Machine) -> tuple[int, int]:
    return TINY_UPDATES if machine.pretended else UPDATES


def reference(machine: Machine, family: str, name: str) -> Losses:
    """The losses of a training on the CPU in fp32 with an optimizer of this name, which runs once under the same
    conditions."""
    folder = machine.out / "models" / f"{family}_cpu_{name}"
    kept = folder / "losses.json"
    record = json.loads(kept.read_text()) if kept.exists() else {}
    if record.get("conditions") != machine.conditions:
        print("  the same updates on the CPU", flush=True)
        empty_folder(folder)
        _, last = updates(machine)
        command = training(
            machine, folder, family, *optimizer(family, name), "--max-update", last, "--cpu", "--no-save"
        )
        machine.run_on_cpu(command, folder / "train.log")
        record = {"conditions": machine.conditions, "losses": read_losses(folder / "train.log", 1, last)}
        write_whole(kept, json.dumps(record))
    return {int(update): loss for update, loss in record["losses"].items()}


def train(machine: Machine, folder: Path, family: str, precision: Precision) -> Losses:
    flags = (*optimizer(family, precision.optimizer), *precision.train)
    losses = {}
    stop, end = updates(machine)
    for name, first, last in (("train", 1, stop), ("resume", stop + 1, end)):
        log = folder / f"{name}.log"
        machine.run(training(machine, folder, family, *flags, "--max-update", last), log)
        losses |= read_losses(log, first, last)
    return losses


def read_losses(log: Path, first: int, last: int) -> Losses:
    """Read the losses from a log of fairseq-train.

    Raises:
        StepFailed: the log does not have the updates from first to last, or a batch was skipped.
    """
    text = log.read_text(encoding="utf-8")
    if "NOTE: gradient overflow detected" in text:
        raise StepFailed(f"the loss scale was too large, so fairseq skipped a batch; the log is {log}")
    lines = map(json.loads, re.findall(r"train_inner \| (\{.*\})", text))
    losses = {int(line["num_updates"]): float(line["loss"]) for line in lines}
    if sorted(losses) != list(range(first, last + 1)):
        raise StepFailed(f"updates {first} to {last} are expected, not {sorted(losses)}; the log is {log}")
    return losses


Scores = dict[int, tuple[float, str]]
"""The score and the text of each translation, by the number of the sentence."""


def translate(machine: Machine, folder: Path, precision: Precision, *search: str) -> Scores:
    output = folder / f"generated{''.join(search)}.txt"
    command = ["fairseq-generate", make_data(machine), *USER_DIR, "--task", "concat_translation", "--beam", "5"]
    command += ["--path", folder / "checkpoint_last.pt", "--batch-size", "20", "--max-len-a", "1", "--max-len-b", "10"]
    command += ["--num-workers", "0", *precision.generate, *search]
    machine.run(command, output.with_suffix(".log"), output)
    scores = scored(output.read_text(encoding="utf-8").split("\n"))
    if not scores:
        raise StepFailed(f"fairseq-generate printed no translation; its output is {output}")
    return scores


def judge(family: str, precision: Precision, losses: Losses, expected: Losses, ours: Scores, stock: Scores) -> Findings:
    """Compare the losses, and the translations of both searches."""
    difference = max(relative(losses[update], expected[update]) for update in expected)
    means = [statistics.fmean(score for score, _ in search.values()) for search in (ours, stock)]
    same = sum(ours.get(number, (0.0, None))[1] == text for number, (_, text) in stock.items())
    row: Row = {"model": family, "precision": precision.name}
    for name, update in (("first", 1), ("last", max(expected))):
        row[f"{name} loss, CPU → device"] = f"{expected[update]:.3f} → {losses[update]:.3f}"
    row["largest difference"] = f"{difference:.1e}"
    row["allowed"] = f"{precision.tolerance:.0e}"
    row["translations as by fairseq's search"] = f"{same} of {len(stock)}"
    row["mean scores"] = f"{means[0]:.3f}, {means[1]:.3f}"
    failure = None
    if not difference <= precision.tolerance:
        failure = f"losses differ from the CPU's by up to {difference:.1e}, more than {precision.tolerance:.0e}"
    elif ours.keys() != stock.keys() or not abs(means[0] - means[1]) <= precision.score:
        failure = f"the searches differ: mean scores {means[0]:.3f} and, by fairseq's, {means[1]:.3f}"
    return Findings([row], failure)


def relative(value: float, expected: float) -> float:
    """The relative difference; infinite for a NaN, which compares with nothing."""
    difference = abs(value - expected) / abs(expected)
    return math.inf if math.isnan(difference) else difference
