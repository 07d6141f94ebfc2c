"""The lock of a run's folder, which prevents two processes from working in the same folder."""

import contextlib
import fcntl
from collections.abc import Iterator
from typing import TextIO

from .job import JobFailed
from .layout import RunFolder


@contextlib.contextmanager
def locked(folder: RunFolder) -> Iterator[TextIO]:
    """Lock a folder as long as any process has the yielded file open.

    Raises:
        JobFailed: another process holds the lock.
    """
    folder.path.mkdir(parents=True, exist_ok=True)
    with folder.lock.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            who = (lock.read().splitlines() or ["another process"])[-1]
            raise JobFailed(f"{who} is at work in {folder.path}: wait for it, or stop it") from None
        lock.truncate(0)
        yield lock
