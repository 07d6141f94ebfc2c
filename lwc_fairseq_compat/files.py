"""Files that exist as a whole or not at all."""

import contextlib
import glob
import os
import shutil
import socket
import threading


@contextlib.contextmanager
def whole_file(path):
    """Yield a name beside ``path`` that no other writer has. What is written there becomes ``path`` at the end.

    An error or an interruption leaves nothing behind. A killed process leaves its unfinished file, which the next
    writer of ``path`` on the same machine removes. ``path`` may also be a folder that does not exist yet.
    """
    mine = f"{path}.{socket.gethostname()}"
    for left in glob.glob(f"{glob.escape(mine)}.*.making"):
        if not is_running(left.removeprefix(mine).split(".")[1]):
            remove(left)
    making = f"{mine}.{os.getpid()}.{threading.get_native_id()}.making"
    remove(making)  # in a container that was started again, a killed process may have had this number
    try:
        yield making
        os.replace(making, path)
    finally:
        remove(making)


def is_missing_file(path):
    """Return whether a path, unless it is a URL, is no file."""
    return "://" not in path and not os.path.isfile(path)


def is_running(process):
    """Return whether the process of a number, given as text, exists on this machine."""
    try:
        os.kill(int(process), 0)
    except (OSError, ValueError) as error:
        return isinstance(error, PermissionError)  # it belongs to another user
    return True


def remove(path):
    """Remove a file or a folder, if it exists and can be removed."""
    shutil.rmtree(path, ignore_errors=True)  # leaves a file, which os.remove removes
    with contextlib.suppress(OSError):
        os.remove(path)
