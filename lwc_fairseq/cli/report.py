"""`lwc-fairseq report`: a finished table as an HTML page."""

import argparse
from pathlib import Path

from ..files import make_place
from .arguments import add_first, add_user_dir, check_first


def add_report(commands) -> None:
    report = commands.add_parser(
        "report",
        help="write a finished table as an HTML page",
        description="Write a self-contained HTML page: results, curve, scores by source length, word "
        "alignments, samples, the sentences on which the rows differ most, and attention.",
    )
    report.add_argument("folder", type=Path, metavar="DIR", help="the folder that `table` wrote to")
    report.add_argument("--out", type=Path, metavar="FILE.html", help="default: DIR/report.html")
    report.add_argument(
        "--data",
        metavar="DIR",
        help="the binary data (default: the folder that was given to `table`)",
    )
    report.add_argument("--gold", type=Path, metavar="FILE", help="gold alignments of the test set, for a table of AER")
    add_first(report)
    add_user_dir(report, more=" (default: those of `table`)")
    report.set_defaults(call=report_command)


def report_command(args: argparse.Namespace) -> int:
    from ..experiments.layout import TableFolder
    from ..experiments.report import write_report

    check_first(args)
    out = args.out or TableFolder(args.folder).report
    make_place(out)
    write_report(args.folder, out, args.gold, args.gold_first, args.data, args.user_dir)
    print(f"wrote {out}")
    return 0
