"""The files with a table's results: table.md, table.json, learning_curves.png and, for a curve, table.png."""

from collections.abc import Sequence
from pathlib import Path

from ..analysis.page import as_png
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
    settings: Settings,
    results: list[Result],
    seeds: int,
    references: Sequence[Path] = (),
    gold: Path | None = None,
    ran: bool = True,
) -> list[Path]:
    """Write the files, and return their paths, table.md first. The arguments are those of `make_record`."""
    table, folder = settings.table, settings.folder
    record = make_record(settings, results, seeds, references, gold, ran)
    write_record(record, folder.record)
    write_whole(folder.page, table_page(record))
    written = [folder.page, folder.record]
    for picture in (folder.curve, folder.learning_curves):
        picture.unlink(missing_ok=True)  # it may be of another table
    if table.curve and any(result.x is not None for result in results):
        write_whole(folder.curve, as_png(plot_curve(table, results), dpi=150))
        written.append(folder.curve)
    losses = losses_of_rows(folder, results)
    if losses:
        write_whole(folder.learning_curves, as_png(make_learning_curves(losses), dpi=150))
        written.append(folder.learning_curves)
    return written


def losses_of_rows(folder: TableFolder, results: list[Result]) -> dict[str, Losses]:
    """Return the losses of each row's first run by the row's label, if its log contains any."""
    found = {result.label: read_losses(folder.run(result.name, 1).log("train")) for result in results}
    return {label: losses for label, losses in found.items() if losses.valid}
