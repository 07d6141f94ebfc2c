"""Standard input and output of the commands: UTF-8 in every locale, and a reader that ends early."""

import contextlib
import functools
import locale
import logging
import os
import signal
import sys

from .hooks import before_fairseq, mends


def use_utf8():
    """Read and write UTF-8 from now on, whatever the locale: standard streams, logs, and files of other packages.

    A name of a file that is not UTF-8 is written as it is.
    """
    with contextlib.suppress(locale.Error):  # a system without this locale
        locale.setlocale(locale.LC_CTYPE, "C.UTF-8")  # the encoding of files that are opened without one
    if sys.stdin:  # None if it is closed
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="replace", newline="\n")
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.reconfigure(encoding="utf-8", errors="surrogateescape")


@before_fairseq
def prepare_streams_of_commands():
    """Let fairseq's commands read and write UTF-8, and end like other programs (status 141) when the program that reads
    their output ends.

    Why: they write in the encoding of the locale, and print tracebacks if the output is read by ``head``.
    Needed: always.
    """
    folder, name = os.path.split(sys.argv[0])
    if name.startswith("fairseq-") or os.path.basename(folder) == "fairseq_cli":  # by python -m
        use_utf8()
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


@mends("fairseq.trainer", "Trainer.__init__")
def train_without_a_reader(init):
    """Let training go on when the program that reads its output ends, since work would be lost.

    Why: Python's logging prints a traceback for each message. Needed: always.
    """

    @functools.wraps(init)
    def init_and_go_on(self, *args, **kwargs):
        init(self, *args, **kwargs)
        if signal.getsignal(signal.SIGPIPE) is signal.SIG_DFL:  # by prepare_streams_of_commands
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
            logging.StreamHandler.handleError = discard_output

    return init_and_go_on


def discard_output(handler, record):
    """Handle an error of writing a message: if nobody reads the messages, discard them from now on."""
    if not isinstance(sys.exception(), BrokenPipeError):
        return logging.Handler.handleError(handler, record)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, handler.stream.fileno())
    try:
        print("the program that read the output has ended; training goes on", file=sys.stderr, flush=True)
    except BrokenPipeError:  # it read both
        os.dup2(nowhere, sys.stderr.fileno())
