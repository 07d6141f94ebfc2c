"""The command `lwc-fairseq`: tables of runs, translation, averages of checkpoints, and analysis of models."""

import argparse
import errno
import logging
import os
import signal
import sys

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.dictionaries import skipped_check
from lwc_fairseq_compat.errors import package_that_raised
from lwc_fairseq_compat.text import use_utf8

from .. import __version__, how_to_install
from .align import add_aer, add_align
from .attention import add_attention
from .average import add_average
from .compare import add_compare
from .doctor import add_doctor
from .export import add_export
from .import_model import add_import
from .pack import add_pack
from .reverse import add_reverse
from .serve import add_serve
from .table import add_report, add_table
from .translate import add_translate
from .watch import add_watch

COMMANDS = (
    *(add_table, add_translate, add_average, add_import, add_align, add_aer, add_compare, add_attention, add_report),
    *(add_watch, add_serve, add_export, add_pack, add_reverse, add_doctor),
)
"""Their modules import PyTorch, fairseq and other packages, which take seconds, only where a command runs."""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="lwc-fairseq", description=__doc__)
    top.add_argument("--version", action="version", version=f"lwc_fairseq {__version__}")
    top.add_argument(
        "--print-completion",
        action=PrintCompletion,
        choices=("bash", "zsh"),
        metavar="SHELL",
        help="print what lets bash or zsh complete this command (needs the package shtab)",
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in COMMANDS:
        add(commands)
    for name in ("translate", "average", "align", "attention", "report", "serve", "export", "pack", "reverse"):
        commands.choices[name].add_argument(
            "--skip-dictionary-check",
            action="store_true",
            help="do not compare the words of dictionaries with those that a model was trained with",
        )
    return top


class PrintCompletion(argparse.Action):
    """Prints the functions by which a shell completes commands, options, their choices, and files."""

    def __call__(self, top: argparse.ArgumentParser, args, shell, option=None) -> None:
        try:
            import shtab
        except ModuleNotFoundError as error:
            raise UserError("--print-completion needs shtab: pip install shtab") from error
        (commands,) = [action.choices for action in top._actions if isinstance(action.choices, dict)]
        for argument in [argument for command in commands.values() for argument in command._actions]:
            if argument.nargs != 0 and not argument.choices:  # it has a value
                argument.complete = shtab.FILE
        print(shtab.complete(top, shell))
        top.exit()


def terminate(number, frame) -> None:
    """End a command at SIGTERM, which schedulers send, as at Ctrl-C."""
    raise KeyboardInterrupt(number)


def main() -> None:
    signal.signal(signal.SIGTERM, terminate)
    use_utf8()
    for chatty in ("sacrebleu", "fairseq.utils"):  # they log each step of a test, and each import of a plugin
        logging.getLogger(chatty).setLevel(logging.WARNING)
    try:
        try:
            args = parser().parse_args()
            with skipped_check(getattr(args, "skip_dictionary_check", False)):
                sys.exit(args.call(args))
        finally:
            print(end="", flush=True)
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has ended
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.raise_signal(signal.SIGPIPE)
    except UserError as error:
        sys.exit(f"lwc-fairseq: error: {error}")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python writes the rest to standard output at its end
        sys.exit(f"lwc-fairseq: error: {error.filename or 'standard output'}: {error.strerror}")
    except ModuleNotFoundError as error:
        if package_that_raised(error) not in ("lwc_fairseq", "lwc_fairseq_compat", "fairseq"):
            raise  # a plugin of the user has raised it
        sys.exit(f"lwc-fairseq: error: {how_to_install(error)}")
    except KeyboardInterrupt as stop:
        how_to_go_on = "; the same command goes on from here" if sys.argv[1:2] in (["table"], ["reverse"]) else ""
        print(f"lwc-fairseq: stopped{how_to_go_on}", file=sys.stderr)
        (number,) = stop.args or (signal.SIGINT,)
        sys.exit(128 + number)
