"""Run a command on a pretended CUDA device; no GPU is needed.

    python tests/pretended_cuda/run.py fairseq-train DATA --fp16 ...
    python tests/pretended_cuda/run.py --capability 7.5 pytest tests/models/test_deepatt.py -k cuda
    python tests/pretended_cuda/run.py program.py ...

Only this process and its data-loader workers have the device: commands that it starts run without it. Results are
those of a CPU; times and memory say nothing about a GPU.
"""

import argparse
import os
import runpy
import sys
from importlib.metadata import entry_points
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--capability", default="9.0", help="compute capability of the device (default: %(default)s)")
    parser.add_argument("command", help="a command of this environment, such as fairseq-train, or a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the command receives")
    args = parser.parse_args()
    scripts = entry_points(group="console_scripts", name=args.command)
    if not args.command.endswith(".py") and not scripts:
        parser.error(f"{args.command} is neither a Python file nor a command of this environment")
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # operations of tests are small
    sys.path[0] = str(HERE.parent)  # in place of this folder, whose names are too general
    from pretended_cuda.guard import load_guard

    load_guard()
    from pretended_cuda.device import pretend

    pretend(args.capability)
    if scripts:
        sys.argv = [str(Path(sys.executable).parent / args.command), *args.arguments]
        sys.exit(scripts[args.command].load()())
    sys.argv = [args.command, *args.arguments]
    sys.path.insert(0, str(Path(args.command).resolve().parent))
    runpy.run_path(args.command, run_name="__main__")


if __name__ == "__main__":
    main()
