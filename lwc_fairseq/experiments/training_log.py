"""Reading the log of fairseq-train."""

import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path

STATISTICS = re.compile(r"\| (train|valid) \| (\{[^{}]*\})")
"""Matches the line of `fairseq-train --log-format json` at the end of an epoch or of a validation."""


@dataclass(frozen=True)
class Losses:
    """The losses of a training, by the number of updates."""

    train: dict[int, float] = field(default_factory=dict)
    valid: dict[int, float] = field(default_factory=dict)

    def best(self) -> dict[str, float]:
        """Return the lowest validation loss as "valid_loss", and the training loss of that epoch as "train_loss".

        A loss that is not a number is never the lowest. Losses that the log does not contain are left out.
        """
        numbers = {updates: loss for updates, loss in self.valid.items() if not math.isnan(loss)}
        if not numbers:
            return {}
        updates = min(numbers, key=numbers.get)
        train = {"train_loss": self.train[updates]} if updates in self.train else {}
        return {"valid_loss": self.valid[updates], **train}


def read_losses(log: Path) -> Losses:
    """Read the losses of a training. A resumed training may repeat an epoch; its last values count."""
    losses = Losses()
    text = log.read_text(errors="replace") if log.exists() else ""
    for name, line in STATISTICS.findall(text):
        values = json.loads(line)
        if f"{name}_loss" in values:
            getattr(losses, name)[whole(values[f"{name}_num_updates"])] = float(values[f"{name}_loss"])
    return losses


def whole(text: str) -> int:
    """Read a whole number. fairseq writes a million as 1e+06, and keeps six digits."""
    return round(float(text))


def tail(path: Path, lines: int = 15) -> str:
    """Return the last lines of a log, indented and truncated."""
    return "\n".join("    " + line[:300] for line in path.read_text(errors="replace").splitlines()[-lines:])


def has_ended(log: Path) -> bool:
    """Return whether the training has ended regularly. Resuming it would make one more update."""
    return log.exists() and "done training in" in tail(log, lines=3)


def read_sizes(log: Path) -> tuple[int | None, int | None]:
    """Return the numbers of parameters and updates, if the log contains them."""
    text = log.read_text(errors="replace") if log.exists() else ""
    parameters = re.search(r"num\. shared model params: ([\d,]+)", text)
    updates = re.findall(r'num_updates(?:": "|=| )(\d[\d.e+]*)', text)  # --log-format json, simple
    return parameters and int(parameters[1].replace(",", "")), whole(updates[-1]) if updates else None
