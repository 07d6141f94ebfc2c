"""examples/fairseq_features.md names tests that are there."""

import re

from conftest import ROOT

COMMANDS = "tests/commands/test_features.py"


def rows() -> list[str]:
    """The rows of the page's tables, without their heads."""
    page = (ROOT / "examples" / "fairseq_features.md").read_text()
    return [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| feature")]


def test_every_test_that_the_page_names_is_in_its_file():
    """In one of the files that the row names, or in the one that the page begins with."""
    named = 0
    for row in rows():
        files = {COMMANDS, *re.findall(r"`(tests/[\w/]+\.py)`", row)}
        written = {name for file in files for name in re.findall(r"def (test_\w+)", (ROOT / file).read_text())}
        tests = set(re.findall(r"\btest_\w+\b(?!\.py)", row))
        assert tests <= written, row
        named += len(tests)
    assert named > 25


def test_every_feature_that_works_has_one():
    working = [row for row in rows() if "works" in row]
    assert working and all("test_" in row for row in working)
