"""The page of results, in Markdown and HTML."""

import html
from collections.abc import Iterator
from itertools import chain

from lwc_fairseq import pages
from lwc_fairseq.experiments.identity import hardware, versions
from lwc_fairseq.files import write_whole
from machine import Machine
from outcome import Outcome, Row

TITLE = "lwc_fairseq on CUDA"


def write_report(machine: Machine, outcomes: list[Outcome], steps: int, command: str) -> None:
    """Write report.md and report.html.

    Args:
        outcomes: what is known so far.
        steps: how many steps there are.
        command: the command that made the page.
    """
    content = [pages.Section("", summary(machine, outcomes, steps)), *sections(outcomes)]
    lines = [f"# {TITLE}", "", *chain(*(section.markdown() for section in content)), "```", command, "```", ""]
    write_whole(machine.out / "report.md", "\n".join(lines))
    parts = [*(section.html() for section in content), f"<pre>{html.escape(command)}</pre>"]
    write_whole(machine.out / "report.html", pages.page(TITLE, parts))


def summary(machine: Machine, outcomes: list[Outcome], steps: int) -> list[str | list[list[str]]]:
    failed = sum(outcome.failure is not None for outcome in outcomes)
    dates = sorted({outcome.date for outcome in outcomes})
    about = f"{' to '.join({dates[0]: None, dates[-1]: None})}, {hardware()}, {versions()}."
    done = f"{len(outcomes) - failed} of {steps} steps succeeded, {failed} failed"
    todo = steps - len(outcomes)
    left = f", {todo} {'has' if todo == 1 else 'have'} not run yet." if todo else "."
    return [*([f"{machine.device}."] if machine.pretended else []), about, done + left]


def sections(outcomes: list[Outcome]) -> Iterator[pages.Section]:
    """Yield a table for each section, failures first. Every line says on which device it ran."""
    failed = [outcome for outcome in outcomes if outcome.failure]
    if failed:
        rows = [{"step": outcome.step, "failure": outcome.failure, "device": outcome.device} for outcome in failed]
        yield as_section("Failures", rows)
    for title in dict.fromkeys(outcome.section for outcome in outcomes):
        chosen = [outcome for outcome in outcomes if outcome.section == title and outcome.rows]
        if chosen:
            rows = [{**row, "device": outcome.device} for outcome in chosen for row in outcome.rows]
            yield as_section(title, rows)
    rows = [
        {
            "step": outcome.step,
            "result": "failed" if outcome.failure else "succeeded",
            "seconds": f"{outcome.seconds:.0f}",
            "date": outcome.date,
            "device": outcome.device,
        }
        for outcome in outcomes
    ]
    yield as_section("Steps", rows)


def as_section(title: str, rows: list[Row]) -> pages.Section:
    header = list(rows[0])
    return pages.Section(title, [[header, *([row[column] for column in header] for row in rows)]])
