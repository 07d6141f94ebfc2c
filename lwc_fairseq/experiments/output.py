"""The files with a table's results: table.md, table.json and, for a curve, table.png."""

from pathlib import Path

from ..files import write_whole
from .curve import plot_curve
from .record import make_record, write_record
from .results import Result
from .settings import Settings
from .table_page import table_page


def write_table(settings: Settings, results: list[Result], seeds: int, ran: bool = True) -> list[Path]:
    """Write the files, and return their paths, table.md first.

    Args:
        ran: whether the rows ran on this machine.
    """
    table, folder = settings.table, settings.folder
    record = make_record(settings, results, seeds, ran)
    write_record(record, folder.record)
    write_whole(folder.page, table_page(record))
    written = [folder.page, folder.record]
    if table.curve and any(result.x is not None for result in results):
        plot_curve(table, results, folder.curve)
        written.append(folder.curve)
    return written
