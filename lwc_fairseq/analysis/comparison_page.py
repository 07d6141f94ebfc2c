"""The files of a comparison: compare.md, compare.html, compare.json and pictures."""

import json
from dataclasses import asdict
from html import escape
from pathlib import Path

from ..files import write_whole
from ..pages import as_png, html_table, page
from .comparison import (
    DIFFERENCES,
    LINES,
    WORST,
    Comparison,
    Sentences,
    largest_differences,
    make_frequencies_figure,
    make_groups_figure,
    markdown,
    sections,
)
from .differences import MOST, differences_view, scored_example

LISTED = 1000
"""How many untranslated words of a system the page lists, each with its sentence."""


def write_comparison(comparison: Comparison, sentences: Sentences, out: Path) -> list[Path]:
    """Write compare.md, compare.html, compare.json and, if there are groups, lengths.png and frequencies.png, and
    return their paths. Remove pictures of an earlier comparison that this one does not have. Where scripts do not
    run, the page has the sentences that `comparison` has.
    """
    pictures = {}
    if comparison.groups:
        pictures["lengths.png"] = make_groups_figure(comparison.groups)
    if comparison.frequencies:
        pictures["frequencies.png"] = make_frequencies_figure(comparison.frequencies)
    parts = [section.html() for section in sections(comparison)]
    if comparison.differences:
        largest = largest_differences(sentences, MOST)
        view = differences_view(sentences, largest, len(comparison.differences))
        parts += [f"<h2>{DIFFERENCES}</h2>", f"<p>{LINES}</p>", view]
    elif comparison.worst:
        parts += [f"<h2>{WORST}</h2>", f"<p>{LINES}</p>", *map(scored_example, comparison.worst)]
    if comparison.omission:
        parts.append(untranslated_words(comparison.omission["systems"], sentences))
    contents: dict[str, str | bytes] = {
        "compare.md": markdown(comparison),
        "compare.html": page("Comparison of " + ", ".join(sentences.systems), parts),
        "compare.json": json.dumps(asdict(comparison), indent=1, ensure_ascii=False),
        **{name: as_png(figure, dpi=150) for name, figure in pictures.items()},
    }
    if (out / "compare.json").exists():
        for name in {"lengths.png", "frequencies.png"} - pictures.keys():
            (out / name).unlink(missing_ok=True)
    for name, content in contents.items():
        write_whole(out / name, content)
    return [out / name for name in contents]


def untranslated_words(systems: dict[str, dict], sentences: Sentences) -> str:
    """Return the HTML of the untranslated words of each system with their sentences, which a click opens.

    Args:
        systems: what :func:`.adequacy.omission` returns of each system.
    """
    assert sentences.source is not None
    style = ".omitted td, .omitted th { text-align: start; white-space: normal; min-width: 4rem; } "
    style += ".omitted td { overflow-wrap: anywhere; } .omitted td:nth-child(n+4) { min-width: 12rem; }"
    parts = ["<h2>Untranslated words</h2>", f"<p>{LINES}</p>", f"<style>{style}</style>"]
    for name, measures in systems.items():
        places = [(entry, line) for entry in measures["words"] for line in dict.fromkeys(entry["lines"])]
        rows = [
            [
                entry["word"],
                ", ".join(entry["translations"]),
                str(line),
                sentences.systems[name][line - 1],
                sentences.source[line - 1],
            ]
            for entry, line in places[:LISTED]
        ]
        header = ["word", "translations in the lexicon", "line", f"translation by {name}", "source"]
        number = f"{len(places):,} place{'s' * (len(places) != 1)}"
        title = f"{name}: {number}, those of the most frequent words first"
        title += f", of which these are {LISTED:,}" if len(places) > LISTED else ""
        table = html_table(header, rows)
        parts.append(f'<details class="omitted"><summary>{escape(title)}</summary>{table}</details>')
    return "\n".join(parts)
