"""The files of a comparison: compare.md, compare.html, compare.json and pictures."""

import json
from dataclasses import asdict
from pathlib import Path

from ..files import write_whole
from ..pages import as_png, page
from .comparison import (
    DIFFERENCES,
    Comparison,
    Sentences,
    largest_differences,
    make_frequencies_figure,
    make_groups_figure,
    markdown,
    sections,
)
from .differences import MOST, differences_view


def write_comparison(comparison: Comparison, sentences: Sentences, number: int, out: Path) -> list[Path]:
    """Write compare.md, compare.html, compare.json and, if there are groups, lengths.png and frequencies.png, and
    return their paths.

    Args:
        number: how many sentences the page has where scripts do not run.
    """
    pictures = {}
    if comparison.groups:
        pictures["lengths.png"] = make_groups_figure(comparison.groups)
    if comparison.frequencies:
        pictures["frequencies.png"] = make_frequencies_figure(comparison.frequencies)
    parts = [section.html() for section in sections(comparison)]
    if comparison.differences:
        largest = largest_differences(sentences, MOST)
        parts += [f"<h2>{DIFFERENCES}</h2>", differences_view(sentences, largest, number)]
    contents: dict[str, str | bytes] = {
        "compare.md": markdown(comparison),
        "compare.html": page("Comparison of " + ", ".join(sentences.systems), parts),
        "compare.json": json.dumps(asdict(comparison), indent=1, ensure_ascii=False),
        **{name: as_png(figure, dpi=150) for name, figure in pictures.items()},
    }
    for name, content in contents.items():
        write_whole(out / name, content)
    return [out / name for name in contents]
