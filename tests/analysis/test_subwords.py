"""Sub-words are joined to words, and words split into sub-words."""

import pytest

from lwc_fairseq.analysis.attention import join, word_numbers
from lwc_fairseq.preparation import make_subwords


@pytest.mark.parametrize(
    ("tokens", "numbers", "words"),
    [
        ("a@@ b c d@@ e@@ f", [0, 0, 1, 2, 2, 2], "ab c def"),
        ("▁a b ▁c ▁d e f", [0, 0, 1, 2, 2, 2], "ab c def"),
        ("▁ a b ▁c", [0, 0, 0, 1], "ab c"),  # sentencepiece may split off the mark
        ("a ▁b", [0, 1], "a b"),  # without a mark before the first word
        ("▁我 喜欢 你", [0, 0, 0], "我喜欢你"),
        ("a", [0], "a"),
        ("", [], ""),
    ],
)
def test_words_of_sub_words(tokens, numbers, words):
    assert word_numbers(tokens.split()) == numbers and join(tokens.split()) == words


def test_a_sentencepiece_model_splits_and_the_words_come_back(tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece")
    text = [f"{a}{b} {b}{a} {a}{a}" for a in "bdfgk" for b in "aeio"]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(text), model_prefix=str(tmp_path / "m"), vocab_size=20, minloglevel=2
    )
    pieces = make_subwords("sentencepiece", str(tmp_path / "m.model")).encode("ba ab").split()
    assert pieces[0].startswith("▁") and len(pieces) > 2 and join(pieces) == "ba ab"
