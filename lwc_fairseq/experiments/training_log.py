"""Reading the log of fairseq-train."""

import re
from dataclasses import dataclass, field
from pathlib import Path

LOSSES = re.compile(r'\| (train|valid) \| \{.*"\1_loss": "([\d.]+)".*"\1_num_updates": "(\d+)"')
"""Matches the line of `fairseq-train --log-format json` at the end of an epoch or of a validation."""


@dataclass(frozen=True)
class Losses:
    """The losses of a training, by the number of updates."""

    train: dict[int, float] = field(default_factory=dict)
    valid: dict[int, float] = field(default_factory=dict)

    def best(self) -> dict[str, float]:
        """Return the lowest validation loss as "valid_loss", and the training loss of that epoch as "train_loss".

        Losses that the log does not contain are left out.
        """
        if not self.valid:
            return {}
        updates = min(self.valid, key=self.valid.get)
        train = {"train_loss": self.train[updates]} if updates in self.train else {}
        return {"valid_loss": self.valid[updates], **train}


def read_losses(log: Path) -> Losses:
    """Read the losses of a training. A resumed training may repeat an epoch; its last values count."""
    losses = Losses()
    text = log.read_text(errors="replace") if log.exists() else ""
    for name, loss, updates in LOSSES.findall(text):
        getattr(losses, name)[int(updates)] = float(loss)
    return losses


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
    updates = re.findall(r'num_updates(?:": "|=| )(\d+)', text)  # --log-format json, simple
    return parameters and int(parameters[1].replace(",", "")), int(updates[-1]) if updates else None
