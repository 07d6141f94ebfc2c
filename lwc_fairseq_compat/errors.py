"""Errors that a user can fix, and how the commands print them."""

import sys
from traceback import walk_tb

from .hooks import before_fairseq


class UserError(ValueError):
    """An error that the user can fix. The message names the option or file, its value and the remedy.

    The ``fairseq-*`` commands print it as one line without a traceback (:func:`print_user_errors_in_one_line`).
    """


def flag(name):
    """Return an option as it is given on the command line."""
    return "--" + name.replace("_", "-")


@before_fairseq
def print_user_errors_in_one_line():
    """End a command with one line instead of a traceback when the user can fix the cause, or has pressed Ctrl-C.

    Why: the commands of ``fairseq_cli`` let every exception through. Needed: always.
    """
    excepthook = sys.excepthook

    def hook(kind, error, traceback):
        command = sys.argv[0].rpartition("/")[2]
        if kind is KeyboardInterrupt:
            print(f"{command}: interrupted", file=sys.stderr)
        elif is_for_user(error):
            print(f"{command}: error: {error}", file=sys.stderr)
        else:
            excepthook(kind, error, traceback)

    sys.excepthook = hook


def is_for_user(error):
    """Return whether the message of an error tells the user what to do.

    The assertions with which the commands of ``fairseq_cli`` check their options count too.
    """
    is_check = isinstance(error, AssertionError) and str(error) and package_that_raised(error) == "fairseq_cli"
    return bool(isinstance(error, UserError) or is_check)


def package_that_raised(error):
    """Return the name of the package whose code raised an error."""
    *_, (frame, _) = walk_tb(error.__traceback__)
    return frame.f_globals["__name__"].partition(".")[0]
