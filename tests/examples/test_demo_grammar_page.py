"""The page of the grammar: its example runs, and its table has the files in the order of their imports."""

import doctest
import re

from conftest import ROOT

FOLDER = ROOT / "examples" / "quickstart" / "grammar"
PAGE = FOLDER / "README.md"


def test_the_example_runs():
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.attempted > 10 and not found.failed


def test_a_file_uses_only_files_above_it():
    order = re.findall(r"\[`(\w+)`\]\(\1\.py\)", PAGE.read_text(encoding="utf-8"))
    assert sorted(order) == sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
    for number, name in enumerate(order):
        text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
        used = re.findall(r"^from \.(\w+) import|^from \. import (\w+)", text, re.MULTILINE)
        assert {one or other for one, other in used} <= set(order[:number]), name
