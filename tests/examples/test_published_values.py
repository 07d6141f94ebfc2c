"""docs/published.md: it is what its script writes, and its commands and names of rows are accepted."""

import re
import runpy
import shlex
import sys

import pytest

from conftest import ROOT
from lwc_fairseq.cli import parser
from lwc_fairseq.experiments.table_file import load_table
from pages import commands, read

PAGE = ROOT / "docs" / "published.md"
TABLES = {path.stem: path for path in sorted((ROOT / "examples" / "tables").glob("*.yaml"))}
COMMANDS = [shlex.split(command) for command in commands(PAGE)]
TRAINING = {words[2]: words for words in COMMANDS if words[:2] == ["lwc-fairseq", "table"]}


def test_the_page_is_what_its_script_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["published_values.py", "--out", str(tmp_path / "published.md")])
    runpy.run_path(str(ROOT / "examples" / "published_values.py"), run_name="__main__")
    assert read(tmp_path / "published.md") == read(PAGE), "run python examples/published_values.py"


def test_every_table_has_a_command():
    assert TRAINING.keys() == TABLES.keys()


@pytest.mark.parametrize("name", TABLES)
def test_the_command_of_a_table_runs(name, capsys):
    """And so do the rows that the page names, which are all that have a published value."""
    start = read(PAGE).index(f"lwc-fairseq table {name} ")
    section = read(PAGE)[start:].partition("\n##")[0]
    rows = re.findall(r"^\|.* `([\w.]+)` \|$", section, re.MULTILINE)
    published = {row.name for row in load_table(TABLES[name]).rows if row.runs and row.published is not None}
    assert published <= set(rows) or "stand only in the picture" in section
    load_table(TABLES[name], rows)
    args = parser().parse_args([*TRAINING[name][1:], "--dry-run"])
    args.call(args)
    printed = capsys.readouterr().out
    assert "fairseq-train" in printed and all(f"runs/{name}/{row}/" in printed for row in rows)


def test_the_scripts_that_make_data_are_there():
    scripts = {words[1] for words in COMMANDS if words[0] == "bash"}
    assert len(scripts) > 4 and all((ROOT / script).is_file() for script in scripts)
