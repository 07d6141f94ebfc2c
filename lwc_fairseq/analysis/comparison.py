"""Comparison of several systems' translations: scores, scores by source length and by frequency of words, repetition
and omission, errors at both ends, and the largest differences."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, cycle
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sacrebleu import sentence_chrf
from sacrebleu.metrics import CHRF, TER

from lwc_fairseq_compat import UserError

from ..pages import Section, as_markdown, p_value
from .adequacy import LEAST_PROBABILITY, at_the_ends, omission, repetition
from .fonts import fonts_for
from .frequency import DEFINITION, frequency_groups
from .translations import RANDOMIZATION, TESTS, Score, Translations, bleu, comet_scores, significance

if TYPE_CHECKING:
    from nltk.translate import AlignedSent

VARIANTS = {"BLEU": Score(), "BLEU, lower-cased": Score(lowercase=True), "BLEU, 13a": Score(tokenize="13a")}
"""Variants of BLEU: the papers' BLEU on tokenised text, with and without case, and BLEU with sacrebleu's tokenizer."""

GROUPS = (10, 20, 30, 40, 50)
"""The source lengths at which groups begin. Zhang, Xiong, Su (2018) use [0, 10), [10, 20), ..., [50, ∞)."""

DIFFERENCES = "Where they differ most"
WORST = "Where it is worst"

LINES = "Lines are numbered from 1: line 951 is H-950 in the output of fairseq-generate."

MOST_FREQUENT = 10
"""How many untranslated words of a system the text names."""


def check_name(name: str, what: str) -> None:
    """Raises UserError if a system cannot have this name on pages and pictures; `what` precedes it in the message."""
    if name in ("source", "reference"):  # they stand beside the systems
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
        """Raises UserError if :func:`check_name` refuses a name, or two files have different numbers of lines."""
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


@dataclass
class Comparison:
    """The result of :func:`compare`."""

    signatures: dict[str, str]
    scores: dict[str, dict[str, float]]  # by system, then by metric; and the length ratio, and p (not for the first)
    repetition: dict[str, dict[str, float]]  # as :func:`repetition` returns it
    ends: dict[str, dict[str, dict]]  # as :func:`at_the_ends` returns it
    omission: dict = field(default_factory=dict)  # as :func:`omission` returns it
    groups: list[dict] = field(default_factory=list)
    frequencies: list[dict] = field(default_factory=list)  # as :func:`frequency_groups` returns it
    parts: dict[str, dict[str, list[float]]] = field(default_factory=dict)  # by tags, then by system: BLEU-1 to BLEU-4
    differences: list[dict] = field(default_factory=list)  # of several systems
    worst: list[dict] = field(default_factory=list)  # the sentences of the only system


def compare(
    sentences: Sentences,
    bounds: Sequence[int] = GROUPS,
    differences: int = 10,
    ter: bool = False,
    comet_model: str | None = None,
    bitext: "list[AlignedSent] | None" = None,
    frequencies: Mapping[str, int] | None = None,
) -> Comparison:
    """Compare the systems in everything except parts of speech. Raises UserError if two files have different numbers of
    lines, or as :func:`comet_scores` and :func:`omission` do.

    Args:
        bounds: the source lengths at which groups begin. Groups need a source.
        differences: the number of sentences to return: those with the largest differences or, of one system, the
            worst.
        ter: also compute TER, the translation edit rate.
        comet_model: the model to compute COMET with, which needs a source.
        bitext: parallel text to estimate a lexicon from, for omission, which needs a source.
        frequencies: how often the training set has each word, to compute scores by frequency.
    """
    sentences.check()
    comet: dict[str, float] = {}
    if comet_model:  # first, because it may not be installed
        assert sentences.source is not None
        comet, signature = comet_scores(comet_model, sentences.systems, sentences.source, sentences.references[0])
    omitted = {}
    if bitext:
        assert sentences.source is not None
        omitted = omission(sentences.systems, sentences.references, sentences.source, bitext)
    repeated = repetition(sentences.systems, sentences.references)
    ends = at_the_ends(sentences.systems, sentences.references)
    metrics = {**{name: bleu(options) for name, options in VARIANTS.items()}, "chrF2": CHRF()}
    if ter:
        metrics["TER"] = TER()
    scores = {}
    for name, lines in sentences.systems.items():
        results = {metric: metrics[metric].corpus_score(lines, sentences.references) for metric in metrics}
        scores[name] = {metric: round(result.score, 2) for metric, result in results.items()}
        scores[name]["length ratio"] = round(results["BLEU"].ratio, 3)
    signatures = {name: str(metric.get_signature()) for name, metric in metrics.items()}
    first, *others = sentences.systems
    for name in others:
        baseline, system = (Translations(sentences.systems[key], sentences.references) for key in (first, name))
        scores[name]["p"] = significance([baseline], [system], Score())
    groups = length_groups(sentences, bounds) if sentences.source is not None else []
    rare = [] if frequencies is None else frequency_groups(sentences.systems, sentences.references, frequencies)
    largest = largest_differences(sentences, differences) if others else []
    worst = [] if others else worst_sentences(sentences, differences)
    if comet:
        signatures["COMET"] = signature
    for name, value in comet.items():
        scores[name]["COMET"] = value
    return Comparison(signatures, scores, repeated, ends, omitted, groups, rare, differences=largest, worst=worst)


def length_groups(sentences: Sentences, bounds: Sequence[int]) -> list[dict]:
    """Return BLEU and the mean length in words for each group of sentences. The source length determines the group."""
    lengths = [len(line.split()) for line in sentences.source or []]
    metric = bleu(Score())
    groups = []
    for low, high in zip([0, *bounds], [*bounds, None], strict=True):
        rows = [row for row, length in enumerate(lengths) if length >= low and (high is None or length < high)]
        if not rows:
            continue
        systems = {name: [lines[row] for row in rows] for name, lines in sentences.systems.items()}
        references = [[lines[row] for row in rows] for lines in sentences.references]
        scores = {name: round(metric.corpus_score(lines, references).score, 2) for name, lines in systems.items()}
        words = {name: mean_length(lines) for name, lines in systems.items()}
        group = {"from": low, "to": high, "sentences": len(rows), "bleu": scores, "length": words}
        groups.append({**group, "reference length": mean_length(references[0])})
    return groups


def mean_length(lines: list[str]) -> float:
    return round(sum(len(line.split()) for line in lines) / len(lines), 2)


def largest_differences(sentences: Sentences, number: int) -> list[dict]:
    """Return the sentences with the largest differences in sentence-level chrF2 between the systems."""

    def difference(entry: dict) -> float:
        return max(entry["chrf"].values()) - min(entry["chrf"].values())

    return sorted(filter(difference, scored(sentences)), key=difference, reverse=True)[:number]


def worst_sentences(sentences: Sentences, number: int) -> list[dict]:
    """Return the sentences with the lowest sentence-level chrF2 of the only system. That of an empty translation of an
    empty sentence is 0, but it is right, as is every translation that equals a reference."""
    (system,) = sentences.systems
    pairs = zip(scored(sentences), zip(*sentences.references, strict=True), strict=True)
    wrong = (entry for entry, references in pairs if entry["translations"][system] not in references)
    return sorted(wrong, key=lambda entry: entry["chrf"][system])[:number]


def scored(sentences: Sentences) -> Iterator[dict]:
    """Yield each sentence with its line, counted from 1, its translations and their sentence-level chrF2."""
    for row, references in enumerate(zip(*sentences.references, strict=True)):
        translations = {name: lines[row] for name, lines in sentences.systems.items()}
        chrf = {name: round(sentence_chrf(line, references).score, 1) for name, line in translations.items()}
        source = sentences.source[row] if sentences.source else None
        texts = {"source": source, "reference": references[0], "chrf": chrf, "translations": translations}
        yield {"line": row + 1, **texts}


def sections(comparison: Comparison) -> Iterator[Section]:
    """Yield what a comparison shows, except single sentences."""
    systems = list(comparison.scores)
    metrics = list(comparison.scores[systems[0]])
    rows = [["", *metrics, f"p, against {systems[0]}"]]
    for name, scores in comparison.scores.items():
        # COMET lies between 0 and 1, mostly.
        values = [f"{scores[metric]:.4f}" if metric == "COMET" else f"{scores[metric]:.2f}" for metric in metrics]
        rows.append([name, *values, p_value(scores["p"]) if "p" in scores else ""])
    signatures = [
        f"- {name}: `{signature}`" + ", lower is better" * (name == "TER")
        for name, signature in comparison.signatures.items()
    ]
    yield Section("", [rows, f"Scores: sacrebleu; p: {TESTS[RANDOMIZATION].title}.", *signatures])
    yield repetition_and_omission(comparison)
    yield at_the_ends_section(comparison.ends)
    if comparison.groups:
        yield length_section(comparison.groups)
    if comparison.frequencies:
        yield frequency_section(comparison.frequencies)
    for tags, precisions in comparison.parts.items():
        rows = [["", "BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4"]]
        rows += [[name, *(f"{value:.2f}" for value in values)] for name, values in precisions.items()]
        yield Section(f"Words tagged {tags}", [rows])


def length_section(groups: list[dict]) -> Section:
    systems = list(groups[0]["bleu"])
    columns = [f"BLEU, {name}" for name in systems] + [f"length, {name}" for name in [*systems, "reference"]]
    rows = [["words", "sentences", *columns]]
    for group in groups:
        values = [*group["bleu"].values(), *group["length"].values(), group["reference length"]]
        rows.append([group_name(group), f"{group['sentences']:,}", *(f"{value:.2f}" for value in values)])
    return Section("By source length", [rows], partial(make_groups_figure, groups))


def frequency_section(groups: list[dict]) -> Section:
    header = ["times in training", "words in references", *(f"F1, {name}" for name in groups[0]["f1"])]
    rows = [
        [group_name(group), f"{group['words']:,}", *(f"{value:.2f}" for value in group["f1"].values())]
        for group in groups
    ]
    return Section(
        "By frequency in the training set", [[header, *rows], DEFINITION], partial(make_frequencies_figure, groups)
    )


def repetition_and_omission(comparison: Comparison) -> Section:
    """Return the section on repetition and, if it was measured, omission."""
    first, omitted = next(iter(comparison.scores)), comparison.omission
    fewer_or_more = f"sentences with fewer / more than {first}"
    shares = ("repeated", "beyond references", "OTEM-2")
    rows = [["", "repeated 2-grams, %", "beyond the references, %", "OTEM-2", fewer_or_more]]
    rows += [
        [name, *(f"{measures[share]:.2f}" if share in measures else "" for share in shares), signs(measures)]
        for name, measures in comparison.repetition.items()
    ]
    parts: list[str | list[list[str]]] = [
        rows,
        "A 2-gram is repeated if its sentence has it before, and beyond the references if no reference has it as "
        "often. The last column counts the latter. OTEM-2, for over-translation: Yang et al. (2018), × 100. Lower is "
        "better.",
    ]
    if omitted:
        rows = [["", "untranslated words, %", fewer_or_more]]
        of_systems = omitted["systems"].items()
        rows += [[name, f"{measures['untranslated']:.2f}", signs(measures)] for name, measures in of_systems]
        parts += [
            rows,
            f"Of the source's {omitted['content words']:,} content words, those count that a reference translates: "
            f"{omitted['words to translate']:,}. A word is untranslated if the output has none of its translations in "
            f"IBM Model 1's lexicon (p ≥ {LEAST_PROBABILITY}). So wrong translations count, too.",
        ]
        for name, measures in of_systems:
            if words := measures["words"]:
                parts += [most_frequent(words), f"The words that {name} leaves untranslated most often. {LINES}"]
    return Section("Repetition and omission" if omitted else "Repetition", parts)


def at_the_ends_section(ends: dict[str, dict[str, dict]]) -> Section:
    first = next(iter(ends["first"]))
    fewer_or_more = f"sentences with fewer / more than {first}"
    rows = [["", "wrong of the first 4 words, %", fewer_or_more, "wrong of the last 4 words, %", fewer_or_more]]
    for name in ends["first"]:
        cells = [(f"{of_end[name]['wrong']:.2f}", signs(of_end[name])) for of_end in ends.values()]
        rows.append([name, *chain(*cells)])
    explanation = (
        "Of the first or last 4 words of a sentence, those are wrong that the reference does not have among its first "
        "or last 4 words. Missing words count, too. Their order does not count. Full stops are words. Lower is better."
    )
    return Section("At the ends of sentences", [rows, explanation])


def most_frequent(words: list[dict]) -> list[list[str]]:
    """Return a table of the words that are untranslated most often. `words` are those of :func:`.adequacy.omission`."""
    rows = [["word", "translations in the lexicon", "untranslated", "of", "lines"]]
    for entry in words[:MOST_FREQUENT]:
        lines = list(dict.fromkeys(entry["lines"]))
        shown = ", ".join(map(str, lines[:5])) + ", …" * (len(lines) > 5)
        counts = [str(len(entry["lines"])), str(entry["times"])]
        rows.append([entry["word"], ", ".join(entry["translations"]), *counts, shown])
    return rows


def markdown(comparison: Comparison) -> str:
    """Return a comparison as Markdown."""
    lines = [line for section in sections(comparison) for line in section.markdown()]
    if shown := comparison.differences or comparison.worst:
        lines += [f"## {DIFFERENCES if comparison.differences else WORST}", "", LINES, ""]
    for sentence in shown:
        texts = {"source": sentence["source"]} if sentence["source"] is not None else {}
        texts["reference"] = sentence["reference"]
        texts |= {f"{name} (chrF2 {sentence['chrf'][name]})": text for name, text in sentence["translations"].items()}
        lines += [f"Line {sentence['line']}", ""]
        lines += [*(f"- {as_markdown(name)}: {as_markdown(text)}" for name, text in texts.items()), ""]
    return "\n".join(lines)


def signs(measures: dict) -> str:
    return f"{measures['fewer']} / {measures['more']}" if "fewer" in measures else ""


def group_name(group: dict) -> str:
    low, high = group["from"], group["to"]
    return f"{low}+" if high is None else str(low) if high == low + 1 else f"{low}–{high - 1}"


def make_groups_figure(groups: list[dict]) -> Figure:
    """Plot BLEU and mean length over groups of source length, with one line per system."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    bleu_axes, length_axes = figure.subplots(1, 2)
    with fonts_for("".join(groups[0]["length"])):
        plot(bleu_axes, groups, "bleu", "words of the source", "BLEU")
        plot(length_axes, groups, "length", "words of the source", "words of the translation")
        x = [group_name(group) for group in groups]
        lengths = length_axes.plot(x, [group["reference length"] for group in groups], "k--", label="reference")
        length_axes.legend(handles=[*length_axes.get_legend().legend_handles, *lengths], fontsize=8)
    return figure


def make_frequencies_figure(groups: list[dict]) -> Figure:
    """Plot F1 of words over groups of frequency in the training set, with one line per system."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    with fonts_for("".join(groups[0]["f1"])):
        plot(figure.subplots(), groups, "f1", "times in the training set", "F1 of words")
    return figure


def plot(axes: Axes, groups: list[dict], what: str, x: str, y: str) -> None:
    """Plot one value of each group, with a line for each system. `x` and `y` are the titles of the axes."""
    named = []  # matplotlib itself leaves out labels that begin with _
    names = [group_name(group) for group in groups]
    for marker, name in zip(cycle("os^Dv<>p*"), groups[0][what], strict=False):
        named += axes.plot(names, [group[what][name] for group in groups], f"-{marker}", label=name)
    axes.set(xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    axes.legend(handles=named, fontsize=8)
