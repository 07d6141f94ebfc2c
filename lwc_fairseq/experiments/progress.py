"""Progress bars of a table and of its jobs."""

import contextlib
import re
import sys
from collections.abc import Iterator

from tqdm import tqdm

from .identity import Command, last_value
from .jobs import Job, JobStopped
from .training_log import PROGRESS, share_done

TRAINING_SHARE = 0.9
"""The share of training in a job's time."""

FORM = "{desc}: {percentage:3.0f}% |{bar:30}| {elapsed} gone, {remaining} left"


class Lines:
    """Writes each state of a bar as a line of its own, for logs. A terminal shows the states in one place."""

    encoding = "utf-8"

    def write(self, text: str) -> None:
        line = re.sub(r"\x1b\[A|[\r\n]", "", text).strip()
        if line:
            print(line, file=sys.stderr)

    def flush(self) -> None:
        sys.stderr.flush()


class Bars(contextlib.AbstractContextManager):
    """A progress bar for the table, with the estimated time left, and one for each running job.

    The estimate ignores jobs that were finished before.

    Args:
        jobs: the total number of jobs.
        kept: the number of jobs that were finished before.
    """

    def __init__(self, jobs: int, kept: int):
        where = {"mininterval": 0.5} if sys.stderr.isatty() else {"mininterval": 10, "file": Lines()}
        self.plain = {"smoothing": 0, "bar_format": FORM, **where}
        self.table = tqdm(total=jobs, initial=kept, desc=f"table, {jobs} runs", position=0, **self.plain)

    def __exit__(self, *exception) -> None:
        self.table.close()

    @contextlib.contextmanager
    def job(self, slot: int, job: Job) -> Iterator["JobBar"]:
        """Show a bar while a job runs. When the job ends, it counts as 1, or as the share done if it was stopped."""
        with tqdm(total=1.0, desc=f"  {job.name}", position=slot + 1, leave=False, **self.plain) as bar:
            progress, share = JobBar(bar, self.table), 1.0
            try:
                yield progress
            except JobStopped:
                share = progress.done
                raise
            finally:
                progress.advance_to(share)


class JobBar:
    """The progress of a running job, in its own bar and in the table's."""

    def __init__(self, *bars: tqdm):
        self.bars, self.done = bars, 0.0

    def advance_to(self, share: float) -> None:
        step = max(0.0, share - self.done)
        self.done += step
        with tqdm.get_lock():
            for bar in self.bars:
                bar.update(min(step, bar.total - bar.n))  # rounded shares may sum to more than the total


class Progress:
    """The progress of a training, read from the log of fairseq-train."""

    def __init__(self, command: Command, bar: JobBar):
        self.limits = [float(last_value(command, flag) or 0) for flag in ("--max-update", "--max-epoch")]
        self.bar = bar
        self.begun = False

    def see(self, line: str) -> None:
        """Read a line of the log, and update the bar."""
        if not (progress := PROGRESS.match(line)):
            return
        share = TRAINING_SHARE * share_done(progress, *self.limits)
        if not self.begun:  # a resumed training starts where it stopped
            with tqdm.get_lock():
                for bar in self.bar.bars:
                    bar.initial += share
            self.begun = True
        self.bar.advance_to(share)
