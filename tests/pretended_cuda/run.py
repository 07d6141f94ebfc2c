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
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # operations of tests are small
    sys.path[0] = str(HERE.parent)  # in place of this folder, whose names are too general
    from pretended_cuda.guard import load_guard

    load_guard()
    from pretended_cuda.device import pretend

    pretend(args.capability)
    run(args.command, args.arguments)


def run(command: str, arguments: list[str]) -> None:
    """Run a console script or a Python file in this process, as if it had been started with these arguments."""
    if command.endswith(".py"):
        sys.argv = [command, *arguments]
        sys.path.insert(0, str(Path(command).resolve().parent))
        runpy.run_path(command, run_name="__main__")
        return
    scripts = entry_points(group="console_scripts", name=command)
    if not scripts:
        sys.exit(f"run.py: error: {command} is neither a Python file nor a command of this environment")
    sys.argv = [str(Path(sys.executable).parent / command), *arguments]
    (script,) = scripts
    sys.exit(script.load()())


if __name__ == "__main__":
    main()
