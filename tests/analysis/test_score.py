"""Translations read, scored and tested against each other."""

import pytest
from sacrebleu import corpus_bleu

from lwc_fairseq.analysis.score import (
    Score,
    Translations,
    bleu,
    read_generated,
    read_hypotheses,
    read_lines,
    score,
    significance,
    with_references,
)
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


def test_scores_are_sacrebleus():
    hypotheses = [line.upper() for line in worse("cat")]
    cased, caseless = (score(Translations(hypotheses, [REFERENCES]), Score(lowercase=lower)) for lower in (False, True))
    expected = corpus_bleu(hypotheses, [REFERENCES], lowercase=True, tokenize="none", force=True).score
    assert caseless["bleu"] == pytest.approx(expected, abs=0.005)
    assert cased["bleu"] < 5 and "case:lc" in caseless["signature"] and caseless["length_ratio"] == 1.0


def test_more_references():
    translations = with_references(Translations(worse("cat"), [REFERENCES]), [worse("cat"), REFERENCES])
    assert score(translations, Score())["bleu"] == 100.0
    with pytest.raises(ValueError, match="--references: 1 lines for 18 translated sentences"):
        with_references(translations, [["one"]])


def test_lines_are_what_fairseq_counts(tmp_path):
    (tmp_path / "ref").write_bytes("a\u2028b\nc\u0085d\x0be\n".encode())
    assert read_lines(tmp_path / "ref") == ["a\u2028b", "c\u0085d\x0be"]


def test_an_unknown_tokenizer_is_refused():
    with pytest.raises(ValueError, match="score: tokenize: 13b: sacrebleu has"):
        bleu(Score(tokenize="13b"))


def test_significance():
    good, bad = Translations(REFERENCES, [REFERENCES]), Translations(worse("cat"), [REFERENCES])
    assert significance([bad], [good], Score()) < 0.05
    assert significance([good], [good], Score()) == 1
    others = (Translations(worse(words), [REFERENCES]) for words in ("x here", "y here"))
    assert significance(*([other] for other in others), Score()) > 0.05


def test_hypotheses_are_read_from_text_and_from_what_fairseq_prints(tmp_path):
    (tmp_path / "text").write_text("\n".join(worse("cat")) + "\n")
    (tmp_path / "printed").write_text(generated(worse("cat")))
    assert read_hypotheses(tmp_path / "text") == read_hypotheses(tmp_path / "printed") == worse("cat")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "empty").write_text("")
    (tmp_path / "latin").write_bytes(b"one\ntwo\xe4\n")
    for name, message in (("empty", "the file is empty"), ("latin", "line 2: not UTF-8"), ("none", "No such file")):
        with pytest.raises(ValueError, match=f"{name}.*{message}"):
            read_lines(tmp_path / name)
