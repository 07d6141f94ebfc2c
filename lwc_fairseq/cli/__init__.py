"""The command `lwc-fairseq`: tables of runs, translation, averages of checkpoints, and analysis of models."""

import argparse
import logging
import signal
import sys

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.fingerprints import skipped_check
from lwc_fairseq_compat.streams import use_utf8

from .. import __version__
from ..installation import how_to_install
from .doctor import add_doctor


def parser(only_doctor: bool = False) -> argparse.ArgumentParser:
    """Build the argument parser, either with all commands or only with `doctor`.

    Raises:
        ModuleNotFoundError: a requirement of the other commands is missing.
    """
    top = argparse.ArgumentParser(prog="lwc-fairseq", description=__doc__)
    top.add_argument("--version", action="version", version=f"lwc_fairseq {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    if not only_doctor:
        add_commands_with_requirements(commands)
    add_doctor(commands)
    return top


def add_commands_with_requirements(commands) -> None:
    """Add the commands whose modules import PyTorch and fairseq."""
    from .align import add_aer, add_align
    from .attention import add_attention
    from .average import add_average
    from .compare import add_compare
    from .import_model import add_import
    from .table import add_report, add_table
    from .translate import add_translate

    analyses = (add_align, add_aer, add_compare, add_attention, add_report)
    for add in (add_table, add_translate, add_average, add_import, *analyses):
        add(commands)
    for name in ("translate", "average", "align", "attention"):
        commands.choices[name].add_argument(
            "--skip-dictionary-check",
            action="store_true",
            help="do not compare the words of dictionaries with those that a model was trained with",
        )


class Terminated(KeyboardInterrupt):
    """SIGTERM, which schedulers send, ends a command as Ctrl-C does."""


def terminate(number, frame) -> None:
    raise Terminated


def parse() -> argparse.Namespace:
    try:
        # The doctor must work even if the other commands cannot be imported.
        return parser(only_doctor=sys.argv[1:2] == ["doctor"]).parse_args()
    except ModuleNotFoundError as error:
        sys.exit(f"lwc-fairseq: error: {how_to_install(error)}")


def main() -> None:
    signal.signal(signal.SIGTERM, terminate)
    use_utf8()
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)  # it logs each step of a test
    try:
        try:
            args = parse()
            with skipped_check(getattr(args, "skip_dictionary_check", False)):
                sys.exit(args.call(args))
        finally:
            print(end="", flush=True)
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has ended
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.raise_signal(signal.SIGPIPE)
    except UserError as error:
        sys.exit(f"lwc-fairseq: error: {error}")
    except KeyboardInterrupt as stop:
        how_to_go_on = "; the same command goes on from here" if sys.argv[1:2] == ["table"] else ""
        print(f"lwc-fairseq: stopped{how_to_go_on}", file=sys.stderr)
        sys.exit(128 + (signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT))
