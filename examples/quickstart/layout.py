"""Print where `lwc-fairseq table` keeps the files of a row, as assignments for a shell.

    eval "$(python examples/quickstart/layout.py OUT ROW)"

sets `model` to the folder of ROW's first run in the table's folder OUT, `train_command` and `generate_command` to the
files with its commands, `generated` to its translations, and `translated` to all rows of OUT that have translations.
"""

import shlex
import sys
from pathlib import Path

from lwc_fairseq.experiments.layout import RunFolder, TableFolder


def assignments(run: RunFolder, translated: list[str]) -> list[str]:
    paths = {
        "model": run.path,
        "train_command": run.command("train"),
        "generate_command": run.command("generate"),
        "generated": run.generated,
    }
    return [
        *(f"{name}={shlex.quote(str(path))}" for name, path in paths.items()),
        f"translated=({shlex.join(translated)})",
    ]


if __name__ == "__main__":
    out, row = sys.argv[1:]
    table = TableFolder(Path(out))
    rows = sorted(folder.name for folder in table.path.iterdir()) if table.path.is_dir() else []
    print(*assignments(table.run(row, 1), [name for name in rows if table.run(name, 1).generated.exists()]), sep="\n")
