"""What a step found, and the file that keeps it."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from lwc_fairseq.files import write_whole

Row = dict[str, str]
"""A line of a table of the page: cells by their column."""


class StepFailed(Exception):
    """A step failed; the message is one line that says why."""


@dataclass(frozen=True)
class Findings:
    """The results of a step.

    Args:
        rows: lines of the table of the step's section.
        failure: what is wrong with the results, or None.
    """

    rows: list[Row]
    failure: str | None = None


@dataclass(frozen=True)
class Outcome:
    """The results of a step, and where and when it ran.

    Args:
        conditions: the device, the versions, the sizes and the code. Results hold only under the same conditions.
    """

    step: str
    section: str
    rows: list[Row]
    failure: str | None
    seconds: float
    date: str
    device: str
    conditions: str

    def write(self, path: Path) -> None:
        write_whole(path, json.dumps(asdict(self), indent=1, ensure_ascii=False))


def read_outcome(path: Path, conditions: str) -> Outcome | None:
    """Read what a step found earlier; None if it did not run under these conditions."""
    if not path.exists():
        return None
    outcome = Outcome(**json.loads(path.read_text(encoding="utf-8")))
    return outcome if outcome.conditions == conditions else None
