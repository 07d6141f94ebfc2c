"""examples/fairseq_features.md names tests that are there."""

import re

from conftest import ROOT


def test_every_test_that_the_page_names_is_there():
    page = (ROOT / "examples" / "fairseq_features.md").read_text()
    named = set(re.findall(r"\btest_\w+(?!\w*\.py)\b(?!\.py)", page))
    written = {
        name for path in ROOT.glob("tests/**/test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    assert len(named) > 25
    assert named - {path.stem for path in ROOT.glob("tests/**/test_*.py")} <= written


def test_every_feature_that_works_has_one():
    page = (ROOT / "examples" / "fairseq_features.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ") and "works" in line]
    assert rows and all("test_" in row for row in rows)
