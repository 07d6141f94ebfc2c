"""Files of alignments, and the messages about wrong ones."""

import pytest

from lwc_fairseq.analysis.alignment import Gold, check_inside, read_alignments, read_links
from lwc_fairseq.analysis.attention import Forced


def test_gold_formats(tmp_path):
    (tmp_path / "gold").write_text("0-1 2p3 4?5\n\n")
    assert read_alignments(tmp_path / "gold") == [Gold({(0, 1)}, {(0, 1), (2, 3), (4, 5)}), Gold(set(), set())]
    (tmp_path / "gold").write_text("1-2\n")
    assert read_alignments(tmp_path / "gold", 1) == [Gold({(0, 1)}, {(0, 1)})]


@pytest.mark.parametrize(
    ("text", "first", "message"),
    [("0-0\n1_2\n", 0, "line 2: 1_2: not a link"), ("0-1\n", 1, "line 1: 0-1: words are counted from 1")],
)
def test_a_wrong_line_is_named(tmp_path, text, first, message):
    (tmp_path / "gold").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_alignments(tmp_path / "gold", first)


def test_links_of_a_system_are_sure(tmp_path):
    (tmp_path / "links").write_text("0-0\n0-1 1p1\n")
    with pytest.raises(ValueError, match="line 2: links of a system are written i-j"):
        read_links(tmp_path / "links")


def test_gold_links_outside_of_their_sentence_are_named():
    pair = Forced(0, ["a@@", "b", "</s>"], ["x", "y", "</s>"], [])
    check_inside(Gold({(0, 1)}, {(0, 1)}), pair, "gold, line 1")
    with pytest.raises(ValueError, match="gold, line 1: link 1-0, counted from 0, in a sentence of 1 and 2 words"):
        check_inside(Gold(set(), {(1, 0)}), pair, "gold, line 1")
