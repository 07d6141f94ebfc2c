"""`lwc-fairseq average`: the mean of several checkpoints' weights."""

import argparse
from pathlib import Path

from lwc_fairseq_compat import UserError

from ..files import make_place
from .arguments import positive


def add_average(commands) -> None:
    average = commands.add_parser(
        "average",
        help="average checkpoints",
        description="Write a checkpoint whose weights are the mean of several checkpoints of one training run.",
    )
    average.add_argument("inputs", nargs="+", type=Path, metavar="PATH", help="checkpoints or, with --last, a folder")
    average.add_argument(
        "--last", type=positive, metavar="N", help="average the checkpoints of the last N epochs in the folder"
    )
    average.add_argument("--out", required=True, type=Path, metavar="FILE")
    average.set_defaults(call=average_command)


def average_command(args: argparse.Namespace) -> int:
    from ..experiments.average import average_checkpoints, newest_epochs

    paths = args.inputs
    if args.last:
        if len(paths) != 1:
            raise UserError(f"--last {args.last}: give one folder, not {len(paths)} paths")
        paths = newest_epochs(paths[0], args.last)
    make_place(args.out)
    average_checkpoints(paths, args.out)
    print(f"wrote {args.out}, the mean of {', '.join(map(str, paths))}")
    return 0
