"""Links from attention, with sub-words joined to words."""

import pytest
import torch

from lwc_fairseq.analysis.alignment import by_words, links, pharaoh
from lwc_fairseq.analysis.attention import Forced, word_numbers

END = "</s>"


def sentence(source, target, *layers):
    """Of weights (m, n) a layer; every layer has one head."""
    return Forced(0, source, target, [torch.tensor(weights)[None] for weights in layers])


def test_parts_of_source_words_add_up_and_those_of_target_words_are_averaged():
    weights = torch.tensor([[0.3, 0.3, 0.4], [0.1, 0.1, 0.8], [0.2, 0.2, 0.6]])
    merged = by_words(weights, ["a@@", "b", "c"], ["x", "y@@", "z"])
    assert torch.allclose(merged, torch.tensor([[0.6, 0.4], [0.3, 0.7]]))


def test_sentencepiece_marks_where_words_begin():
    rows = [[0.3, 0.3, 0.4, 0.0]] * 2 + [[0.1, 0.1, 0.8, 0.0], [0.0, 0.0, 0.0, 1.0]]
    assert links(sentence(["▁a", "b", "▁c", END], ["▁x", "y", "▁z", END], rows), None, None) == [(0, 0), (1, 1)]


def test_a_word_that_begins_like_a_piece_of_sentencepiece():
    assert word_numbers("the o@@ l@@ d man ▁▁▁ sits".split()) == [0, 1, 1, 1, 2, 3, 4]


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


def test_empty_sentences_have_no_links():
    assert links(sentence([END], [END], [[1.0]]), None, None) == []
