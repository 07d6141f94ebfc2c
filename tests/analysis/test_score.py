"""Translations scored, and tested against each other."""

import pytest
from sacrebleu import corpus_bleu

from lwc_fairseq.analysis.translations import Score, Translations, bleu, score, significance, with_references
from sentences import REFERENCES, worse


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


def test_an_unknown_tokenizer_is_refused():
    with pytest.raises(ValueError, match="score: tokenize: 13b: sacrebleu has"):
        bleu(Score(tokenize="13b"))


def test_significance():
    good, bad = Translations(REFERENCES, [REFERENCES]), Translations(worse("cat"), [REFERENCES])
    assert significance([bad], [good], Score()) < 0.05
    assert significance([good], [good], Score()) == 1
    also_good = [Translations(hypotheses, [REFERENCES, worse("cat")]) for hypotheses in (REFERENCES, worse("cat"))]
    assert significance(also_good[:1], also_good[1:], Score()) == 1  # other words, equal scores
    others = (Translations(worse(words), [REFERENCES]) for words in ("x here", "y here"))
    assert significance(*([other] for other in others), Score()) > 0.05
    assert significance([bad, bad], [good, good], Score()) < 0.05
    assert significance([bad, good], [good, bad], Score()) > 0.5  # better with one seed, worse with the other


def test_seeds_are_tested_together():
    """A difference too small to tell with one seed is significant when other seeds have it, too."""
    baseline, system = (Translations(worse(words), [REFERENCES]) for words in ("cat", "big"))
    alone, together = (significance([baseline] * seeds, [system] * seeds, Score()) for seeds in (1, 4))
    assert together < 0.05 < alone
