"""Reading the log of fairseq-train."""

import re
from pathlib import Path


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
