"""Generation with a system: all of fairseq-generate, from reading the checkpoint to the last printed line."""

import contextlib
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_cli import generate

from lwc_fairseq.analysis.translations import scored
from lwc_fairseq.files import read_lines
from systems import USER_DIR, System
from training import Training

ROUNDING = 1e-4
TIE = 1e-5
HALF = 1e-2
"""Allowed differences of scores, in nats a token: of the same translation, of two translations, and in half precision
of the mean. Untrained models give many translations almost the same score."""

Hypotheses = dict[int, tuple[float, str]]
"""The (score, text) of each sentence, by its number."""


def save_checkpoint(system: System, data: Path, folder: Path) -> Path:
    """Saves an untrained model. The time that a translation takes does not depend on its quality."""
    path = folder / f"{system.model[1]}.pt"
    trainer = Training(system, system.plain_criterion, data, "cpu", "fp32", []).trainer
    trainer.consolidate_optimizer()
    trainer.save_checkpoint(str(path), {"train_iterator": {"epoch": 1}})
    return path


class Generation:
    """Translates the split `test`.

    Args:
        search: the flags of the search.
        flags: more flags of fairseq-generate.
    """

    def __init__(
        self, system: System, search: tuple[str, ...], data: Path, checkpoint: Path, device: str, flags: list[str]
    ):
        self.system, self.device = system, device
        words = [str(data), *USER_DIR, "--task", system.task, "--path", str(checkpoint), *flags]
        words += [*search, *(["--cpu"] if device == "cpu" else [])]
        parser = options.get_generation_parser()
        self.cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, words))
        self.output = checkpoint.with_suffix(".txt")

    def run(self, clock: Callable[[], float] = time.perf_counter) -> float:
        """Translates the test set and returns the seconds that it took by this clock."""
        if self.device == "cuda":
            torch.cuda.synchronize()
        began = clock()
        with self.output.open("w", encoding="utf-8") as out, contextlib.redirect_stdout(out):
            generate.main(self.cfg)
        return clock() - began

    def hypotheses(self) -> Hypotheses:
        """The translations of the last run."""
        return scored(read_lines(self.output))


def check_equal(one: Generation, other: Generation, precision: str) -> None:
    """Raises SystemExit unless both find the same translations; see :func:`difference`."""
    one.run()
    hypotheses = one.hypotheses()
    other.run()
    differing = difference(hypotheses, other.hypotheses(), precision)
    if differing:
        raise SystemExit(f"benchmark: {one.system.name}: {differing}")


def difference(hypotheses: Hypotheses, expected: Hypotheses, precision: str) -> str | None:
    """Say how translations differ from those of fairseq's search by more than rounding; None if they do not.

    Two different translations count as the same if their scores differ by at most TIE: rounding decides between them.
    In half precision rounding also decides which hypotheses stay in the beam, so that only mean scores are compared.
    """
    if hypotheses.keys() != expected.keys():
        return f"{len(hypotheses)} translations, fairseq's search {len(expected)}"
    if precision in ("fp16", "bf16"):
        ours, theirs = (statistics.fmean(score for score, _ in one.values()) for one in (hypotheses, expected))
        within = abs(ours - theirs) <= HALF
        return None if within else f"the mean score is {ours:.4f}, that of fairseq's search {theirs:.4f}"
    for number, (score, text) in expected.items():
        apart = abs(hypotheses[number][0] - score)
        if not apart <= (ROUNDING if hypotheses[number][1] == text else TIE):  # a NaN is no number within
            return f"sentence {number} differs from that of fairseq's search"
    return None
