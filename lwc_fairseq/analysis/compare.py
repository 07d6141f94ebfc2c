"""Translations of several systems side by side: scores, length groups, parts of speech, and where they differ most."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import cycle
from pathlib import Path

from matplotlib.figure import Figure
from sacrebleu import sentence_chrf
from sacrebleu.metrics import BLEU, CHRF

from lwc_fairseq_compat import UserError

from ..files import write_whole
from ..markdown import table
from .score import Score, Translations, bleu, significance

VARIANTS = {
    "BLEU": Score(),
    "BLEU, lower-cased": Score(lowercase=True),
    "BLEU, 13a": Score(tokenize="13a"),
}
"""BLEU as the papers report it: of tokenised text, with or without case; and of text that sacrebleu tokenises."""

GROUPS = (10, 20, 30, 40, 50)
"""Source lengths at which the groups of Zhang, Xiong, Su (2018) begin: [0, 10), [10, 20), ..., [50, ∞)."""


@dataclass(frozen=True)
class Sentences:
    """What is compared, a line a sentence; the first system is the one that others are tested against."""

    systems: dict[str, list[str]]
    references: list[list[str]]
    source: list[str] | None = None

    def check(self) -> None:
        """Raises UserError if files do not match line by line; both are named."""
        named = {f"reference {i}": lines for i, lines in enumerate(self.references, 1)} | self.systems
        if self.source is not None:
            named["the source"] = self.source
        first, expected = next(iter(named)), len(next(iter(named.values())))
        for name, lines in named.items():
            if len(lines) != expected:
                raise UserError(
                    f"{name} has {len(lines)} lines, {first} has {expected}: give files of the same sentences"
                )

    def of(self, system: str, rows: Sequence[int] | None = None) -> Translations:
        """A system's translations, of some sentences only if `rows` is given."""
        rows = range(len(self.systems[system])) if rows is None else rows
        return Translations(
            [self.systems[system][row] for row in rows], [[lines[row] for row in rows] for lines in self.references]
        )


@dataclass
class Comparison:
    """What :func:`compare` finds."""

    signatures: dict[str, str]
    scores: dict[str, dict[str, float]]  # by system: every variant, chrF2, length ratio; p but for the first
    groups: list[dict] = field(default_factory=list)
    parts: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # by tags, then by system: BLEU-1 to 4
    differences: list[dict] = field(default_factory=list)


def compare(sentences: Sentences, bounds: Sequence[int] = GROUPS, differences: int = 10) -> Comparison:
    """All but the parts of speech.

    Args:
        bounds: source lengths at which groups begin; used if there is a source.
        differences: how many sentences to show.
    """
    sentences.check()
    metrics = {**{name: bleu(options) for name, options in VARIANTS.items()}, "chrF2": CHRF()}
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
    """BLEU and mean length in words of each group of sentences, by the number of words of the source."""
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
        group["length"]["reference"] = mean_length(sentences.references[0], rows)
        groups.append(group)
    return groups


def mean_length(lines: list[str], rows: list[int]) -> float:
    return round(sum(len(lines[row].split()) for row in rows) / len(rows), 2)


def part_of_speech_bleu(
    tags: Sequence[str], texts: dict[str, list[str]], tagged: dict[str, list[str]], reference: str
) -> dict[str, list[float]]:
    """BLEU-1 to BLEU-4 of the words with certain tags alone, as in Zhang, Xiong, Su (2018), Table 3.

    Args:
        tags: a word counts if its tag begins with one of these, as NNS does with NN.
        texts, tagged: the words, and a tag for each, of every system and of the reference, by name.
        reference: which of them that is.

    Raises:
        UserError: a line has not as many tags as words; it is named.
    """
    kept = {name: [keep(tags, *pair) for pair in pairs_of(name, texts[name], tagged[name])] for name in texts}
    against = [kept.pop(reference)]
    return {
        name: [
            round(BLEU(tokenize="none", force=True, max_ngram_order=n).corpus_score(lines, against).score, 2)
            for n in (1, 2, 3, 4)
        ]
        for name, lines in kept.items()
    }


def pairs_of(name: str, lines: list[str], tagged: list[str]) -> list[tuple[list[str], list[str]]]:
    """Words and tags of each line."""
    if len(lines) != len(tagged):
        raise UserError(f"{name}: {len(lines)} lines, but {len(tagged)} lines of tags")
    pairs = [(line.split(), tags.split()) for line, tags in zip(lines, tagged, strict=True)]
    for number, (words, tags) in enumerate(pairs, 1):
        if len(words) != len(tags):
            raise UserError(f"{name}, line {number}: {len(words)} words, but {len(tags)} tags")
    return pairs


def keep(tags: Sequence[str], words: list[str], of_words: list[str]) -> str:
    return " ".join(word for word, tag in zip(words, of_words, strict=True) if tag.startswith(tuple(tags)))


def largest_differences(sentences: Sentences, number: int) -> list[dict]:
    """The sentences on which sentence-level chrF2 of the systems lies furthest apart."""
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


def markdown(found: Comparison) -> str:
    """The comparison as a page."""
    first = next(iter(found.scores))
    columns = list(found.scores[first])
    test = f"p, against {first}"
    rows = [
        [name, *(f"{scores[column]:.2f}" for column in columns), f"{scores['p']:.3f}" if "p" in scores else ""]
        for name, scores in found.scores.items()
    ]
    lines = table(["", *columns, test], rows)
    lines += ["", "sacrebleu; p: paired bootstrap of BLEU, 1,000 samples.", ""]
    lines += [f"- {name}: `{signature}`" for name, signature in found.signatures.items()]
    lines += groups_page(found) + parts_page(found) + differences_page(found)
    return "\n".join([*lines, ""])


def groups_page(found: Comparison) -> list[str]:
    if not found.groups:
        return []
    names = list(found.scores)
    lengths = [*names, "reference"]
    lines = ["", "## By source length", ""]
    header = ["words", "sentences", *(f"BLEU, {name}" for name in names), *(f"length, {name}" for name in lengths)]
    rows = []
    for group in found.groups:
        values = [group["bleu"][name] for name in names] + [group["length"][name] for name in lengths]
        rows.append([group_name(group), str(group["sentences"]), *(f"{value:.2f}" for value in values)])
    return [*lines, *table(header, rows)]


def group_name(group: dict) -> str:
    return f"{group['from']}+" if group["to"] is None else f"{group['from']}–{group['to'] - 1}"


def parts_page(found: Comparison) -> list[str]:
    lines = []
    for tags, scores in found.parts.items():
        rows = [[name, *(f"{value:.2f}" for value in values)] for name, values in scores.items()]
        header = ["", "BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4"]
        lines += ["", f"## Words tagged {tags}", "", *table(header, rows)]
    return lines


def differences_page(found: Comparison) -> list[str]:
    lines = ["", "## Where they differ most"] if found.differences else []
    for one in found.differences:
        lines += ["", f"Line {one['line']}", "", *([f"- source: {one['source']}"] if one["source"] else [])]
        lines += [f"- reference: {one['reference']}"]
        lines += [f"- {name} (chrF2 {one['chrf'][name]}): {text}" for name, text in one["translations"].items()]
    return lines


def write(found: Comparison, out: Path) -> list[Path]:
    """compare.md, compare.json and, with groups, lengths.png; returns what was written."""
    write_whole(out / "compare.md", markdown(found))
    write_whole(out / "compare.json", json.dumps(asdict(found), indent=1, ensure_ascii=False))
    written = [out / "compare.md", out / "compare.json"]
    if found.groups:
        make_groups_figure(found.groups).savefig(out / "lengths.png", dpi=150)
        written.append(out / "lengths.png")
    return written


def make_groups_figure(groups: list[dict]) -> Figure:
    """BLEU and mean length over groups of source length, a line for each system."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    x = [group_name(group) for group in groups]
    titles = {"bleu": "BLEU", "length": "words of the translation"}
    for axes, (what, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        for marker, name in zip(cycle("os^Dv<>p*"), groups[0][what], strict=False):
            y = [group[what][name] for group in groups]
            axes.plot(x, y, "k--" if name == "reference" else f"-{marker}", label=name)
        axes.set(xlabel="words of the source", ylabel=title)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    return figure
