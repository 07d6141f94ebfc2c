"""Pictures of attention can be read, in every script, and come in several formats."""

import html
import itertools
import re

import numpy as np
import pytest
import torch
from fontTools.fontBuilder import FontBuilder
from fontTools.ttLib.tables._g_l_y_f import Glyph

from conftest import TINY_LWC, TINY_TRAINING, binarize, run
from lwc_fairseq.analysis.attention import Panel
from lwc_fairseq.analysis.picture import CELL, draw, embedded, make_figure

HEBREW, ARABIC = "סבא שלי בן שבעים ושמונה .", "جدي عمره ثمانية وسبعون عاما ( Bonn 123 ) ."
RARE = "\U00030123"
"""A Chinese character that hardly any font has."""


def texts(svg: str) -> list[str]:
    return [html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]


def overlap(labels) -> bool:
    boxes = [label.get_window_extent() for label in labels]
    return any(a.padded(-0.5).overlaps(b.padded(-0.5)) for a, b in itertools.combinations(boxes, 2))


@pytest.mark.parametrize("both", [False, True])
def test_a_sentence_of_70_words_is_readable(both):
    """Labels do not overlap, the cells keep their size, and the sentences stand inside the picture."""
    tokens = [f"quitelongword{i}" for i in range(70)]
    columns = tokens * 2 if both else tokens
    panel = Panel("layer 0", tokens, [columns[:70], columns[70:]], torch.rand(70, len(columns)))
    figure = make_figure([panel] * 2, [" ".join(tokens)] * 2)
    figure.draw_without_rendering()
    for axes in figure.axes[:2]:
        assert not overlap(axes.get_xticklabels()) and not overlap(axes.get_yticklabels())
        assert axes.get_window_extent().width / figure.dpi / len(columns) > 0.95 * CELL
    (title,), whole = figure.texts, figure.bbox
    box = title.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= whole.x1 and box.y1 <= whole.y1
    assert box.y0 > max(axes.title.get_window_extent().y1 for axes in figure.axes[:2])


def test_panels_that_leave_a_gap_in_the_grid():
    tokens = [f"w{i}" for i in range(40)]
    figure = make_figure([Panel(f"layer {i}", tokens, [tokens], torch.rand(40, 40)) for i in range(5)], ["a", "b"])
    assert [axes.get_title() for axes in figure.axes[:5]] == [f"layer {i}" for i in range(5)]
    assert len(figure.axes) == 6  # and the scale


@pytest.mark.parametrize(("source", "target"), [(HEBREW, "a b"), ("a b", HEBREW), (ARABIC, HEBREW), ("a b", "c d")])
def test_columns_of_a_right_to_left_language_run_from_right_to_left(source, target):
    """Each side is reversed on its own, and every column keeps its weights."""
    sides = [[*source.split(), "</s>"], ["(start)", *target.split()]]
    columns = sides[0] + sides[1]
    rows = [*target.split(), "</s>"]
    panel = Panel("layer 0", rows, sides, torch.rand(len(rows), len(columns)))
    axes = make_figure([panel], [source, target]).axes[0]
    shown = [side if text.isascii() else side[::-1] for side, text in zip(sides, (source, target), strict=True)]
    assert [label.get_text() for label in axes.get_xticklabels()] == [embedded(word) for word in shown[0] + shown[1]]
    drawn = axes.images[0].get_array()
    numbers = [list(range(len(sides[0]))), list(range(len(sides[0]), len(columns)))]
    order = [side if text.isascii() else side[::-1] for side, text in zip(numbers, (source, target), strict=True)]
    assert torch.equal(torch.as_tensor(np.array(drawn)), panel.weights[:, order[0] + order[1]])


def test_formats(tmp_path):
    made = [Panel("layer 0", ["a", "b"], [["c", "d"], ["e"]], torch.rand(2, 3))]
    beginnings = {"a.png": b"\x89PNG", "a.svg": b"<?xml", "a.pdf": b"%PDF"}
    for name, beginning in beginnings.items():
        draw(made, tmp_path / name, ["a < b", "$x$ and $y$"])
        assert (tmp_path / name).read_bytes().startswith(beginning)
    assert texts((tmp_path / "a.svg").read_text())[-2:] == ["a < b", "$x$ and $y$"]  # text as text, a line for each


def test_a_picture_that_is_too_large_is_refused(tmp_path):
    tokens = ["w" * 4000]
    panel = Panel("layer 0", tokens, [tokens], torch.rand(1, 1))
    with pytest.raises(ValueError, match=r"2 layers of 1 by 1 tokens .* --layer, or write a \.pdf"):
        draw([panel] * 2, tmp_path / "a.png", ["a", "b"])
    assert not list(tmp_path.iterdir())


def attention(checkpoint, data, *flags, **settings):
    return run("lwc-fairseq", "attention", checkpoint, "--data", data, *flags, **settings)


def test_command(tiny_checkpoint, tiny_data, tmp_path):
    command = (tiny_checkpoint, tiny_data, "--source", "ba de fi", "--out")
    done = attention(*command, tmp_path / "a.png", "--weights", tmp_path / "a.npz")
    assert str(tmp_path / "a.png") in done.stdout and (tmp_path / "a.png").exists() and "warning" not in done.stderr
    numbers = np.load(tmp_path / "a.npz")
    assert numbers["weights"].shape == (2, len(numbers["rows"]), len(numbers["columns"]))
    assert list(numbers["columns"][:4]) == ["ba", "de", "fi", "</s>"] and numbers["widths"][0] == 4
    for name, layer, message in (("b.png", "5", "--layer 5: the model has 2"), ("b.jpg", "0", ".svg, .pdf, .html")):
        refused = attention(*command, tmp_path / name, "--layer", layer, check=False)
        assert refused.returncode and message in refused.stderr.strip().splitlines()[-1]
        assert not (tmp_path / name).exists()


def test_unknown_words_are_shown_as_such_and_raw_text_can_be_given(tiny_checkpoint, tiny_data, tmp_path):
    (tmp_path / "codes").write_text("#version: 0.2\nb a</w>\n")
    command = (tiny_checkpoint, tiny_data, "--out", tmp_path / "a.svg", "--weights", tmp_path / "a.npz")
    done = attention(*command, "--source", "ba achtundsiebzig de", "--target", "BA zwei")
    for option, word in (("--source", "achtundsiebzig"), ("--target", "zwei")):
        assert f"warning: {option}: not in the vocabulary, so the model reads <unk>: {word} (" in done.stderr
    numbers = np.load(tmp_path / "a.npz")
    assert list(numbers["columns"][:3]) == ["ba", "achtundsiebzig<unk>", "de"]
    assert list(numbers["rows"]) == ["BA", "zwei<unk>", "</s>"]
    assert texts((tmp_path / "a.svg").read_text())[-2:] == ["ba achtundsiebzig<unk> de", "BA zwei<unk>"]

    attention(*command, "--source", "ba fi", "--bpe-codes", tmp_path / "codes")
    assert list(np.load(tmp_path / "a.npz")["columns"][:4]) == ["ba", "f<unk>@@", "i<unk>", "</s>"]
    assert texts((tmp_path / "a.svg").read_text())[-2] == "ba f<unk>i<unk>"


def make_font(path, family: str, characters: str) -> None:
    names = {ord(character): f"g{i}" for i, character in enumerate(characters)}
    builder = FontBuilder(1000)
    builder.setupGlyphOrder([".notdef", *names.values()])
    builder.setupCharacterMap(names)
    builder.setupGlyf({name: Glyph() for name in [".notdef", *names.values()]})
    builder.setupHorizontalMetrics({name: (500, 0) for name in [".notdef", *names.values()]})
    builder.setupHorizontalHeader()
    builder.setupNameTable({"familyName": family, "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    path.parent.mkdir(parents=True)
    builder.save(path)


def test_installed_fonts_are_found_and_a_line_says_what_to_install(tiny_checkpoint, tiny_data, tmp_path):
    command = (tiny_checkpoint, tiny_data, "--source", f"ba {RARE}", "--out", tmp_path / "a.svg")
    lines = attention(*command).stderr.splitlines()
    (line,) = [line for line in lines if "font" in line or "Glyph" in line]
    assert f"no installed font has {RARE} and the picture shows boxes: apt install fonts-noto-cjk" in line

    make_font(tmp_path / "fonts" / "rare.ttf", "Rarely Seen", RARE)
    assert "font" not in attention(*command, XDG_DATA_HOME=tmp_path).stderr
    assert "font-family: 'DejaVu Sans', 'Rarely Seen', sans-serif" in (tmp_path / "a.svg").read_text()


def test_sub_words_of_sentencepiece(tiny_text, tmp_path):
    """Links are between words; the sentences of a picture consist of words, its axes of sub-words."""
    (tmp_path / "text").mkdir()
    for path in tiny_text.iterdir():
        lines = path.read_text().splitlines()
        pieces = [" ".join(f"▁{word[0]} {word[1]}" for word in line.split()) for line in lines]
        (tmp_path / "text" / path.name).write_text("".join(f"{line}\n" for line in pieces))
    data = binarize(tmp_path / "text", tmp_path / "bin", "--joined-dictionary")
    flags = ("--task", "concat_translation", "--max-update", "2", "--save-dir", tmp_path)
    run("fairseq-train", data, *TINY_LWC, *TINY_TRAINING, *flags)
    model = tmp_path / "checkpoint_last.pt"
    found = run("lwc-fairseq", "align", model, "--data", data).stdout.splitlines()
    words = [len(line.split()) for line in (tiny_text / "test.en").read_text().splitlines()]
    assert [len(line.split()) for line in found] == words
    assert all(int(link.split("-")[0]) < n for line, n in zip(found, words, strict=True) for link in line.split())

    attention(model, data, "--source", "▁b a ▁d e", "--target", "▁D E", "--layer", "0", "--out", tmp_path / "a.svg")
    shown = texts((tmp_path / "a.svg").read_text())
    assert shown[:5] == ["▁b", "a", "▁d", "e", "</s>"] and shown[-2:] == ["ba de", "DE"]
