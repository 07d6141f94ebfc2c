"""Links from attention, sub-words as words, and the error rate worked out by hand."""

import pytest
import torch

from lwc_fairseq.analysis.alignment import (
    ErrorRate,
    Gold,
    by_words,
    check_inside,
    error_rate,
    links,
    parse_line,
    pharaoh,
    read_alignments,
    read_links,
    word_numbers,
)
from lwc_fairseq.analysis.attention import Forced

END = "</s>"


def sentence(source, target, *layers, reverse=False):
    """Of weights (m, n) a layer; every layer has one head."""
    return Forced(0, source, target, [torch.tensor(weights)[None] for weights in layers], reverse)


def test_words_of_sub_words():
    assert word_numbers(["a@@", "b", "c", "d@@", "e@@", "f"]) == [0, 0, 1, 2, 2, 2]


def test_parts_of_source_words_add_up_and_those_of_target_words_are_averaged():
    weights = torch.tensor([[0.3, 0.3, 0.4], [0.1, 0.1, 0.8], [0.2, 0.2, 0.6]])
    merged = by_words(weights, ["a@@", "b", "c"], ["x", "y@@", "z"])
    assert torch.allclose(merged, torch.tensor([[0.6, 0.4], [0.3, 0.7]]))


def test_the_step_that_produces_a_word_aligns_it():
    """The row of a step is that of the word it produces, not of the word it reads; the end symbols are left out."""
    rows = [[0.1, 0.6, 0.3], [0.5, 0.4, 0.1], [0.0, 0.1, 0.9]]  # produce x, y, and the end
    found = links(sentence(["a", "b", END], ["x", "y", END], rows), None, None)
    assert pharaoh(found) == "0-1 1-0"


def test_of_two_source_parts_together_the_word_wins():
    rows = [[0.3, 0.3, 0.4, 0.0], [0.0, 0.0, 0.0, 1.0]]
    assert links(sentence(["a@@", "b", "c", END], ["x", END], rows), None, None) == [(0, 0)]


def test_layers_heads_and_their_means():
    first, second = [[0.9, 0.1, 0.0]] * 2, [[0.0, 1.0, 0.0]] * 2
    pair = sentence(["a", "b", END], ["x", END], first, second)
    assert [links(pair, layer, None) for layer in (0, 1, None)] == [[(0, 0)], [(1, 0)], [(1, 0)]]
    assert links(pair, 0, 0) == [(0, 0)]
    for choice, option in (((2, None), "--layer 2"), ((None, 1), "--head 1"), ((-1, None), "--layer -1")):
        with pytest.raises(ValueError, match=option):
            links(pair, *choice)


def test_right_to_left_targets_are_counted_in_reading_order():
    rows = [[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.0, 0.9, 0.1], [0.0, 0.0, 1.0]]  # produce z, then y@@ x backwards
    found = links(sentence(["a", "b", END], ["z", "y", "x@@", END], rows, reverse=True), None, None)
    assert found == [(1, 0), (0, 1)]


def test_empty_sentences_have_no_links():
    assert links(sentence([END], [END], [[1.0]]), None, None) == []


def test_gold_formats():
    assert parse_line("0-1 2p3 4?5", 0) == Gold({(0, 1)}, {(0, 1), (2, 3), (4, 5)})
    assert parse_line("1-2", 1) == Gold({(0, 1)}, {(0, 1)})
    assert parse_line("", 0) == Gold(set(), set())


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
    pair = sentence(["a@@", "b", END], ["x", "y", END], [[0.1] * 3] * 3)
    check_inside(Gold({(0, 1)}, {(0, 1)}), pair, "gold, line 1")
    with pytest.raises(ValueError, match="gold, line 1: link 1-0, counted from 0, in a sentence of 1 and 2 words"):
        check_inside(Gold(set(), {(1, 0)}), pair, "gold, line 1")


def test_error_rate_by_hand():
    """Sums over the corpus, not means of sentences: A has 4 links, S 3; 2 are sure, 3 are possible."""
    found = [{(0, 0), (1, 1), (2, 2)}, {(0, 1)}]
    gold = [Gold({(0, 0), (1, 1)}, {(0, 0), (1, 1), (2, 2)}), Gold({(0, 0)}, {(0, 0)})]
    assert error_rate(found, gold) == ErrorRate(aer=1 - (2 + 3) / (4 + 3), precision=3 / 4, recall=2 / 3)


def test_error_rate_refuses_what_cannot_be_compared():
    with pytest.raises(ValueError, match="1 alignments, but 2 in the gold file"):
        error_rate([set()], [Gold(set(), set())] * 2)
    with pytest.raises(ValueError, match="neither alignment has a link"):
        error_rate([set()], [Gold(set(), set())])
