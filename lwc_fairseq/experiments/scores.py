"""The scores of finished runs, and the significance of differences from the baseline."""

from dataclasses import asdict
from pathlib import Path

from lwc_fairseq_compat import UserError

from ..analysis.alignment import Gold, error_rate, read_links
from ..analysis.translations import Translations, read_generated, score, significance, with_references
from .job import Job
from .layout import RunFolder
from .settings import Settings


class Scores:
    """The scores of the finished jobs.

    Args:
        failures: the reasons of failed jobs. A job is added if its output is unreadable.
        references: reference translations that replace those in the output of fairseq-generate.
        gold: gold alignments of the test set, for a table of AER.
    """

    def __init__(
        self,
        settings: Settings,
        jobs: list[Job],
        failures: dict[RunFolder, str],
        references: list[list[str]] | None = None,
        gold: list[Gold] | None = None,
    ):
        self.settings = settings
        self.references, self.gold = references or [], gold or []
        self.by_run: dict[RunFolder, dict] = {}
        self.translations: dict[RunFolder, Translations] = {}
        for job in jobs:
            if job.generate and job.folder not in failures and job.folder.generated.exists():
                try:
                    self._add(job)
                except UserError as error:
                    failures[job.folder] = str(error)

    def _add(self, job: Job) -> None:
        output = job.folder.generated
        if self.settings.table.metric == "aer":
            self.by_run[job.folder] = alignment_score(output, self.gold)
            return
        found = read_generated(output)
        found = with_references(found, self.references) if self.references else found
        self.by_run[job.folder] = score(found, self.settings.score)
        self.translations[job.folder] = found

    def against_baseline(self) -> dict[str, float]:
        """Return p of each row that has a baseline, by the row's name, over the seeds that both have."""
        systems: dict[str, dict[int, Translations]] = {}
        for folder, found in self.translations.items():
            systems.setdefault(folder.row, {})[folder.seed] = found
        table = self.settings.table
        tests = {}
        for name, system in systems.items():
            baseline_name = table.baseline_of(table.row(name))
            baseline = systems.get(baseline_name, {})
            seeds = [seed for seed in system if seed in baseline]
            if seeds and baseline_name != name:
                pairs = [baseline[seed] for seed in seeds], [system[seed] for seed in seeds]
                tests[name] = significance(*pairs, self.settings.score)
        return tests


def alignment_score(path: Path, gold: list[Gold]) -> dict:
    """Return AER, precision and recall in per cent."""
    rate = error_rate(read_links(path), gold)
    return {name: round(100 * value, 2) for name, value in asdict(rate).items()}
