"""Comparison of several systems' translations: scores, scores by source length, and the largest differences."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sacrebleu import sentence_chrf
from sacrebleu.metrics import CHRF, TER

from lwc_fairseq_compat import UserError

from .score import Score, bleu, significance
from .translations import Translations

VARIANTS = {
    "BLEU": Score(),
    "BLEU, lower-cased": Score(lowercase=True),
    "BLEU, 13a": Score(tokenize="13a"),
}
"""Variants of BLEU: the papers' BLEU on tokenised text, with and without case, and BLEU with sacrebleu's tokenizer."""

GROUPS = (10, 20, 30, 40, 50)
"""The source lengths at which groups begin. Zhang, Xiong, Su (2018) use [0, 10), [10, 20), ..., [50, ∞)."""


OTHERS = ("source", "reference")
"""Names that stand beside those of the systems on pages and pictures."""


def check_name(name: str, what: str) -> None:
    """Raises UserError if a system cannot have this name on pages and pictures.

    Args:
        what: what precedes the name in the message.
    """
    if name in OTHERS:
        raise UserError(f"{what} {name}, as the {name} itself is called on pages: give another name")
    if name.splitlines() != [name] or "\t" in name or not name.strip():
        raise UserError(f"{what} {name!r}: give a name without tabs and line breaks")


@dataclass(frozen=True)
class Sentences:
    """The lines to compare, one per sentence. Significance tests compare the first system with each other system."""

    systems: dict[str, list[str]]
    references: list[list[str]]
    source: list[str] | None = None

    def check(self) -> None:
        """Raises UserError if a name would be lost beside another, or two files have different numbers of lines."""
        for name in self.systems:
            check_name(name, "a system is called")
        named = [(f"reference {i}", lines) for i, lines in enumerate(self.references, 1)] + [*self.systems.items()]
        if self.source is not None:
            named.append(("the source", self.source))
        first, expected = named[0][0], len(named[0][1])
        for name, lines in named:
            if len(lines) != expected:
                raise UserError(
                    f"{name} has {len(lines)} lines, {first} has {expected}: give files of the same sentences"
                )

    def of(self, system: str, rows: Sequence[int] | None = None) -> Translations:
        """Return a system's translations of all sentences, or of the sentences in `rows`."""
        rows = range(len(self.systems[system])) if rows is None else rows
        return Translations(
            [self.systems[system][row] for row in rows], [[lines[row] for row in rows] for lines in self.references]
        )


@dataclass
class Comparison:
    """The result of :func:`compare`."""

    signatures: dict[str, str]
    scores: dict[str, dict[str, float]]  # by system, then by metric; and the length ratio, and p (not for the first)
    groups: list[dict] = field(default_factory=list)
    parts: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # by tags, then by system: BLEU-1 to BLEU-4
    differences: list[dict] = field(default_factory=list)


def compare(
    sentences: Sentences, bounds: Sequence[int] = GROUPS, differences: int = 10, ter: bool = False
) -> Comparison:
    """Compare the systems in everything except COMET and parts of speech.

    Args:
        bounds: the source lengths at which groups begin. Groups need a source.
        differences: the number of sentences with the largest differences to return.
        ter: also compute TER, the translation edit rate.

    Raises:
        UserError: two files have different numbers of lines.
    """
    sentences.check()
    metrics = {**{name: bleu(options) for name, options in VARIANTS.items()}, "chrF2": CHRF()}
    if ter:
        metrics["TER"] = TER()
    scores = {}
    for name in sentences.systems:
        found = sentences.of(name)
        results = {variant: metrics[variant].corpus_score(found.hypotheses, found.references) for variant in metrics}
        scores[name] = {variant: round(result.score, 2) for variant, result in results.items()}
        scores[name]["length ratio"] = round(results["BLEU"].ratio, 3)
    first, *others = sentences.systems
    for name in others:
        scores[name]["p"] = significance([sentences.of(first)], [sentences.of(name)], Score())
    return Comparison(
        signatures={variant: str(metric.get_signature()) for variant, metric in metrics.items()},
        scores=scores,
        groups=length_groups(sentences, bounds) if sentences.source is not None else [],
        differences=largest_differences(sentences, differences) if others else [],
    )


def corpus_bleu(found: Translations, options: Score) -> float:
    return round(bleu(options).corpus_score(found.hypotheses, found.references).score, 2)


def length_groups(sentences: Sentences, bounds: Sequence[int]) -> list[dict]:
    """Return BLEU and the mean length in words for each group of sentences. The source length determines the group."""
    lengths = [len(line.split()) for line in sentences.source or []]
    groups = []
    for low, high in zip([0, *bounds], [*bounds, None], strict=True):
        rows = [row for row, length in enumerate(lengths) if length >= low and (high is None or length < high)]
        if not rows:
            continue
        group = {"from": low, "to": high, "sentences": len(rows), "bleu": {}, "length": {}}
        for name, lines in sentences.systems.items():
            group["bleu"][name] = corpus_bleu(sentences.of(name, rows), Score())
            group["length"][name] = mean_length(lines, rows)
        group["reference length"] = mean_length(sentences.references[0], rows)
        groups.append(group)
    return groups


def mean_length(lines: list[str], rows: list[int]) -> float:
    return round(sum(len(lines[row].split()) for row in rows) / len(rows), 2)


def largest_differences(sentences: Sentences, number: int) -> list[dict]:
    """Return the sentences with the largest differences in sentence-level chrF2 between the systems."""
    rows = []
    for row in range(len(sentences.references[0])):
        references = [lines[row] for lines in sentences.references]
        chrf = {
            name: round(sentence_chrf(lines[row], references).score, 1) for name, lines in sentences.systems.items()
        }
        rows.append((max(chrf.values()) - min(chrf.values()), row, chrf))
    rows.sort(key=lambda entry: -entry[0])
    return [
        {
            "line": row + 1,
            "source": sentences.source[row] if sentences.source else None,
            "reference": sentences.references[0][row],
            "chrf": chrf,
            "translations": {name: lines[row] for name, lines in sentences.systems.items()},
        }
        for spread, row, chrf in rows[:number]
        if spread > 0
    ]
