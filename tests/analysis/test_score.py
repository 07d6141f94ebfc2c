"""Translations scored, and tested against each other."""

from itertools import combinations

import numpy as np
import pytest
from sacrebleu import corpus_bleu
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from lwc_fairseq.analysis.translations import (
    TESTS,
    Score,
    Translations,
    bleu,
    score,
    significance,
    with_references,
)
from lwc_fairseq_compat import UserError
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


@pytest.mark.parametrize("test", TESTS)
def test_significance(test):
    good, bad = Translations(REFERENCES, [REFERENCES]), Translations(worse("cat"), [REFERENCES])
    assert significance([bad], [good], Score(), test) < 0.05
    assert significance([good], [good], Score(), test) == 1
    also_good = [Translations(hypotheses, [REFERENCES, worse("cat")]) for hypotheses in (REFERENCES, worse("cat"))]
    assert significance(also_good[:1], also_good[1:], Score(), test) == 1  # other words, equal scores
    others = (Translations(worse(words), [REFERENCES]) for words in ("x here", "y here"))
    assert significance(*([other] for other in others), Score(), test) > 0.05
    assert significance([bad, bad], [good, good], Score(), test) < 0.05
    assert significance([bad, good], [good, bad], Score(), test) > 0.5  # better with one seed, worse with the other


def test_a_tokenizer_that_cannot_be_loaded_is_refused(monkeypatch):
    def load(*args, **kwargs):
        raise RuntimeError("Please install it\nby pip.")

    monkeypatch.setattr(BLEU, "__init__", load)
    with pytest.raises(UserError, match="score: tokenize: ja-mecab: Please install it by pip"):
        bleu(Score(tokenize="ja-mecab"))


@pytest.mark.parametrize("different", [1, 2, 4])
def test_p_counts_the_exchanges_that_change_nothing(different):
    """With k translations that differ, one in 2^(k-1) trials exchanges all of them or none. The others have another
    wrong word, which BLEU does not see."""
    also = [f"{line} y" if i >= different else line for i, line in enumerate(REFERENCES)]
    hypotheses = [f"{line} x" if i < different else f"{line[:-1]}z" for i, line in enumerate(also)]
    better, system = ([Translations(lines, [REFERENCES])] for lines in (also, hypotheses))
    assert significance(better, system, Score()) == pytest.approx(2.0 ** (1 - different), abs=1e-3)


@pytest.mark.parametrize("lines", [(3, 5), (2, 3, 4, 9)])
def test_p_of_a_few_sentences_is_nearly_exact(lines):
    """Against all exchanges, of which those count that change the difference to an equal or a larger one."""
    texts = [list(REFERENCES), list(REFERENCES)]
    for place, line in enumerate(lines):
        texts[place % 3 == 0][line] = "x " * (place + 1) + REFERENCES[line].split(maxsplit=1)[1]
    metric = bleu(Score())

    def difference(exchanged) -> float:
        pairs = [pair[::-1] if row in exchanged else pair for row, pair in enumerate(zip(*texts, strict=True))]
        first, second = (metric.corpus_score(list(text), [REFERENCES]).score for text in zip(*pairs, strict=True))
        return abs(first - second)

    choices = [set(chosen) for count in range(len(lines) + 1) for chosen in combinations(lines, count)]
    exact = np.mean([difference(chosen) >= difference(set()) - 1e-9 for chosen in choices])
    p = significance(*([Translations(text, [REFERENCES])] for text in texts), Score())
    assert p == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize("test", TESTS)
def test_seeds_are_tested_together(test):
    """A difference too small to tell with one seed is significant when other seeds have it, too."""
    baseline, system = (Translations(worse(words), [REFERENCES]) for words in ("old", "old cat"))
    alone, together = (significance([baseline] * seeds, [system] * seeds, Score(), test) for seeds in (1, 8))
    assert together < 0.05 < alone


@pytest.mark.parametrize(("test", "code"), [("randomization", "ar"), ("bootstrap", "bs")])
def test_p_is_sacrebleus(test, code):
    """It is the same whichever system is the baseline."""
    systems = [(words, worse(words)) for words in ("cat", "big")]
    _, scores = PairedTest(systems, {"BLEU": BLEU(tokenize="none", force=True)}, [REFERENCES], code)()
    cat, big = ([Translations(hypotheses, [REFERENCES])] for _, hypotheses in systems)
    p = significance(cat, big, Score(), test)
    assert p == pytest.approx(
        scores["BLEU"][1].p_value, abs=1e-2 if test == "randomization" else 0
    ) and p == significance(big, cat, Score(), test)


def test_the_bootstraps_p_is_one_sided():
    """p counts the samples far above the mean, and none below it: the system is better in every sample."""
    texts, metric = (worse("cat"), worse("old cat")), bleu(Score())
    samples = np.random.default_rng(12345).choice(len(REFERENCES), size=(1000, len(REFERENCES)))

    def difference(rows) -> float:
        references = [[REFERENCES[row] for row in rows]]
        first, second = (metric.corpus_score([text[row] for row in rows], references).score for text in texts)
        return second - first

    real, differences = difference(range(len(REFERENCES))), np.array([difference(rows) for rows in samples])
    above = (differences - differences.mean() > real).sum()
    assert differences.min() > 0
    p = significance(*([Translations(text, [REFERENCES])] for text in texts), Score(), "bootstrap")
    assert p == pytest.approx((above + 1) / 1001)
