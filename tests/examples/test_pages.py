"""The pages that users read: their links lead somewhere, their options are the code's."""

import dataclasses
import re
import runpy
import sys

import pytest
from fairseq.models import MODEL_DATACLASS_REGISTRY

from conftest import ROOT
from pages import every_page, headings, links, read

SCRIPT = ROOT / "examples" / "option_tables.py"
MODELS = ROOT / "docs" / "models.md"


@pytest.mark.parametrize("page", every_page(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for file, heading in links(page):
        assert file.exists(), file
        assert not heading or heading in headings(file), f"{file}#{heading}"


def test_the_tables_of_options_are_what_their_script_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [SCRIPT.name, "--out", str(tmp_path / "models.md")])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    assert read(tmp_path / "models.md") == read(MODELS), "run python examples/option_tables.py"


def test_there_is_a_table_for_each_kind_of_options():
    models = ["lwc_transformer", "deepatt", "abd", "nsc_hs", "abd_rnmt", "abd_lwc"]
    others = ["concat_translation", "bidirectional_cross_entropy", "fused_adam", "rmsprop"]
    assert re.findall(r"^\| option of `(\w+)`.*\n\| ---", read(MODELS), re.MULTILINE) == models + others


def test_nsc_adds_what_its_table_has():
    """The page describes the other options of `nsc_rt` and `nsc_hs` with those of `abd`."""
    nsc, abd = ({one.name for one in dataclasses.fields(MODEL_DATACLASS_REGISTRY[name])} for name in ("nsc_hs", "abd"))
    assert abd - nsc == {"share_all_embeddings", "init_backward_from"}


def test_a_table_of_an_unknown_name_is_refused():
    options = runpy.run_path(str(SCRIPT))["options"]
    with pytest.raises(ValueError, match="option of `lwc_transformre`: no model, task, criterion or optimizer"):
        options("lwc_transformre")
