"""Files of word alignments: gold alignments, whose links are sure or possible, and the alignments of a system."""

import re
from dataclasses import dataclass
from pathlib import Path

from lwc_fairseq_compat import UserError

from ..files import read_lines
from .alignment import Link
from .attention import Forced
from .subwords import word_numbers


@dataclass(frozen=True)
class Gold:
    """The gold links of a sentence. Every sure link is also a possible link."""

    sure: set[Link]
    possible: set[Link]


def parse_line(line: str, first: int) -> Gold:
    """Parse links `i-j` (sure) and `ipj` or `i?j` (possible), with words counted from `first`.

    Raises:
        ValueError: a link has another format, or a word number less than `first`.
    """
    sure, possible = set(), set()
    for word in line.split():
        match = re.fullmatch(r"(\d+)([-p?])(\d+)", word)
        if match is None:
            raise ValueError(f"{word}: not a link such as 0-1, 0p1 or 0?1")
        link = int(match[1]) - first, int(match[3]) - first
        if min(link) < 0:
            raise ValueError(f"{word}: words are counted from {first}")
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return Gold(sure, possible)


def read_alignments(path: Path, first: int = 0) -> list[Gold]:
    """Read a file of gold alignments, one sentence per line.

    Args:
        first: the number of the first word, 0 or 1.

    Raises:
        UserError: the file cannot be read, or a line is invalid.
    """
    alignments = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            alignments.append(parse_line(line, first))
        except ValueError as error:
            raise UserError(f"{path}, line {number}: {error}") from error
    return alignments


def read_links(path: Path) -> list[set[Link]]:
    """Read a file of a system's links, with words counted from 0.

    Raises:
        UserError: the file cannot be read, or contains possible links.
    """
    alignments = read_alignments(path)
    for number, alignment in enumerate(alignments, 1):
        if alignment.possible != alignment.sure:
            raise UserError(f"{path}, line {number}: links of a system are written i-j; p and ? are for gold files")
    return [alignment.sure for alignment in alignments]


def check_inside(gold: Gold, sentence: Forced, where: str) -> None:
    """Raises UserError if a gold link refers to a word beyond the end of the sentence."""
    sizes = [len(set(word_numbers(tokens[:-1]))) for tokens in (sentence.source, sentence.target)]
    for i, j in sorted(gold.possible):
        if i >= sizes[0] or j >= sizes[1]:
            raise UserError(
                f"{where}: link {i}-{j}, counted from 0, in a sentence of {sizes[0]} and {sizes[1]} words: is the file "
                "of this test set, and --gold-first right?"
            )
