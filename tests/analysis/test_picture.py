"""Pictures of attention can be read, and come in several formats."""

import itertools

import numpy as np
import pytest
import torch

from conftest import run
from lwc_fairseq.analysis.panels import Panel
from lwc_fairseq.analysis.picture import draw, make_figure, page


def test_labels_of_60_tokens_do_not_overlap():
    tokens = [f"quitelongword{i}" for i in range(60)]
    panel = Panel("layer 0", tokens, tokens, torch.rand(60, 60), 60)
    figure = make_figure([panel] * 2, "a title")
    figure.draw_without_rendering()
    for axes in figure.axes[:2]:
        for labels, low, high in ((axes.get_xticklabels(), "x0", "x1"), (axes.get_yticklabels(), "y0", "y1")):
            boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: getattr(box, low))
            assert all(getattr(a, high) <= getattr(b, low) + 0.5 for a, b in itertools.pairwise(boxes))


def test_panels_that_leave_a_gap_in_the_grid():
    tokens = [f"w{i}" for i in range(40)]
    figure = make_figure([Panel(f"layer {i}", tokens, tokens, torch.rand(40, 40), 40) for i in range(5)], "a title")
    assert [axes.get_title() for axes in figure.axes[:5]] == [f"layer {i}" for i in range(5)]
    assert len(figure.axes) == 6  # and the scale


def test_formats(tmp_path):
    made = [Panel("layer 0", ["a", "b"], ["c", "d", "e"], torch.rand(2, 3), 2)]
    for name, beginning in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.html", b"<!DOCTYPE html>")):
        draw(made, tmp_path / name, "a < b")
        assert (tmp_path / name).read_bytes().startswith(beginning)
    text = (tmp_path / "a.html").read_text()
    assert "<title>a &lt; b</title>" in text and "src=" not in text and "<link" not in text
    assert page("x", "<?xml?><svg></svg>").endswith("<body><svg></svg></body></html>\n")
    with pytest.raises(ValueError, match=r"a\.jpg: give a name that ends in"):
        draw(made, tmp_path / "a.jpg", "")


def test_command(tiny_checkpoint, tiny_data, tmp_path):
    command = ("lwc-fairseq", "attention", tiny_checkpoint, "--data", tiny_data, "--source", "ba de fi", "--out")
    said = run(*command, tmp_path / "a.png", "--weights", tmp_path / "a.npz").stdout
    assert str(tmp_path / "a.png") in said and (tmp_path / "a.png").exists()
    numbers = np.load(tmp_path / "a.npz")
    assert numbers["weights"].shape == (2, len(numbers["rows"]), len(numbers["columns"]))
    assert list(numbers["columns"][:4]) == ["ba", "de", "fi", "</s>"] and numbers["source_columns"] == 4
    refused = run(*command, tmp_path / "b.png", "--layer", "5", check=False)
    assert refused.returncode and "--layer 5: the model has 2" in refused.stderr.strip().splitlines()[-1]
    assert not (tmp_path / "b.png").exists()
