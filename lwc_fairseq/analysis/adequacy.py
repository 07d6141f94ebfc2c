"""What a translation says too often, what it leaves out of the source, and how well it begins and ends."""

import html
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from math import exp, sqrt
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from lwc_fairseq_compat import UserError

from ..files import read_lines

if TYPE_CHECKING:
    from nltk.translate import AlignedSent

INSTALL_NLTK = "pip install '.[lexicon]'"

ITERATIONS = 5
"""Iterations of IBM Model 1."""

FREQUENT = 50
"""The number of the most frequent types of the source language, which are no content words."""

LEAST_PROBABILITY = 0.1
"""The least probability of a translation. Many less probable words are function words."""

ENDS = {"first": slice(0, 4), "last": slice(-4, None)}
"""The words at the ends of a sentence. Decoders that read in one direction are compared by four words of each end."""

Lexicon = dict[str, set[str]]
"""The translations of each content word of the source language."""


def repetitions(line: str, references: Sequence[str], n: int) -> int:
    """Return how many n-grams of a sentence are repetitions that no reference has:

        Σ_g max(0, c(g) − max(1, r_1(g), ..., r_K(g)))

    c(g) is the number of times that the sentence has the n-gram g, and r_k(g) that of reference k. Without references,
    each occurrence of an n-gram after its first is a repetition.
    """
    most = reduce(or_, (ngrams(reference, n) for reference in references), Counter[tuple[str, ...]]())
    return sum(max(0, count - max(1, most[ngram])) for ngram, count in ngrams(line, n).items())


def ngrams(line: str, n: int) -> Counter[tuple[str, ...]]:
    words = line.split()
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))


def share_repeated(lines: Sequence[str], references: Sequence[Sequence[str]], n: int) -> float:
    """Return the :func:`repetitions` of all sentences as a percentage of their n-grams.

    Args:
        references: the references of each sentence.
    """
    repeated = sum(repetitions(line, of_line, n) for line, of_line in zip(lines, references, strict=True))
    return 100 * repeated / max(1, sum(ngrams(line, n).total() for line in lines))


def otem(lines: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Return OTEM-2, a metric of over-translation, times 100; lower is better (Yang, Zhang, Qin, Zhang, Lin, Su,
    *Otem&Utem: Over- and Under-Translation Evaluation Metric for NMT*, NLPCC 2018):

        LP · √(o_1 · o_2),   LP = exp(1 − R / C) if C > R, and 1 otherwise

    o_n is the :func:`share_repeated` of n-grams, without the factor of 100. C is the number of words of all sentences,
    and R that of their references; of several, the one of the closest length counts. With one reference, this is the
    result of the authors' script. With several, the script also counts an n-gram that one of them has as often as the
    translation, if another has it less often.

    Args:
        references: the references of each sentence.
    """
    words = [len(line.split()) for line in lines]
    closest = 0
    for length, of_line in zip(words, references, strict=True):
        closest += min((len(line.split()) for line in of_line), key=lambda other: (abs(other - length), other))
    penalty = exp(1 - closest / sum(words)) if sum(words) > closest else 1.0
    return penalty * sqrt(share_repeated(lines, references, 1) * share_repeated(lines, references, 2))


def read_bitext(source: Path, target: Path) -> "list[AlignedSent]":
    """Read the parallel text that a lexicon is estimated from. Raises UserError if a file cannot be read or is empty,
    the files have different numbers of lines, or NLTK is not installed."""
    sources, targets = read_lines(source), read_lines(target)
    if len(sources) != len(targets):
        lines = f"{source} has {len(sources)} lines, {target} has {len(targets)}"
        raise UserError(f"--lexicon: {lines}: give files of the same sentences")
    try:
        from nltk.translate import AlignedSent
    except ImportError as error:
        raise UserError(f"--lexicon: {error}; install NLTK with: {INSTALL_NLTK}") from error
    return [AlignedSent(line.split(), of_line.split()) for of_line, line in zip(sources, targets, strict=True)]


def estimate_lexicon(bitext: "list[AlignedSent]") -> Lexicon:
    """Return the translations of the content words of a parallel text:

        T(s) = {t : p(t | s) ≥ 0.1}

    p is that of IBM Model 1 after five iterations (Brown et al., *The Mathematics of Statistical Machine Translation*,
    1993), by NLTK. A content word is a word of the source language that holds a letter and is not among the 50
    most frequent ones.
    """
    from nltk.translate import IBMModel1

    model = IBMModel1(bitext, 0)
    for iteration in range(1, ITERATIONS + 1):
        model.train(
            tqdm(bitext, f"lexicon, iteration {iteration} of {ITERATIONS}", unit=" pairs", mininterval=1, leave=False)
        )
    frequent = Counter(word for pair in bitext for word in pair.mots).most_common(FREQUENT)
    no_content = {None, *(word for word, _ in frequent)}
    lexicon: Lexicon = {}
    for translation, probabilities in model.translation_table.items():
        for word, probability in probabilities.items():
            if probability >= LEAST_PROBABILITY and word not in no_content and has_letter(word):
                lexicon.setdefault(word, set()).add(translation)
    return lexicon


def has_letter(word: str) -> bool:
    """Return whether a word holds a letter. Moses' tokenizer writes a quotation mark as `&quot;`, which holds none."""
    return any(character.isalpha() for character in html.unescape(word))


def words_to_translate(source: Sequence[str], references: Sequence[Sequence[str]], lexicon: Lexicon) -> list[list[str]]:
    """Return the words of each source sentence that have a translation in one of its references.

    Args:
        references: the references of each sentence.
    """
    expected = []
    for line, of_line in zip(source, references, strict=True):
        words = {word for reference in of_line for word in reference.split()}
        expected.append([word for word in line.split() if not lexicon.get(word, set()).isdisjoint(words)])
    return expected


def untranslated(lines: Sequence[str], expected: Sequence[Sequence[str]], lexicon: Lexicon) -> list[list[str]]:
    """Return the untranslated words of each sentence i:

        {s ∈ S_i : T(s) ∩ H_i = ∅}

    H_i are the words of the translation, S_i those of the source that :func:`words_to_translate` returns, and T(s) the
    translations of s in the lexicon. Wrong translations count, and right ones that the lexicon lacks.

    As a percentage of the words of all S_i, their number is like the DROP-score of Malaviya, Ferreira, Martins
    (*Sparse and Constrained Attention for Neural Machine Translation*, ACL 2018). Theirs is the percentage of the
    source words aligned with the reference that are not aligned with the translation. Here a lexicon replaces their
    alignments.
    """
    return [
        [word for word in words if lexicon[word].isdisjoint(line.split())]
        for line, words in zip(lines, expected, strict=True)
    ]


def repetition(systems: dict[str, list[str]], references: list[list[str]]) -> dict[str, dict[str, float]]:
    """Return for each system its :func:`share_repeated` of 2-grams without references (`repeated`) and with them
    (`beyond references`), its :func:`otem`, and the numbers of sentences with fewer and more :func:`repetitions` than
    the first system has. `reference` has the share of the first reference: human translations repeat 2-grams, too."""
    of_lines = list(zip(*references, strict=True))
    nothing: list[Sequence[str]] = [()] * len(of_lines)
    counts = {
        name: [repetitions(line, of_line, 2) for line, of_line in zip(lines, of_lines, strict=True)]
        for name, lines in systems.items()
    }
    differences = fewer_and_more(counts)
    of_systems: dict[str, dict[str, float]] = {}
    for name, lines in systems.items():
        shares = {
            "repeated": share_repeated(lines, nothing, 2),
            "beyond references": share_repeated(lines, of_lines, 2),
            "OTEM-2": otem(lines, of_lines),
        }
        of_systems[name] = {key: round(value, 2) for key, value in shares.items()} | differences[name]
    of_systems["reference"] = {"repeated": round(share_repeated(references[0], nothing, 2), 2)}
    return of_systems


def omission(
    systems: dict[str, list[str]], references: list[list[str]], source: list[str], bitext: "list[AlignedSent]"
) -> dict:
    """Return how many words of the source the lexicon has, and how many of them are :func:`words_to_translate`.

    Each system has an entry beside these numbers. It holds the percentage of the words to translate that is
    :func:`untranslated`, and these words as :func:`by_word` returns them. It also counts the sentences in which the
    system leaves fewer words untranslated than the first system, and those in which it leaves more.

    Raises:
        UserError: there are no words to translate.
    """
    lexicon = estimate_lexicon(bitext)
    expected = words_to_translate(source, list(zip(*references, strict=True)), lexicon)
    words = sum(map(len, expected))
    if not words:
        raise UserError(
            "--lexicon: no reference has a translation of a content word of the source: give training text of the same "
            "languages, tokenised and cased as the files of --src and --ref"
        )
    missing = {name: untranslated(lines, expected, lexicon) for name, lines in systems.items()}
    counts = {name: [len(of_line) for of_line in of_lines] for name, of_lines in missing.items()}
    differences = fewer_and_more(counts)
    of_systems = {
        name: {
            "untranslated": round(100 * sum(counts[name]) / words, 2),
            **differences[name],
            "words": by_word(of_lines, expected, lexicon),
        }
        for name, of_lines in missing.items()
    }
    content_words = sum(word in lexicon for line in source for word in line.split())
    return {"content words": content_words, "words to translate": words, "systems": of_systems}


def by_word(missing: list[list[str]], expected: list[list[str]], lexicon: Lexicon) -> list[dict]:
    """Return for each untranslated word its translations in the lexicon, how often it is to be translated, and the
    lines in which it is untranslated, counted from 1; a line in which it is so twice is there twice. The words that are
    untranslated most often come first.

    Args:
        missing, expected: the words of each sentence that are :func:`untranslated`, and all :func:`words_to_translate`.
    """
    lines: dict[str, list[int]] = {}
    for line, words in enumerate(missing, 1):
        for word in words:
            lines.setdefault(word, []).append(line)
    times = Counter(word for words in expected for word in words)
    entries = [
        {"word": word, "translations": sorted(lexicon[word]), "times": times[word], "lines": of_word}
        for word, of_word in lines.items()
    ]
    return sorted(entries, key=lambda entry: -len(entry["lines"]))  # those of equal number in the order of their lines


def wrong_words(line: str, references: Sequence[str], part: slice) -> tuple[int, int]:
    """Return how many words of a part of a sentence are wrong, and of how many:

        max(|h|, |r|) − |h ∩ r|   of   max(|h|, |r|)

    h and r are the bags of words of this part of the translation and of a reference. Of several references, the one
    with the smallest share of wrong words counts.
    """
    words = Counter(line.split()[part])
    pairs = []
    for reference in references:
        expected = Counter(reference.split()[part])
        longer = max(words.total(), expected.total())
        pairs.append((longer - (words & expected).total(), longer))
    return min(pairs, key=lambda pair: pair[0] / max(1, pair[1]))


def at_the_ends(systems: dict[str, list[str]], references: list[list[str]]) -> dict[str, dict[str, dict]]:
    """Return for both :data:`ENDS` of the sentences, and for each system, the percentage of :func:`wrong_words` there,
    and the numbers of sentences with fewer and more of them than the first system has."""
    of_lines = list(zip(*references, strict=True))
    ends: dict[str, dict[str, dict]] = {}
    for end, part in ENDS.items():
        pairs = {
            name: [wrong_words(line, of_line, part) for line, of_line in zip(lines, of_lines, strict=True)]
            for name, lines in systems.items()
        }
        differences = fewer_and_more({name: [wrong for wrong, _ in of_name] for name, of_name in pairs.items()})
        ends[end] = {}
        for name, of_name in pairs.items():
            wrong, words = map(sum, zip(*of_name, strict=True))
            ends[end][name] = {"wrong": round(100 * wrong / max(1, words), 2), **differences[name]}
    return ends


def fewer_and_more(counts: dict[str, list[int]]) -> dict[str, dict[str, int]]:
    """Return for each system but the first in how many sentences its count is less than the first system's (`fewer`),
    and in how many it is greater (`more`)."""
    first, *others = counts
    differences: dict[str, dict[str, int]] = {first: {}}
    for name in others:
        pairs = list(zip(counts[name], counts[first], strict=True))
        differences[name] = {"fewer": sum(a < b for a, b in pairs), "more": sum(a > b for a, b in pairs)}
    return differences
