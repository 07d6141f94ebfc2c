"""The translations of a test set, and the files that contain them."""

import re
from dataclasses import dataclass
from pathlib import Path

from lwc_fairseq_compat import UserError

from ..files import read_lines


@dataclass(frozen=True)
class Translations:
    """The translations, references and sources of a test set, in its order."""

    hypotheses: list[str]
    references: list[list[str]]  # one list per set of references
    source: list[str] | None = None


def read_generated(path: Path) -> Translations:
    """Read the source (S-), the best hypothesis (H-) and the reference (T-) of each sentence from the output of
    fairseq-generate.

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
    """Read translations from a text file, one per line, or from the output of fairseq-generate or fairseq-interactive.

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
    """Return the same hypotheses with other references.

    Raises:
        UserError: a reference has a different number of sentences.
    """
    for reference in references:
        if len(reference) != len(translations.hypotheses):
            raise UserError(
                f"--references: {len(reference)} lines for {len(translations.hypotheses)} translated sentences: give "
                "files that match the test set line by line"
            )
    return Translations(translations.hypotheses, references)
