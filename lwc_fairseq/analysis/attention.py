"""Attention weights of a trained model for given translations: of whole data sets, and of one sentence as panels.

Letters: B sentences, H heads, m target tokens, n source tokens.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import torch
from fairseq.checkpoint_utils import load_model_ensemble_and_task
from fairseq.data import Dictionary
from fairseq.dataclass.configs import GenerationConfig
from fairseq.tasks import FairseqTask
from torch import Tensor, nn
from tqdm import tqdm

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.data import require_targets

from ..data.reverse import is_reversed, reverse_words, reversed_order
from ..models.interface import TranslationModel, attention_weights

MEAN = "mean"
"""Replaces the number of a layer, and selects the mean over all layers."""


@dataclass(frozen=True)
class Forced:
    """A sentence pair and its attention weights. Row j of the weights belongs to the step that produces token j. The
    translation is in reading order, even if the model produces it from right to left."""

    number: int  # index in the data
    source: list[str]  # n subwords, the end symbol last
    target: list[str]  # m subwords, the end symbol last
    attentions: list[Tensor]  # one tensor per layer, (H, m, n)


@dataclass(frozen=True)
class Panel:
    """The weights of a layer. Each row is the step that produces a token, and each column is a token that this step
    attends to: the first `split` columns are source tokens, the others target tokens."""

    title: str
    rows: list[str]
    columns: list[str]
    weights: Tensor  # (rows, columns)
    split: int


def load(checkpoint: str, data: str) -> tuple[nn.Module, FairseqTask]:
    """Load a trained model, on a GPU if there is one, and its task. Raises UserError if there is no such checkpoint or
    folder of binary data."""
    if not Path(data).is_dir():
        raise UserError(f"--data {data}: no such folder")
    if not Path(checkpoint).is_file():
        raise UserError(f"{checkpoint}: no such checkpoint")
    (model,), _, task = load_model_ensemble_and_task([checkpoint], arg_overrides={"data": data})
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval(), task


def force(model: nn.Module, task: FairseqTask, subset: str) -> Iterator[Forced]:
    """Yield the attention of a model that is forced to produce the references of a subset of the task's data, in order
    of length.

    Raises UserError if there is no such subset, it has no references, or the model's attention cannot be read.
    """
    task.load_dataset(subset)
    dataset = task.dataset(subset)
    require_targets(dataset, "word alignment")
    batches = task.get_batch_iterator(dataset, max_sentences=50, max_positions=None)
    for sample in tqdm(batches.next_epoch_itr(shuffle=False), desc="reading attention", leave=False):
        if sample:
            yield from force_batch(model, task, sample)


@torch.no_grad()
def force_batch(model: nn.Module, task: FairseqTask, sample: dict) -> Iterator[Forced]:
    """Yield the sentences of one batch."""
    device = next(model.parameters()).device
    source, target = sample["net_input"]["src_tokens"], sample["target"]
    inputs = source.to(device), sample["net_input"]["prev_output_tokens"].to(device)
    attentions = attention_weights(model, *inputs).source
    pad, eos = task.target_dictionary.pad(), task.target_dictionary.eos()  # the same in both dictionaries
    for i, number in enumerate(sample["id"].tolist()):
        columns = source[i].ne(pad).nonzero().squeeze(1)
        rows = target[i].ne(pad).nonzero().squeeze(1)
        if is_reversed(task.cfg):
            rows = rows[reversed_order(target[i][rows], eos)]
        yield Forced(
            number,
            symbols(task.source_dictionary, source[i][columns]),
            symbols(task.target_dictionary, target[i][rows]),
            [weights[i].cpu().float()[:, rows][..., columns] for weights in attentions],
        )


def panels(
    model: nn.Module, task: FairseqTask, source: str, target: str | None, layer: int | str | None, head: int | None
) -> list[Panel]:
    """Return the attention of a model for one sentence. Raises UserError as :func:`encode` and :func:`choose` do.

    Args:
        source, target: tokens as in the data (subwords, if the data has subwords). Without a target, the model's own
            translation with beam 5 is used.
        layer: the layer to show; None shows all layers, MEAN shows the mean over layers.
        head: the head to show; None shows the mean over heads.
    """
    device = next(model.parameters()).device
    source_tokens, words = encode(task.source_dictionary, source, "--source")
    source_tokens = source_tokens.to(device)[None]
    if target is None:
        lengths = source_tokens.new_tensor([source_tokens.size(1)])
        sample = {"net_input": {"src_tokens": source_tokens, "src_lengths": lengths}}
        generator = task.build_generator([model], GenerationConfig(beam=5))
        tokens = task.inference_step(generator, [model], sample)[0][0]["tokens"]
        rows = symbols(task.target_dictionary, tokens)
    else:
        tokens, rows = encode(task.target_dictionary, target, "--target")
        tokens = tokens.to(device)
    if is_reversed(task.cfg):
        tokens = reverse_words(tokens, task.target_dictionary.eos())
        rows = [*rows[:-1][::-1], rows[-1]]
    with torch.no_grad():
        weights = attention_weights(model, source_tokens, torch.cat([tokens[-1:], tokens[:-1]])[None])
    columns, kinds = words, [weights.source]
    if weights.target:
        columns, kinds = [*words, "(start)", *rows[:-1]], [weights.source, weights.target]
    elif weights.reverse and isinstance(model, TranslationModel):
        reverse = symbols(task.target_dictionary, model.reverse_translations(source_tokens)[0])
        columns, kinds = words + reverse, [weights.source, weights.reverse]
    kinds = [[of_layer[0] for of_layer in kind] for kind in kinds]
    made = []
    for number in range(len(weights.source)) if layer is None else [layer]:
        parts = [choose(kind, number if isinstance(number, int) else None, head) for kind in kinds]
        title = "mean of the layers" if number == MEAN else f"layer {number}"
        title += "" if head is None else f", head {head}"
        made.append(Panel(title, rows, columns, torch.cat(parts, dim=1).float().cpu(), len(words)))
    return made


def sentences(panel: Panel, task: FairseqTask) -> list[str]:
    """Return the source and the translation of a panel: words, in reading order."""
    produced = panel.rows[:-1]
    return [join(panel.columns[: panel.split - 1]), join(produced[::-1] if is_reversed(task.cfg) else produced)]


def encode(dictionary: Dictionary, text: str, option: str) -> tuple[Tensor, list[str]]:
    """Return the ids (n,) of a text's tokens, and the tokens. To those not in the dictionary, <unk> is added.
    The end symbol is last. Raises UserError if the text has no words."""
    if not text.split():
        raise UserError(f"{option}: give a sentence")
    tokens = [token if token in dictionary else token + dictionary.unk_word for token in text.split()]
    return dictionary.encode_line(text, add_if_not_exist=False).long(), [*tokens, dictionary.eos_word]


def symbols(dictionary: Dictionary, tokens: Tensor) -> list[str]:
    return [dictionary[token] for token in tokens.tolist()]


def choose(attentions: list[Tensor], layer: int | None, head: int | None) -> Tensor:
    """Return the weights (m, n) of a layer and a head, from the weights (H, m, n) of each layer. None selects the mean
    over layers or heads. Raises UserError if the model has no such layer or head."""

    def pick(weights: Tensor, index: int | None, option: str) -> Tensor:
        if index is not None and not 0 <= index < len(weights):
            raise UserError(f"{option} {index}: the model has {len(weights)}, counted from 0")
        return weights.mean(0) if index is None else weights[index]

    return pick(torch.stack([pick(weights, head, "--head") for weights in attentions]), layer, "--layer")


def word_numbers(tokens: list[str]) -> list[int]:
    """Return, for each token, the number of its word, counted from 0.

    If a token of the sentence begins with ▁ (U+2581), as sentencepiece writes it, words begin at such tokens.
    Otherwise, a token that ends in @@, as subword-nmt writes it, continues in the next token.
    """
    if any(token.startswith("▁") for token in tokens):
        begins = [token.startswith("▁") for token in tokens[1:]]
    else:
        begins = [not token.endswith("@@") for token in tokens[:-1]]
    return list(accumulate(begins, initial=0))[: len(tokens)]


def join(tokens: list[str]) -> str:
    """Join tokens to words, with a space between words."""
    words: dict[int, str] = {}
    for number, token in zip(word_numbers(tokens), tokens, strict=True):
        words[number] = words.get(number, "") + token.removeprefix("▁").removesuffix("@@")
    return " ".join(words.values())
