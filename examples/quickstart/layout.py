"""Print where `lwc-fairseq table` keeps the files of a row, as assignments for a shell.

    eval "$(python examples/quickstart/layout.py OUT ROW)"

sets `model` to the folder of ROW's first run in the table's folder OUT, `train_command` and `generate_command` to the
files with its commands, `generated` to its translations, and `translated` to all rows of OUT that have translations.
"""

import argparse
import shlex
from pathlib import Path

from lwc_fairseq.experiments.layout import RunFolder


def assignments(run: RunFolder, translated: list[str]) -> list[str]:
    paths = {
        "model": run.path,
        "train_command": run.command("train"),
        "generate_command": run.command("generate"),
        "generated": run.result("generate"),
    }
    return [
        *(f"{name}={shlex.quote(str(path))}" for name, path in paths.items()),
        f"translated=({shlex.join(translated)})",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the table's folder")
    parser.add_argument("row", help="the name of a row")
    args = parser.parse_args()
    rows = sorted(folder.name for folder in args.out.iterdir()) if args.out.is_dir() else []
    translated = [name for name in rows if RunFolder(args.out, name, 1).result("generate").exists()]
    print(*assignments(RunFolder(args.out, args.row, 1), translated), sep="\n")


if __name__ == "__main__":
    main()
