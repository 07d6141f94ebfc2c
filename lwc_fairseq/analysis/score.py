"""Translations, and sacrebleu's scores of them."""

import re
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from lwc_fairseq_compat import UserError

from ..files import read_lines


@dataclass
class Score:
    """sacrebleu's options. Data of the papers are tokenised, so by default it tokenises nothing itself."""

    tokenize: str = "none"
    lowercase: bool = False


@dataclass(frozen=True)
class Translations:
    """The sentences of a test set, in its order."""

    hypotheses: list[str]
    references: list[list[str]]  # one list for each reference translation
    source: list[str] | None = None


def read_generated(path: Path) -> Translations:
    """The source (S-), the best hypothesis (H-) and the reference (T-) of each sentence in fairseq-generate's output.

    Raises:
        UserError: the output is not complete.
    """
    kinds: dict[str, dict[int, str]] = {"S": {}, "H": {}, "T": {}}
    line = ""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            kind, dash, rest = line.partition("-")
            number, tab, fields = rest.rstrip("\n").partition("\t")
            if dash and kind in kinds and tab:
                kinds[kind].setdefault(int(number), fields.rpartition("\t")[2])  # after the score, if there is one
    sources, hypotheses, references = kinds.values()
    whole = line.startswith("Generate ") and sources.keys() == hypotheses.keys() == references.keys()
    if not whole or not hypotheses:
        raise UserError(f"{path}: not the whole output of fairseq-generate; remove it and run the row again")
    ordered = [[lines[number] for number in sorted(lines)] for lines in (hypotheses, references, sources)]
    return Translations(ordered[0], [ordered[1]], ordered[2])


def read_hypotheses(path: Path) -> list[str]:
    """Translations, a line a sentence, from a text file or from the output of fairseq-generate or fairseq-interactive.

    Raises:
        UserError: the file cannot be read, or is empty.
    """
    lines = read_lines(path)
    found: dict[int, str] = {}
    for line in lines:
        if match := re.match(r"H-(\d+)\t\S+\t(.*)", line):
            found.setdefault(int(match[1]), match[2])
    return [found[number] for number in sorted(found)] or lines


def with_references(translations: Translations, references: list[list[str]]) -> Translations:
    """The same hypotheses against other references."""
    for reference in references:
        if len(reference) != len(translations.hypotheses):
            raise UserError(
                f"--references: {len(reference)} lines for {len(translations.hypotheses)} translated sentences: give "
                "files that match the test set line by line"
            )
    return Translations(translations.hypotheses, references)


def bleu(options: Score) -> BLEU:
    """sacrebleu's metric.

    Raises:
        UserError: it has no such tokenizer.
    """
    if options.tokenize not in BLEU.TOKENIZERS:
        raise UserError(f"score: tokenize: {options.tokenize}: sacrebleu has {', '.join(BLEU.TOKENIZERS)}")
    return BLEU(tokenize=options.tokenize, lowercase=options.lowercase, force=True)


def score(translations: Translations, options: Score) -> dict:
    """BLEU, its signature, chrF2, and the length of the translation over the reference's, in words."""
    metric = bleu(options)
    result = metric.corpus_score(translations.hypotheses, translations.references)
    return {
        "bleu": round(result.score, 2),
        "signature": str(metric.get_signature()),
        "chrf": round(CHRF().corpus_score(translations.hypotheses, translations.references).score, 2),
        "length_ratio": round(result.ratio, 3),
    }


def significance(baseline: list[Translations], system: list[Translations], options: Score) -> float:
    """p of sacrebleu's paired bootstrap test on BLEU, the median over seeds."""
    values = []
    for one, other in zip(baseline, system, strict=False):
        if one.hypotheses == other.hypotheses:
            values.append(1.0)  # sacrebleu counts differences above the observed one, of which there are none
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
    return median(values)
