"""Measure models on the pretended CUDA device, and print one line of JSON for each row.

    python tests/pretended_cuda/measure.py --rows short|all|large [--only NAME ...]

A line has the row's name; the error, or null; and for "update", "validation" or "step" the estimated kernel launches
and the waits of the host, in lines of this project (`ours`) and in others, each with its place and number. For a
decoding step these are averages over the steps of a batch.

`large` has the models and sizes for which `budgets.py` holds numbers: see `large_rows.py`.
"""

import argparse
import json
import logging
import os
import sys
import tempfile
import traceback
import warnings
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", choices=["short", "all", "large"], default="short")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="measure the rows of these names")
    parser.add_argument("--traceback", action="store_true", help="print the traceback of each error to standard error")
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    warnings.simplefilter("ignore")
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from pretended_cuda.guard import load_guard

    load_guard()
    from pretended_cuda.device import pretend

    pretend()
    from fairseq.utils import import_user_module

    import_user_module(argparse.Namespace(user_dir="lwc_fairseq"))
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        for name, measure in measurements(args.rows, Path(folder)):
            if args.only is None or name in args.only:
                print(json.dumps({"name": name, **attempt(measure, args.traceback)}), flush=True)


def measurements(rows: str, folder: Path) -> list:
    """Names of rows and the functions that measure them."""
    from pretended_cuda import large_rows, tiny_measurement

    if rows == "large":
        return large_rows.measurements(folder)
    return tiny_measurement.measurements(folder, rows == "all")


def attempt(measure, with_traceback: bool) -> dict:
    """The result of a measurement, or its error."""
    try:
        return {"error": None, **measure()}
    except Exception as error:
        if with_traceback:
            traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main()
