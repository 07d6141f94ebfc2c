"""The files with a table's results: table.md, table.json, learning_curves.png and, for a curve, table.png."""

from collections.abc import Sequence
from pathlib import Path

from ..files import write_whole
from .curve import plot_curve
from .layout import TableFolder
from .learning_curves import make_learning_curves
from .record import make_record, write_record
from .results import Result
from .settings import Settings
from .table_page import table_page
from .training_log import Losses, read_losses


def write_table(
    settings: Settings, results: list[Result], seeds: int, references: Sequence[Path] = (), ran: bool = True
) -> list[Path]:
    """Write the files, and return their paths, table.md first.

    Args:
        references: the files that replace the references of the data.
        ran: whether the rows ran on this machine.
    """
    table, folder = settings.table, settings.folder
    record = make_record(settings, results, seeds, references, ran)
    write_record(record, folder.record)
    write_whole(folder.page, table_page(record))
    written = [folder.page, folder.record]
    for picture in (folder.curve, folder.learning_curves):
        picture.unlink(missing_ok=True)  # it may be of another table
    if table.curve and any(result.x is not None for result in results):
        plot_curve(table, results).savefig(folder.curve, dpi=150)
        written.append(folder.curve)
    losses = losses_of_rows(folder, results)
    if losses:
        make_learning_curves(losses).savefig(folder.learning_curves, dpi=150)
        written.append(folder.learning_curves)
    return written


def losses_of_rows(folder: TableFolder, results: list[Result]) -> dict[str, Losses]:
    """Return the losses of each row's first run by the row's label, if its log contains any."""
    found = {result.label: read_losses(folder.run(result.name, 1).log("train")) for result in results}
    return {label: losses for label, losses in found.items() if losses.valid}
