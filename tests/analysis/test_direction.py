"""The direction of a text."""

import pytest

from lwc_fairseq.analysis.attention import is_right_to_left
from lwc_fairseq.analysis.picture import embedded


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("סבא שלי בן 78 .", True),
        ("جدي عمره ( Bonn 123 ) .", True),
        ("Bonn هي مدينة في ألمانيا", True),  # the first letter does not decide
        ("My שלום friend", False),
        ("我 爷爷", False),
        ("12 .", False),
        ("", False),
    ],
)
def test_most_letters_decide(text, expected):
    assert is_right_to_left(text) == expected
    assert embedded(text) == (f"\u202b{text}\u202c" if expected else text)


def test_control_characters_which_no_svg_can_have():
    assert embedded("a\x01b") == "a\ufffdb"
