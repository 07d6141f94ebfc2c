"""Measure rows with tiny models and a batch of four short pairs."""

from functools import partial
from pathlib import Path

from .capability import set_capability
from .data import make_data
from .report import as_json
from .rows import Row, all_rows, short_rows
from .session import Session

PAIRS = 4


def measurements(folder: Path, everything: bool) -> list:
    """Names of rows and the functions that measure them."""
    data = make_data(folder, types=60, lengths=(2, 9), pairs=PAIRS)
    return [(row.name, partial(measure, data, row)) for row in (all_rows() if everything else short_rows())]


def measure(data: Path, row: Row) -> dict:
    """Train or generate as a row says."""
    set_capability(row.capability)
    session = Session(data, row.flags, PAIRS, row.common)
    if row.search is None:
        return {part: as_json(tally) for part, tally in session.train().items()}
    batch, steps = session.generate(row.precision, row.search)
    return {"step": as_json(batch, steps)}
