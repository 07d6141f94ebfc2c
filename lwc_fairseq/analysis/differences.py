"""The sentences on which systems differ: a view in which a reader compares two of them, sentence by sentence."""

from collections.abc import Collection
from pathlib import Path

from ..pages import definitions, interactive
from .comparison import Sentences

MOST = 1000
"""The number of sentences that a page holds, those on which the systems differ most."""


def differences_view(sentences: Sentences, largest: list[dict], number: int, explored: Collection[int] = ()) -> str:
    """Return the HTML of the view, which is a list of a few sentences as long as its script does not run.

    Args:
        sentences: the translations of at least two systems.
        largest: what :func:`largest_differences` returns for MOST sentences, at least one.
        number: how many sentences that list has.
        explored: the lines of which the page has :func:`.attention_page.attention_view`.
    """
    data = {
        "systems": list(sentences.systems),
        "explored": list(explored),
        "all": len(sentences.references[0]),
        "isPart": len(largest) == MOST,
        "sentences": [
            {
                "line": entry["line"],
                "source": entry["source"],
                "references": [reference[entry["line"] - 1] for reference in sentences.references],
                "chrf": list(entry["chrf"].values()),
                "translations": list(entry["translations"].values()),
            }
            for entry in largest
        ],
    }
    few = "".join(scored_example(entry, explored) for entry in largest[:number])
    return f'<div id="few">{few}</div>' + interactive(Path(__file__).with_name("differences_view.html"), data)


def scored_example(entry: dict, explored: Collection[int] = ()) -> str:
    """Return the HTML of an entry of :func:`largest_differences`."""
    translations = {f"{name} (chrF2 {entry['chrf'][name]})": text for name, text in entry["translations"].items()}
    return example(entry["line"], entry["source"], entry["reference"], translations, explored)


def example(
    line: int, source: str | None, reference: str, translations: dict[str, str], explored: Collection[int]
) -> str:
    """Return the HTML of a sentence and its translations."""
    texts = {"source": source} if source is not None else {}
    link = f' <small><a href="#attention-{line}">attention</a></small>' if line in explored else ""
    return f"<h3>Line {line}{link}</h3>" + definitions({**texts, "reference": reference, **translations})
