"""The alignment error rate, computed by hand."""

import pytest

from lwc_fairseq.analysis.alignment import ErrorRate, Gold, error_rate


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
