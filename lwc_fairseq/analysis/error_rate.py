"""The alignment error rate of Och and Ney (2003)."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lwc_fairseq_compat import UserError

from .alignment import Link, links
from .attention import Forced
from .gold import Gold, check_inside


@dataclass(frozen=True)
class ErrorRate:
    """The alignment error rate over all sentences. A are the links found, S the sure and P the possible gold links.

    precision = |A ∩ P| / |A|,  recall = |A ∩ S| / |S|,  AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
    """

    aer: float
    precision: float
    recall: float


def error_rate(found: list[set[Link]], gold: list[Gold]) -> ErrorRate:
    """Compute the error rate of alignments; `found` and `gold` have one entry per sentence.

    Raises:
        UserError: the numbers of sentences differ, or neither `found` nor `gold` has a link.
    """
    if len(found) != len(gold):
        raise UserError(f"{len(found)} alignments, but {len(gold)} in the gold file: give files of the same sentences")
    links_found, sure = sum(map(len, found)), sum(len(one.sure) for one in gold)
    if links_found + sure == 0:
        raise UserError("neither alignment has a link")
    in_sure = sum(len(links & one.sure) for links, one in zip(found, gold, strict=True))
    in_possible = sum(len(links & one.possible) for links, one in zip(found, gold, strict=True))
    return ErrorRate(
        aer=1 - (in_sure + in_possible) / (links_found + sure),
        precision=in_possible / links_found if links_found else 0.0,
        recall=in_sure / sure if sure else 0.0,
    )


def layer_error_rates(sentences: Iterable[Forced], gold: list[Gold], gold_file: Path) -> dict[str, ErrorRate]:
    """Compute the error rate of each layer, by its number, and of the mean over all layers ("all").

    Args:
        gold: the gold alignment of each sentence, in the order of the data.
        gold_file: the file of the gold alignments, for error messages.

    Raises:
        UserError: the gold alignments do not match the sentences.
    """
    found: dict[str, dict[int, set[Link]]] = {}
    for one in sentences:
        if one.number < len(gold):
            check_inside(gold[one.number], one, f"{gold_file}, line {one.number + 1}")
        for layer in [*range(len(one.attentions)), None]:
            name = "all" if layer is None else str(layer)
            found.setdefault(name, {})[one.number] = set(links(one, layer, None))
    return {
        name: error_rate([of_layer[number] for number in sorted(of_layer)], gold) for name, of_layer in found.items()
    }
