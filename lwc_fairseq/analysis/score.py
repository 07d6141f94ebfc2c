"""Scores of translations and significance tests, with sacrebleu."""

from dataclasses import dataclass
from statistics import median

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from lwc_fairseq_compat import UserError

from .translations import Translations


@dataclass
class Score:
    """sacrebleu's options. The papers' data are tokenised, so sacrebleu does not tokenise by default."""

    tokenize: str = "none"
    lowercase: bool = False


def bleu(options: Score) -> BLEU:
    """Return sacrebleu's BLEU metric.

    Raises:
        UserError: sacrebleu has no such tokenizer.
    """
    if options.tokenize not in BLEU.TOKENIZERS:
        raise UserError(f"score: tokenize: {options.tokenize}: sacrebleu has {', '.join(BLEU.TOKENIZERS)}")
    return BLEU(tokenize=options.tokenize, lowercase=options.lowercase, force=True)


def score(translations: Translations, options: Score) -> dict:
    """Return BLEU and chrF2, their signatures, and the number of translated words divided by the number of reference
    words."""
    metric, chrf = bleu(options), CHRF()
    result = metric.corpus_score(translations.hypotheses, translations.references)
    return {
        "bleu": round(result.score, 2),
        "signature": str(metric.get_signature()),
        "chrf": round(chrf.corpus_score(translations.hypotheses, translations.references).score, 2),
        "chrf_signature": str(chrf.get_signature()),
        "length_ratio": round(result.ratio, 3),
    }


def significance(baseline: list[Translations], system: list[Translations], options: Score) -> float:
    """Return p of sacrebleu's paired bootstrap test on BLEU, the median over seeds.

    If the system is better than the baseline with one seed and worse with another, p is 1.

    Args:
        baseline, system: the translations of each seed.
    """
    values, differences = [], []
    for one, other in zip(baseline, system, strict=False):
        if one.hypotheses == other.hypotheses:
            values.append(1.0)  # sacrebleu returns 0.001, because no resampled difference exceeds 0
            continue
        test = PairedTest(
            [("baseline", one.hypotheses), ("system", other.hypotheses)],
            {"BLEU": bleu(options)},
            one.references,
            test_type="bs",
            n_samples=1000,
        )
        _, scores = test()
        values.append(scores["BLEU"][1].p_value)
        differences.append(scores["BLEU"][1].score - scores["BLEU"][0].score)
    disagree = any(difference < 0 for difference in differences) and any(difference > 0 for difference in differences)
    return 1.0 if disagree else median(values)
