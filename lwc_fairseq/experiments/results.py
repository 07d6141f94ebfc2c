"""What the runs of a table left, as Markdown, JSON and a plot."""

import json
import os
import platform
import re
import shlex
import sys
from dataclasses import asdict, dataclass
from datetime import date
from fnmatch import fnmatch
from pathlib import Path
from statistics import mean, stdev

import torch
from fairseq import __version__ as fairseq_version
from matplotlib.figure import Figure
from sacrebleu import __version__ as sacrebleu_version

import lwc_fairseq
from lwc_fairseq_compat import UserError

from ..analysis.alignment import Gold, error_rate, read_links
from ..analysis.score import Translations, read_generated, score, significance, with_references
from ..files import write_whole
from ..markdown import table as markdown_table
from .job import Job, Settings
from .table import Row, Table


@dataclass
class Result:
    """A row as measured; a row that is only published has no runs."""

    name: str
    label: str
    runs: list[dict]  # one for each seed, score() and seed
    value: float | None = None  # the mean: BLEU, or AER in per cent
    deviation: float | None = None  # the standard deviation, of two runs or more
    p: float | None = None  # against the baseline
    parameters: int | None = None
    updates: int | None = None
    failed: str | None = None
    planned: int = 0  # runs that were asked for
    published: float | None = None
    published_parameters: float | None = None
    source: str | None = None
    x: float | None = None
    series: str | None = None


def collect(
    settings: Settings,
    jobs: list[Job],
    failures: dict[Path, str],
    references: list[list[str]] | None = None,
    gold: list[Gold] | None = None,
) -> list[Result]:
    """The results of all rows that are shown.

    `failures` gets those whose results cannot be read, or were made with other flags.
    """
    scores: dict[Path, dict] = {}
    translations: dict[Path, Translations] = {}
    for job in jobs:
        if job.generate is None or job.folder in failures or not job.generated.exists():
            continue
        try:
            if refusal := job.refusal():
                raise UserError(refusal)
            if settings.table.metric == "aer":
                scores[job.folder] = alignment_score(job.generated, gold or [])
            else:
                translations[job.folder] = read_translations(job.generated, references)
                scores[job.folder] = score(translations[job.folder], settings.score)
        except UserError as error:
            failures[job.folder] = str(error)
    tests = against_baseline(settings, jobs, translations)
    by_row = {row.name: [job for job in jobs if job.row.name == row.name] for row in settings.table.rows}
    return [
        summarise(row, by_row[row.name], scores, tests.get(row.name), failures)
        for row in settings.table.rows
        if not row.hidden
    ]


def read_translations(path: Path, references: list[list[str]] | None) -> Translations:
    found = read_generated(path)
    return with_references(found, references) if references else found


def against_baseline(settings: Settings, jobs: list[Job], translations: dict[Path, Translations]) -> dict[str, float]:
    """p of the rows that are not the baseline, by name, over the seeds that both have."""
    systems: dict[str, dict[int, Translations]] = {}
    for job in jobs:
        if job.folder in translations:
            systems.setdefault(job.row.name, {})[job.seed] = translations[job.folder]
    baseline = systems.pop(settings.table.baseline or "", {})
    tests = {}
    for name, system in systems.items():
        seeds = [seed for seed in system if seed in baseline]
        if seeds:
            pairs = [baseline[seed] for seed in seeds], [system[seed] for seed in seeds]
            tests[name] = significance(*pairs, settings.score)
    return tests


def alignment_score(path: Path, gold: list[Gold]) -> dict:
    """AER and its parts in per cent."""
    rate = error_rate(read_links(path), gold)
    return {name: round(100 * value, 2) for name, value in asdict(rate).items()}


def summarise(
    row: Row, jobs: list[Job], scores: dict[Path, dict], p: float | None, failures: dict[Path, str]
) -> Result:
    """One row over its seeds."""
    done = [job for job in jobs if job.folder in scores]
    runs = [{"seed": job.seed, **scores[job.folder]} for job in done]
    result = Result(row.name, row.title, runs, p=p, published=row.published, published_parameters=row.parameters)
    result.source, result.x, result.series = row.source, row.x, row.series
    result.planned = len(jobs)
    result.failed = next((failures[job.folder] for job in jobs if job.folder in failures), None)
    if runs:
        values = [run.get("bleu", run.get("aer")) for run in runs]
        result.value = round(mean(values), 2)
        result.deviation = round(stdev(values), 2) if len(values) > 1 else None
        result.parameters, result.updates = trained(done[0].train_log)
    return result


def trained(log: Path) -> tuple[int | None, int | None]:
    """Parameters and updates that a training logged."""
    text = log.read_text(errors="replace") if log.exists() else ""
    parameters = re.search(r"num\. shared model params: ([\d,]+)", text)
    updates = re.findall(r'num_updates(?:": "|=| )(\d+)', text)  # with --log-format json, simple
    return parameters and int(parameters[1].replace(",", "")), int(updates[-1]) if updates else None


def write(settings: Settings, results: list[Result], seeds: int, ran: bool = True) -> list[Path]:
    """table.md, table.json and for a curve table.png; returns what was written.

    Args:
        ran: whether the rows ran on this machine.
    """
    out = settings.out
    about = surroundings(settings, seeds, ran)
    write_whole(out / "table.json", json.dumps({**about, "rows": [asdict(result) for result in results]}, indent=1))
    write_whole(out / "table.md", markdown(settings, results, about))
    written = [out / "table.md", out / "table.json"]
    if settings.table.curve and any(result.x is not None for result in results):
        written.append(plot(settings.table, results, out / "table.png"))
    return written


def surroundings(settings: Settings, seeds: int, ran: bool) -> dict:
    """What a number stands with: hardware, versions, date, flags."""
    table, profile = settings.table, settings.profile
    archs = [row.arch for row in table.rows if row.arch]
    versions = f"fairseq {fairseq_version}, lwc_fairseq {lwc_fairseq.__version__}, sacrebleu {sacrebleu_version}"
    flags = {
        "optimizer": profile.optimizer if profile.optimizer is not None else table.optimizer,
        "train": profile.train if profile.train is not None else table.train,
        "generate": profile.generate if profile.generate is not None else table.generate,
        **{pattern: flags for pattern, flags in profile.archs.items() if any(fnmatch(a, pattern) for a in archs)},
        "more of train": shlex.join(settings.train),
        "more of generate": shlex.join(settings.generate),
    }
    if table.metric == "aer":
        flags["generate"] = ""  # alignments are not generated
    return {
        "title": table.title,
        "metric": table.metric.upper(),
        "paper": table.paper,
        "published_on": table.data,
        "measured_on": settings.data,
        "date": date.today().isoformat(),
        "hardware": hardware() if ran else "collected from runs that may have been made elsewhere",
        "versions": f"Python {platform.python_version()}, PyTorch {torch.__version__}, {versions}",
        "command": shlex.join(["lwc-fairseq", *sys.argv[1:]]),
        "seeds": seeds,
        "flags": {name: value for name, value in flags.items() if value},
    }


def hardware() -> str:
    """The GPU, or the processor."""
    if torch.cuda.is_available():
        return f"{torch.cuda.device_count()} × {torch.cuda.get_device_name()}"
    try:
        names = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        names = []
    return f"{os.cpu_count()} cores, {names[0] if names else platform.processor() or 'CPU'}, no GPU"


def markdown(settings: Settings, results: list[Result], about: dict) -> str:
    """The table as a page."""
    table = settings.table
    metric = about["metric"]
    columns = [metric]
    if table.baseline and any(result.p is not None for result in results):
        columns.append(f"p, against {table.row(table.baseline).title}")
    columns += [*(["chrF2"] if metric == "BLEU" else []), "parameters", "updates"]
    if any(result.published for result in results):
        columns.append(f"published {metric}")
    if any(result.published_parameters for result in results):
        columns.append("published parameters")
    lines = [f"# {table.title}", ""]
    if table.paper:
        lines += [f"{table.paper}.", "", f"Published on: {table.data or 'see the paper'}.", ""]
    elif table.data:
        lines += [f"Data: {table.data}.", ""]
    lines += [f"Measured on: `{settings.data}`.", ""]
    rows = [[result.label, *(cell(result, column) for column in columns)] for result in results]
    lines += markdown_table(["", *columns], rows)
    lines += ["", how(about["metric"], about["seeds"], results)]
    if any(column.startswith("p, against") for column in columns):
        lines.append("p: sacrebleu's paired bootstrap, 1,000 samples, the median over seeds.")
    lines += ["", f"{about['date']}, {about['hardware']}, {about['versions']}.", "", "```", about["command"], "```"]
    lines += ["", "Flags of training and generation, beside those of each row:", "", "```"]
    lines += [f"{name}: {value}" for name, value in about["flags"].items()]
    return "\n".join([*lines, "```", ""])


def how(metric: str, seeds: int, results: list[Result]) -> str:
    """What was computed, exactly."""
    signature = next((run["signature"] for result in results for run in result.runs if "signature" in run), None)
    if metric == "AER":
        what = "in per cent, lower is better"
    else:
        what = f"sacrebleu, `{signature}`" if signature else "sacrebleu"
    return f"{metric}: {what}" + ("; one seed." if seeds == 1 else f"; mean ± standard deviation of {seeds} seeds.")


def cell(result: Result, column: str) -> str:
    """What a row has in a column."""
    if column in ("BLEU", "AER"):
        return value_of(result)
    if column == "chrF2":
        return f"{mean(run['chrf'] for run in result.runs):.2f}" if result.runs else ""
    if column == "parameters":
        return f"{result.parameters / 1e6:.2f}M" if result.parameters else ""
    if column == "updates":
        return f"{result.updates:,}" if result.updates else ""
    if column == "published parameters":
        return f"{result.published_parameters}M" if result.published_parameters else ""
    if column.startswith("published"):
        return f"{result.published:.2f}" if result.published is not None else ""
    return "" if result.p is None else f"{result.p:.3f}"


def value_of(result: Result) -> str:
    """The mean of the runs that are there, with what is said of the others: how many there are to be, and failures."""
    if result.value is None:
        return "failed" if result.failed else "not finished" if result.planned else "–"
    spread = f" ± {result.deviation:.2f}" if result.deviation is not None else ""
    missing = ""
    if len(result.runs) < result.planned:
        missing = f" ({len(result.runs)} of {result.planned} runs{', failed' if result.failed else ''})"
    return f"{result.value:.2f}{spread}{missing}"


def plot(table: Table, results: list[Result], path: Path) -> Path:
    """Measured and published values over x, a line for each series."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    points = sorted((result for result in results if result.x is not None), key=lambda result: result.x)
    for color, series in enumerate(dict.fromkeys(result.series for result in points)):
        line = [result for result in points if result.series == series]
        label = f"{series}, " if series else ""
        measured = [result for result in line if result.value is not None]
        if measured:
            spread = [result.deviation or 0 for result in measured] if measured[0].deviation is not None else None
            x, y = [result.x for result in measured], [result.value for result in measured]
            axes.errorbar(x, y, spread, fmt="-o", color=f"C{color}", label=label + "measured", capsize=3)
        published = [result for result in line if result.published is not None]
        if published:
            x, y = [result.x for result in published], [result.published for result in published]
            axes.plot(x, y, "--s", color=f"C{color}", label=label + "published", markerfacecolor="none")
    axes.set(xlabel=table.curve, ylabel=table.metric.upper(), title=table.title)
    axes.set_xticks(list(dict.fromkeys(result.x for result in points)))
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)
    return path
