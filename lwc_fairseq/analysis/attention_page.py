"""A view to explore attention, on a page that needs no network.

It shows where each step of a translation attends, in every layer and head, which steps attend to a token, log P of each
token, and how the beam search found the translation. `attention_view.html` has its elements and its script.
"""

from operator import itemgetter
from pathlib import Path

from fairseq.tasks import FairseqTask

from ..pages import interactive, page
from .attention import MEAN, SO_FAR, SOURCE, Attention, Hypothesis, is_right_to_left, produced, sentences

LARGEST = 2_000_000
"""Number of weights, of less than a byte each, up to which a page holds the weights of every head."""

LONGEST = 200
"""Number of sub-words up to which a sentence is translated unasked. With more, the page would be slow and large."""


def make_page(data: dict, layer: int | str | None = None, head: int | None = None, form: str = "") -> str:
    """Return the page of one translation, which :func:`page_data` returns.

    Args:
        layer, head: those that the page shows first; None is the mean.
        form: HTML for the place below the heading.
    """
    view = attention_view([{"title": data["title"]}], [""], [[data]], layer, head)
    return page(data["title"], [form, view], heading="Attention")


def attention_view(
    sentences: list[dict],
    models: list[str],
    views: list[list[dict]],
    layer: int | str | None = None,
    head: int | None = None,
) -> str:
    """Return the HTML of a view of several translations, of which one is shown at a time.

    Args:
        sentences: the title of each sentence and, so that the address `#attention-LINE` shows it, its line.
        models: the names of the models.
        views: what :func:`page_data` returns, for each sentence and each model.
        layer, head: those that are shown first; None is the mean.
    """
    first = {"layer": MEAN if layer is None else layer, "head": MEAN if head is None else head}
    data = {"sentences": sentences, "models": models, "views": views, **first}
    return interactive(Path(__file__).with_name("attention_view.html"), data)


def page_data(
    task: FairseqTask,
    hypotheses: list[Hypothesis],
    attentions: list[Attention],
    beams: list[list[Hypothesis]],
    largest: int = LARGEST,
) -> dict:
    """Return the data of a translation. Weights are in thousandths.

    If `largest` leaves no room for the heads of a hypothesis, the data have the mean over its heads alone. If there is
    no room for all the means, only the best hypothesis has weights.

    Args:
        hypotheses, beams: those of :func:`.attention.translations`.
        attentions: the attention of each hypothesis.
        largest: the number of weights.
    """
    best = attentions[0]
    source, target = sentences(best, task)
    sizes = [sum(weights.numel() for weights in attention.layers) for attention in attentions]
    sizes_of_means = [sum(weights[0].numel() for weights in attention.layers) for attention in attentions]
    room = largest - sum(sizes_of_means)
    shown: list[dict] = []
    for hypothesis, attention, size, size_of_mean in zip(hypotheses, attentions, sizes, sizes_of_means, strict=True):
        layers = attention.layers
        if size - size_of_mean <= room:
            room -= size - size_of_mean
        elif shown and room < 0:
            layers = []
        else:
            layers = [weights.mean(0, keepdim=True) for weights in layers]
        shown.append(
            {
                "score": hypothesis.score,
                "text": produced(hypothesis.rows[:-1], task),
                "rows": hypothesis.rows,
                "logProbabilities": [round(value, 4) for value in hypothesis.of_tokens or []],
                "others": [tokens for name, tokens in attention.sides.items() if name != SOURCE],
                "weights": [(weights * 1000).round().int().tolist() for weights in layers],
            }
        )
    return {
        "title": f"{source} → {target}",
        "source": best.sides[SOURCE],
        "others": [{"name": name, "grows": name == SO_FAR} for name in best.sides if name != SOURCE],
        "rightToLeft": {"source": is_right_to_left(source), "target": is_right_to_left(target)},
        "heads": len(best.layers[0]),
        "hypotheses": shown,
        "beams": [beam_after(step, task, hypotheses, beams) for step in range(1, len(beams) + 2)] if beams else [],
    }


def beam_after(step: int, task: FairseqTask, hypotheses: list[Hypothesis], beams: list[list[Hypothesis]]) -> list[dict]:
    """Return what the search holds after a step, counted from 1: hypotheses of so many tokens, best first."""
    entries = [(hypothesis, False) for hypothesis in (beams[step - 1] if step <= len(beams) else [])]
    entries += [(hypothesis, True) for hypothesis in hypotheses if len(hypothesis.rows) == step]
    beam = [
        {
            "logProbability": hypothesis.log_probability,
            "text": produced(hypothesis.rows[: step - is_finished], task),
            "finished": is_finished,
            "leadsTo": [i for i, other in enumerate(hypotheses) if other.rows[:step] == hypothesis.rows],
        }
        for hypothesis, is_finished in entries
    ]
    return sorted(beam, key=itemgetter("logProbability"), reverse=True)
