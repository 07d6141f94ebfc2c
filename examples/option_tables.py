"""Write the tables of options in docs/models.md: the options of the data classes, their defaults and their help.

    python examples/option_tables.py [--out FILE]

The page says where: below each line "| option of `abd` | default | what it does |" stands a table of this model, task,
criterion or optimizer, without the options that fairseq gives all of its kind. "option of `nsc_hs` that `abd` lacks"
leaves out those of abd as well. All other lines of the page stay as they are.
"""

import argparse
import dataclasses
import re
import sys
from pathlib import Path

from fairseq.dataclass import FairseqDataclass
from fairseq.models import MODEL_DATACLASS_REGISTRY
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_DATACLASS_REGISTRY
from fairseq.tasks.translation import TranslationConfig

import lwc_fairseq  # noqa: F401 (registers the models)
from lwc_fairseq.files import make_place, write_whole
from lwc_fairseq.pages import markdown_table
from lwc_fairseq_compat import UserError

PAGE = Path(__file__).resolve().parent.parent / "docs" / "models.md"
TABLE = re.compile(r"^\| (option of `(\w+)`(?: that `(\w+)` lacks)?) \| default \| .*\n(?:\|.*\n)*", re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=PAGE, help="default: docs/models.md")
    args = parser.parse_args()
    make_place(args.out)
    write_whole(args.out, TABLE.sub(table, PAGE.read_text(encoding="utf-8")))


def table(written: re.Match) -> str:
    """Return a table of the page as the code has it."""
    head, name, other = written.groups()
    known = {option.name for option in options(other)} if other else set()
    rows = [
        [f"`--{option.name.replace('_', '-')}`", default(option.default), option.metadata["help"]]
        for option in options(name)
        if option.name not in known
    ]
    return "\n".join(markdown_table([head, "default", "what it does"], rows)) + "\n"


def options(name: str) -> list[dataclasses.Field]:
    """Return the options that a model, task, criterion or optimizer adds to fairseq's.

    Raises:
        UserError: nothing is registered under this name.
    """
    registries = [MODEL_DATACLASS_REGISTRY, TASK_DATACLASS_REGISTRY]
    registries += [registry["dataclass_registry"] for registry in REGISTRIES.values()]
    configuration = next((registry[name] for registry in registries if name in registry), None)
    if configuration is None:
        raise UserError(f"{PAGE}: option of `{name}`: no model, task, criterion or optimizer has this name")
    inherited = {option.name for base in (FairseqDataclass, TranslationConfig) for option in dataclasses.fields(base)}
    return [
        option
        for option in dataclasses.fields(configuration)
        if option.name not in inherited and not str(option.default).startswith("${")  # another option sets these
    ]


def default(value: object) -> str:
    return {"None": "none", "False": "off"}.get(str(value), str(value))


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"option_tables: error: {error}")
