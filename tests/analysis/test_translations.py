"""Translations read from files."""

import pytest

from lwc_fairseq.analysis.translations import read_generated, read_hypotheses
from sentences import REFERENCES, generated, worse


def test_the_best_hypotheses_are_read_in_order(tmp_path):
    (tmp_path / "out").write_text(generated(worse("cat")))
    found = read_generated(tmp_path / "out")
    assert found.hypotheses == worse("cat") and found.references == [REFERENCES]


@pytest.mark.parametrize(
    "text", ["", generated(REFERENCES).rpartition("Generate")[0], "H-0\t-1\thello\nGenerate test\n"]
)
def test_half_an_output_is_refused(tmp_path, text):
    (tmp_path / "out").write_text(text)
    with pytest.raises(ValueError, match="not the whole output of fairseq-generate; remove it and run the row again"):
        read_generated(tmp_path / "out")


def test_a_set_with_missing_sentences_is_refused(tmp_path):
    lines = generated(REFERENCES).splitlines(keepends=True)
    (tmp_path / "out").write_text("".join(line for line in lines if not line[2:].startswith("7\t")))
    with pytest.raises(ValueError, match="1 of the sentences 0 to 17 are missing: translate the whole set"):
        read_generated(tmp_path / "out")


def test_hypotheses_are_read_from_text_and_from_what_fairseq_prints(tmp_path):
    (tmp_path / "text").write_text("\n".join(worse("cat")) + "\n")
    (tmp_path / "printed").write_text(generated(worse("cat")))
    assert read_hypotheses(tmp_path / "text") == read_hypotheses(tmp_path / "printed") == worse("cat")
