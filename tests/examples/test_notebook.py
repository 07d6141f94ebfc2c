"""The notebook: it runs from top to bottom, and the outputs that it keeps are small and those of its cells.

To renew its outputs, run it in Jupyter, clear the output of the cell with the tag `output-not-kept`, and save it.
"""

import json
import re

import pytest

from conftest import LONG, ROOT

NOTEBOOK = ROOT / "examples" / "notebook.ipynb"
CELLS = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def test_the_outputs_that_are_kept():
    outputs = json.dumps([cell["outputs"] for cell in CELLS])
    assert outputs.count('"image/png": "') == 1 and NOTEBOOK.stat().st_size < 150_000
    assert not re.search(r"/(home|root|tmp|usr|work|Users)/", outputs) and '"stderr"' not in outputs
    for cell in CELLS:
        assert not cell["outputs"] or "output-not-kept" not in cell["metadata"].get("tags", [])


@LONG
def test_it_runs_from_top_to_bottom(tmp_path):
    """In a folder of its own, with fewer updates."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    for name in ("examples", "lwc_fairseq"):
        (tmp_path / name).symlink_to(ROOT / name)
    text = NOTEBOOK.read_text(encoding="utf-8").replace("--max-update 750", "--max-update 40")
    book = nbformat.reads(text.replace("--validate-interval-updates 75", "--validate-interval-updates 20"), 4)
    nbclient.NotebookClient(book, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    said = json.dumps([cell.outputs for cell in book.cells if cell.cell_type == "code"])
    assert "a lwc  done" in said and "<iframe srcdoc=" in said and "image/png" in said and "BLEU" in said
    assert str(tmp_path) not in said
