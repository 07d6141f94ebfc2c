"""Errors that a user can fix, and how the commands print them."""

import sys

from .hooks import before_fairseq


class UserError(ValueError):
    """An error that the user can fix. The message names the option or file, its value and the remedy.

    The ``fairseq-*`` commands print it as one line without a traceback (:func:`print_user_errors_in_one_line`).
    """


@before_fairseq
def print_user_errors_in_one_line():
    """End a command with one line instead of a traceback when the user can fix the cause.

    Why: the commands of ``fairseq_cli`` let every exception through. Needed: always.
    """
    excepthook = sys.excepthook

    def hook(kind, error, traceback):
        if issubclass(kind, UserError):
            print(f"{sys.argv[0].rpartition('/')[2]}: error: {error}", file=sys.stderr)
        else:
            excepthook(kind, error, traceback)

    sys.excepthook = hook
