"""Write docs/published.md: the numbers that the papers publish, and how to get each one here.

    python examples/published_values.py [--out FILE]

The numbers of the papers' tables come from examples/tables. docs/published.yaml has the rest: the data of each table,
the columns that its table file lacks, and the numbers in the papers' text.
"""

import argparse
import sys
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap

from lwc_fairseq.experiments.table_file import ALL, Table, load_table
from lwc_fairseq.files import make_place, write_whole
from lwc_fairseq.pages import as_markdown, markdown_table
from lwc_fairseq.typed_yaml import convert, read_yaml
from lwc_fairseq_compat import UserError

ROOT = Path(__file__).resolve().parent.parent
FACTS = ROOT / "docs" / "published.yaml"
TABLES = ROOT / "examples" / "tables"

INTRODUCTION = """\
This page lists the numbers in the tables of the three papers, and the numbers and measurable claims in their text. It
says which command computes a number here, and links to what was measured in its place.

No BLEU and no error rate on this page was measured here on the paper's own data, which takes a GPU. The recipes
download the data of IWSLT and WMT, which are public. The NIST data are licensed by the LDC, so their recipe takes a
FOLDER of yours.

- A command trains all rows of its table, and prints their scores and parameters. Most tables also have rows without a
  published value, such as those with the settings of 2018, which this page leaves out. `--rows NAME` runs one row and
  those that it needs; the last column has its name. A row without a name has the number of other work or of Moses,
  and no command here computes it.
- `--profile demo` and `--profile multi30k` have smaller models, for a CPU. `--dry-run` prints what a command would do.
  [The page on tables](tables.md#a-papers-table) explains the command.
- Sections and tables in the columns "source" and "where" are those of the paper.
- Settings, such as sizes and learning rates, stand in the table files, whose first lines say what a paper leaves open.

`python examples/published_values.py` writes this page from [the table files](../examples/tables) and
[`published.yaml`](published.yaml).
"""


@dataclass
class TableFacts:
    """What the page says about a table besides its rows; docs/published.yaml explains the fields."""

    heading: str
    measured: str
    prepare: str | None = None
    data: str = "DATA"
    flags: str = ""
    note: str | None = None
    column: str | None = None
    columns: dict[str, dict[str, str]] = field(default_factory=dict)
    numbers: bool = True


@dataclass
class Claim:
    """A number or a claim in a paper's text: its place in the paper, and what one gets here."""

    where: str
    here: str


@dataclass
class Paper:
    name: str
    title: str
    tables: dict[str, TableFacts]
    text: dict[str, Claim]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "published.md", help="default: docs/published.md")
    args = parser.parse_args()
    papers: list[Paper] = list(convert(str(FACTS), dict[str, Paper], read_yaml(FACTS)).values())
    described = {name for paper in papers for name in paper.tables}
    if missing := sorted({path.stem for path in TABLES.glob("*.yaml")} - described):
        raise UserError(f"{FACTS}: {missing[0]} is missing; add it to the tables of its paper")
    lines = ["# The papers' numbers", "", *INTRODUCTION.splitlines()]
    for paper in papers:
        lines += ["", f"## {paper.name}: {paper.title}"]
        for name, facts in paper.tables.items():
            lines += ["", f"### {paper.name}, {facts.heading}", "", *section(name, facts)]
        lines += ["", f"### {paper.name}, in the text", ""]
        claims = [[claim, facts.where, facts.here] for claim, facts in paper.text.items()]
        lines += markdown_table(["in the paper", "where", "here"], claims)
    make_place(args.out)
    write_whole(args.out, "\n".join(lines) + "\n")


def section(name: str, facts: TableFacts) -> list[str]:
    """Return the lines about a table: its data, its command, its numbers, and what was measured in their place.

    Raises:
        UserError: there is no table of this name, or it lacks a row that `facts.columns` names.
    """
    path = TABLES / f"{name}.yaml"
    table = load_table(path)
    command = [f"lwc-fairseq table {name} --data {facts.data} --out runs/{name}", *facts.flags.splitlines()]
    lines = [as_markdown(f"Data: {table.data}."), "", "```bash"]
    lines += [facts.prepare] if facts.prepare else []
    lines += [*" \\\n  ".join(command).splitlines(), "```", ""]
    if facts.numbers:
        lines += [*numbers(path, table, facts), ""]
    if facts.note:
        lines += [*paragraph(facts.note), ""]
    return [*lines, *paragraph(f"Measured in its place: {facts.measured}")]


def numbers(path: Path, table: Table, facts: TableFacts) -> list[str]:
    """Return a Markdown table of the rows that have a published number, written as in the file: 20.7, 24.60."""
    written = {row["name"]: row for row in read_yaml(path)["rows"]}
    for column, values in facts.columns.items():
        if unknown := sorted(values.keys() - written.keys()):
            raise UserError(f"{FACTS}: {column}: {unknown[0]}: {path} has no such row")
    last = facts.column or (ALL if table.tests else table.metric.upper())
    rows = []
    for row in table.rows:
        keys = written[row.name]
        cells = {column: values[row.name] for column, values in facts.columns.items() if row.name in values}
        cells |= keys.get("published_tests", {})
        cells |= {tags: ", ".join(values) for tags, values in keys.get("published_parts", {}).items()}
        cells |= {last: keys["published"]} if "published" in keys else {}
        cells |= {"parameters": f"{keys['parameters']}M"} if "parameters" in keys else {}
        if cells:
            cells |= {"row": row.title, "source": row.source or "", "`--rows`": f"`{row.name}`" if row.runs else ""}
            rows.append(cells)
    parts = {tags: None for keys in written.values() for tags in keys.get("published_parts", {})}
    order = ["row", *facts.columns, *table.tests, *parts, last, "parameters", "source", "`--rows`"]
    header = [column for column in order if any(column in cells for cells in rows)]
    return markdown_table(header, [[cells.get(column, "") for column in header] for cells in rows])


def paragraph(text: str) -> list[str]:
    return wrap(as_markdown(text), 120, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"published_values: error: {error}")
