"""The command `lwc-fairseq`: tables of runs, averages of checkpoints, and analysis of models."""

import argparse
import logging
import signal
import sys

from lwc_fairseq_compat import UserError

from ..installation import how_to_install
from .doctor import add_doctor


def parser(only_doctor: bool = False) -> argparse.ArgumentParser:
    """Build the argument parser, either with all commands or only with `doctor`.

    Raises:
        ModuleNotFoundError: a requirement of the other commands is missing.
    """
    top = argparse.ArgumentParser(prog="lwc-fairseq", description=__doc__)
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
    from .report import add_report
    from .table import add_table

    for add in (add_table, add_average, add_align, add_aer, add_compare, add_attention, add_report):
        add(commands)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # like Ctrl-C: terminates the runs, too
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)  # it logs each step of a test
    try:
        # The doctor must work even if the other commands cannot be imported.
        args = parser(only_doctor=sys.argv[1:2] == ["doctor"]).parse_args()
    except ModuleNotFoundError as error:
        sys.exit(f"lwc-fairseq: error: {how_to_install(error)}")
    try:
        sys.exit(args.call(args))
    except UserError as error:
        sys.exit(f"lwc-fairseq: error: {error}")
    except KeyboardInterrupt:
        sys.exit("lwc-fairseq: stopped" + ("; the same command goes on from here" if args.command == "table" else ""))
