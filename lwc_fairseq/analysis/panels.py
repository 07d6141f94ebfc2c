"""The attention weights of a model for one translation, as a panel for each layer.

Each row is the step that produces a token, and each column is a token that this step attends to.

Letters: H heads, n source and m target tokens.
"""

from dataclasses import dataclass

import torch
from fairseq.data import Dictionary
from fairseq.dataclass.configs import GenerationConfig
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from lwc_fairseq_compat import UserError

from ..data.reverse import is_reversed, reverse_words
from ..models.interface import DecoderAttention, attention_weights
from .alignment import pick
from .attention import symbols
from .subwords import join

START = "(start)"
MEAN = "mean"
"""Replaces the number of a layer, and selects the mean over all layers."""


@dataclass(frozen=True)
class Panel:
    """The weights of a layer. The first `split` columns are source tokens; the others are target tokens."""

    title: str
    rows: list[str]
    columns: list[str]
    weights: Tensor  # (rows, columns)
    split: int


def panels(
    model: nn.Module, task: FairseqTask, source: str, target: str | None, layer: int | str | None, head: int | None
) -> list[Panel]:
    """Return the attention of a model for one sentence.

    Args:
        source, target: tokens as in the data (subwords, if the data has subwords). A token that is not in the
            vocabulary is marked as <unk>. Without a target, the model's own translation is used.
        layer: the layer to show; None shows all layers, MEAN shows the mean over layers.
        head: the head to show; None shows the mean over heads.

    Raises:
        UserError: the model has no such layer or head, or a sentence is empty.
    """
    device = next(model.parameters()).device
    src_tokens = encode(task.source_dictionary, source, "--source").to(device)[None]
    if target is None:
        tokens = translate(model, task, src_tokens)
        rows = symbols(task.target_dictionary, tokens)
    else:
        tokens = encode(task.target_dictionary, target, "--target").to(device)
        rows = marked(task.target_dictionary, target)
    if is_reversed(task.cfg):
        tokens = reverse_words(tokens, task.target_dictionary.eos())
        rows = [*rows[:-1][::-1], rows[-1]]
    with torch.no_grad():
        weights = attention_weights(model, src_tokens, torch.cat([tokens[-1:], tokens[:-1]])[None])
    words = marked(task.source_dictionary, source)
    others, columns = other_columns(model, task, src_tokens, weights, rows)
    made = []
    for number in range(len(weights.source)) if layer is None else [layer]:
        parts = [by_head(of_layer(kind, number)[0], head) for kind in (weights.source, others) if kind]
        title = "mean of the layers" if number == MEAN else f"layer {number}"
        title += "" if head is None else f", head {head}"
        made.append(Panel(title, rows, words + columns, torch.cat(parts, dim=1).float().cpu(), len(words)))
    return made


def sentences(panel: Panel, task: FairseqTask) -> list[str]:
    """Return the source and the translation of a panel: words, in reading order."""
    produced = panel.rows[:-1]
    return [join(panel.columns[: panel.split - 1]), join(produced[::-1] if is_reversed(task.cfg) else produced)]


def unknown(dictionary: Dictionary, text: str) -> list[str]:
    """Return the tokens of a text that are not in the dictionary."""
    return [token for token in text.split() if token not in dictionary]


def marked(dictionary: Dictionary, text: str) -> list[str]:
    """Return the tokens of a text, those marked that the model reads as an unknown word, and the end symbol."""
    missing = unknown(dictionary, text)
    return [token + dictionary.unk_word * (token in missing) for token in text.split()] + [dictionary.eos_word]


def encode(dictionary: Dictionary, text: str, option: str) -> Tensor:
    """Encode a text as token ids (n,), the end symbol last. Words that are not in the dictionary become unknown words.

    Raises:
        UserError: the text has no words.
    """
    if not text.split():
        raise UserError(f"{option}: give a sentence")
    return dictionary.encode_line(text, add_if_not_exist=False).long()


def translate(model: nn.Module, task: FairseqTask, src_tokens: Tensor) -> Tensor:
    """Return the model's own translation (m,), with beam 5, in reading order."""
    generator = task.build_generator([model], GenerationConfig(beam=5))
    lengths = src_tokens.new_tensor([src_tokens.size(1)])
    sample = {"net_input": {"src_tokens": src_tokens, "src_lengths": lengths}}
    return task.inference_step(generator, [model], sample)[0][0]["tokens"]


def other_columns(
    model: nn.Module, task: FairseqTask, src_tokens: Tensor, weights: DecoderAttention, produced: list[str]
) -> tuple[list[Tensor], list[str]]:
    """Return each layer's attention weights over target tokens (the target so far or a reverse translation), and these
    tokens."""
    if weights.target:
        return weights.target, [START, *produced[:-1]]
    if weights.reverse:
        return weights.reverse, symbols(task.target_dictionary, model.reverse_translations(src_tokens)[0])
    return [], []


def of_layer(weights: list[Tensor], layer: int | str) -> Tensor:
    return torch.stack(weights).mean(0) if layer == MEAN else pick(weights, layer, "--layer")


def by_head(weights: Tensor, head: int | None) -> Tensor:
    """Reduce weights (H, m, n) to (m, n)."""
    return weights.mean(0) if head is None else pick(weights, head, "--head")
