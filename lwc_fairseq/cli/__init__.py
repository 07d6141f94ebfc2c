"""The command `lwc-fairseq`: tables of runs, averaged checkpoints, and what models do."""

import argparse
import logging
import signal
import sys

import lwc_fairseq  # noqa: F401  (registers the models)
from lwc_fairseq_compat import UserError

from .align import add_aer, add_align
from .attention import add_attention
from .average import add_average
from .compare import add_compare
from .doctor import add_doctor
from .report import add_report
from .table import add_table


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="lwc-fairseq", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (add_table, add_average, add_align, add_aer, add_compare, add_attention, add_report, add_doctor):
        add(commands)
    return top


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # as Ctrl-C: runs are ended, too
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)  # it tells of each step of a test
    args = parser().parse_args()
    try:
        sys.exit(args.call(args))
    except UserError as error:
        sys.exit(f"lwc-fairseq: error: {error}")
    except KeyboardInterrupt:
        sys.exit("lwc-fairseq: stopped" + ("; the same command goes on from here" if args.command == "table" else ""))
