"""The results of a table's rows, aggregated over seeds."""

from dataclasses import dataclass
from statistics import mean, stdev

from ..analysis.alignment import Gold
from .job import Job
from .layout import RunFolder
from .scores import Scores
from .settings import Settings
from .table import Row
from .training_log import read_losses, read_sizes


@dataclass
class Result:
    """The result of a row. A row with only a published value has no runs."""

    name: str
    label: str
    runs: list[dict]  # one entry for each seed: its scores, "seed", "valid_loss" and "train_loss"
    value: float | None = None  # the mean of BLEU, or of AER in per cent
    deviation: float | None = None  # the standard deviation, if there are at least two runs
    p: float | None = None  # of the significance test against the baseline
    baseline: str | None = None  # the title of the row that p compares it with, if that is not the table's baseline
    parameters: int | None = None
    updates: int | None = None
    failed: str | None = None  # the reason why a run failed
    planned: int = 0  # the requested number of runs
    published: float | None = None
    published_parameters: float | None = None
    source: str | None = None
    x: float | None = None
    series: str | None = None

    @property
    def missing(self) -> str | None:
        """The number of runs in words, if some are missing."""
        return f"{len(self.runs)} of {self.planned} runs" if len(self.runs) < self.planned else None


def collect(
    settings: Settings,
    jobs: list[Job],
    failures: dict[RunFolder, str],
    references: list[list[str]] | None = None,
    gold: list[Gold] | None = None,
) -> list[Result]:
    """Collect the results of the rows that the table shows. The arguments are those of :class:`~.scores.Scores`."""
    scores = Scores(settings, jobs, failures, references, gold)
    p = scores.against_baseline()
    results = []
    for row in settings.table.rows:
        if not row.hidden:
            result = summarise(row, [job for job in jobs if job.row.name == row.name], scores, failures)
            result.p = p.get(row.name)
            if row.baseline and result.p is not None:
                result.baseline = settings.table.row(row.baseline).title
            results.append(result)
    return results


def summarise(row: Row, jobs: list[Job], scores: Scores, failures: dict[RunFolder, str]) -> Result:
    """Summarise the runs of one row.

    Args:
        jobs: the jobs of the row.
    """
    done = [job.folder for job in jobs if job.folder in scores.by_run]
    runs = [
        {"seed": folder.seed, **scores.by_run[folder], **read_losses(folder.log("train")).best()} for folder in done
    ]
    result = Result(row.name, row.title, runs, published=row.published, published_parameters=row.parameters)
    result.source, result.x, result.series = row.source, row.x, row.series
    result.planned = len(jobs)
    result.failed = next((failures[job.folder] for job in jobs if job.folder in failures), None)
    if runs:
        values = [run.get("bleu", run.get("aer")) for run in runs]
        result.value = round(mean(values), 2)
        result.deviation = round(stdev(values), 2) if len(values) > 1 else None
        result.parameters, result.updates = read_sizes(done[0].log("train"))
    return result
