"""Scores of translations and significance tests, with sacrebleu."""

from dataclasses import dataclass
from itertools import chain

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
    """Return p of sacrebleu's approximate randomization test on BLEU, two-sided, with 10,000 trials.

    A trial exchanges the translations of the two systems, with probability 1/2 for each sentence of each seed. p is the
    share of trials whose difference exceeds the real one. BLEU is that of the sentences of all seeds together, as in
    Clark et al., *Better Hypothesis Testing for Statistical Machine Translation: Controlling for Optimizer
    Instability*, ACL 2011.

    Args:
        baseline, system: the translations of each seed, in the same order of seeds.
    """
    hypotheses = [list(chain(*(one.hypotheses for one in seeds))) for seeds in (baseline, system)]
    if hypotheses[0] == hypotheses[1]:
        return 1.0  # sacrebleu returns 1/10,001, because no trial's difference exceeds 0
    references = [list(chain(*lines)) for lines in zip(*(one.references for one in baseline), strict=True)]
    systems = list(zip(("baseline", "system"), hypotheses, strict=True))
    test = PairedTest(systems, {"BLEU": bleu(options)}, references, test_type="ar")
    _, scores = test()
    return scores["BLEU"][1].p_value
