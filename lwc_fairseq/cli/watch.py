"""`lwc-fairseq watch`: the curves and states of runs in the terminal."""

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

from lwc_fairseq_compat import UserError

REFRESH_S = 2.0

OPEN, HOME, CLOSE = "\x1b[?1049h\x1b[?25l", "\x1b[H", "\x1b[?25h\x1b[?1049l"
"""What a terminal understands: show another screen without a cursor, go to its corner, and show the first screen."""


def add_watch(commands) -> None:
    watch = commands.add_parser(
        "watch",
        help="show a running table's curves in the terminal",
        description="Show the state and the curves of each run of a table, or of a single training, until Ctrl-C or "
        "until all runs have ended. Other processes, or jobs of a cluster, may be at work. Needs the package plotille.",
    )
    add = watch.add_argument
    add("folder", type=Path, metavar="FOLDER", help="the --out of `table`, the --save-dir of a training, or its log")
    add("--once", action="store_true", help="print the present state, and end (default if the output is no terminal)")
    watch.set_defaults(call=watch_command)


def watch_command(args: argparse.Namespace) -> int:
    try:
        from ..experiments.frame import make_frame
    except ModuleNotFoundError as error:
        if error.name != "plotille":
            raise
        raise UserError("watch needs plotille: pip install '.[watch]'") from error
    from ..experiments.queue import POLL_S, SLURM
    from ..experiments.states import read_runs

    title, runs = str(args.folder), read_runs(args.folder)
    if args.once or not (sys.stdout and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        print(make_frame(title, runs, shutil.get_terminal_size().columns))
        return 0
    print(end=OPEN)
    try:
        while True:
            width, height = shutil.get_terminal_size()
            lines = make_frame(title, runs, width, height).splitlines()
            print(HOME + "".join(f"{line}\x1b[K\n" for line in lines), end="\x1b[J", flush=True)
            if runs and all(run.has_ended for run in runs):
                break
            time.sleep(POLL_S[SLURM] if any(run.job for run in runs) else REFRESH_S)
            runs = read_runs(args.folder)
    except KeyboardInterrupt as stop:
        if stop.args:  # another signal than that of Ctrl-C
            raise
    finally:
        print(end=CLOSE, flush=True)
    print(make_frame(title, runs, *shutil.get_terminal_size()))
    return 0
