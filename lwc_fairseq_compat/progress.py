"""Signs of life of the commands where there is no terminal."""

import functools
import logging
import time

from .hooks import mends

QUIET_S = 10.0
"""Seconds without a line after which a command says how far it is. Each further line comes after twice the time."""


@mends("fairseq.logging.progress_bar", "SimpleProgressBar.__iter__")
def log_slow_batches(iterate):
    """Log the number of the batch if the first batches take long.

    Why: without a terminal, fairseq logs every 100 batches, which take minutes on a CPU. Needed: always.
    """
    logger = logging.getLogger("fairseq.logging.progress_bar")

    @functools.wraps(iterate)
    def iterate_and_log(self):
        due, quiet = time.monotonic() + QUIET_S, QUIET_S
        for batch in iterate(self):
            yield batch
            if time.monotonic() >= due:
                logger.info(f"{self.prefix or 'batch'}:  {self.i + 1:5d} / {self.size:d}")
                quiet *= 2
                due = time.monotonic() + quiet

    return iterate_and_log
