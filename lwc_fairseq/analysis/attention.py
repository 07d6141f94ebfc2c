"""Attention weights of a trained model: for the references of a data set, and for translations of one sentence.

Letters: B sentences, H heads, m target tokens, n source tokens.
"""

import io
import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
import torch
from fairseq.checkpoint_utils import load_model_ensemble_and_task
from fairseq.data import Dictionary
from fairseq.dataclass.configs import GenerationConfig
from fairseq.models import BaseFairseqModel
from fairseq.search import BeamSearch
from fairseq.tasks import FairseqTask
from fairseq.utils import resolve_max_positions
from torch import Tensor, nn
from tqdm import tqdm

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.data import require_targets

from ..data.reverse import is_reversed, reverse_words, reversed_order
from ..files import write_whole
from ..models.interface import ReverseContextModel, attention_weights
from ..packs import checkpoint_of

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
class Hypothesis:
    """A translation in the order in which the model produces it, which is from right to left for some models."""

    tokens: Tensor  # (m,), the end symbol last
    rows: list[str]  # the same tokens as text
    score: float | None = None  # by which the search ranks it; None for a translation that the user gives
    log_probability: float | None = None  # natural logarithms, here and below
    of_tokens: list[float] | None = None  # log P of each token, the end symbol last; None in the beam of a step


SOURCE, REVERSE, SO_FAR = "Source", "Reverse translation", "Translation so far"
"""The sides to which a step may attend."""


@dataclass(frozen=True)
class Attention:
    """The weights of all layers. Each row is the step that produces a token, and each column is a token that this step
    attends to."""

    rows: list[str]
    sides: dict[str, list[str]]  # the tokens of each side, in the order of the columns; the source is first
    layers: list[Tensor]  # (H, rows, columns) each


@dataclass(frozen=True)
class Panel:
    """The weights of a layer, with the rows and columns of :class:`Attention`."""

    title: str
    rows: list[str]
    sides: list[list[str]]
    weights: Tensor  # (rows, columns)

    @property
    def columns(self) -> list[str]:
        return [token for tokens in self.sides for token in tokens]


def load(checkpoint: str, data: str) -> tuple[BaseFairseqModel, FairseqTask]:
    """Load a trained model, a checkpoint or a pack, on a GPU if there is one, and its task. Raises UserError if there
    is no such file or folder of binary data. `data` may name several folders, separated as in PATH."""
    for folder in data.split(os.pathsep):
        if not Path(folder).is_dir():
            raise UserError(f"--data {folder}: no such folder")
    path = checkpoint_of(checkpoint)
    if not path.is_file():
        raise UserError(f"{checkpoint}: no such checkpoint")
    (model,), _, task = load_model_ensemble_and_task([str(path)], arg_overrides={"data": data})
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval(), task


def force(model: BaseFairseqModel, task: FairseqTask, subset: str) -> Iterator[Forced]:
    """Yield the attention of a model that is forced to produce the references of a subset of the task's data, in order
    of length.

    Raises UserError if there is no such subset, it has no references, a sentence is too long for the model, or the
    model's attention cannot be read.
    """
    task.load_dataset(subset)
    dataset = task.dataset(subset)
    require_targets(dataset, "word alignment")
    longest = resolve_max_positions(task.max_positions(), model.max_positions())
    _, too_long = dataset.filter_indices_by_size(dataset.ordered_indices(), longest)
    if too_long:
        raise UserError(
            f"{subset}: sentence {min(too_long) + 1} is too long for the model, which reads {longest[0]} tokens and "
            f"writes {longest[1]}: make the data without it"
        )
    batches = task.get_batch_iterator(dataset, max_sentences=50)
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


def translations(
    model: BaseFairseqModel, task: FairseqTask, source: str, target: str | None
) -> tuple[list[Hypothesis], list[list[Hypothesis]]]:
    """Return the hypotheses of a beam search of width 5, best first, or `target` alone. Beside them, return for each
    step of the search the hypotheses that it continues, best first, which are none for `target`.

    Raises UserError as :func:`encode` does, and if a sentence is too long for the model.

    Args:
        source, target: tokens as in the data (subwords, if the data has subwords).
    """
    src_tokens, _ = encode(task.source_dictionary, source, "--source")
    longest_source, longest_target = resolve_max_positions(task.max_positions(), model.max_positions())
    require_length("--source", src_tokens, longest_source)
    src_tokens = src_tokens.to(next(model.parameters()).device)[None]
    eos = task.target_dictionary.eos()
    if target is not None:
        tokens, rows = encode(task.target_dictionary, target, "--target")
        require_length("--target", tokens, longest_target)
        if is_reversed(task.cfg):
            tokens, rows = reverse_words(tokens, eos), [*rows[:-1][::-1], rows[-1]]
        of_tokens = log_probabilities(model, src_tokens, tokens.to(src_tokens.device))
        return [Hypothesis(tokens, rows, None, sum(of_tokens), of_tokens)], []
    sample = {"net_input": {"src_tokens": src_tokens, "src_lengths": src_tokens.new_tensor([src_tokens.size(1)])}}
    generator = task.build_generator([model], GenerationConfig(beam=5))
    recorded = RecordedSearch(task.target_dictionary)
    getattr(generator, "generator", generator).search = recorded  # the task concat_translation ranks its hypotheses
    hypotheses = []
    for hypothesis in task.inference_step(generator, [model], sample)[0]:
        tokens, of_tokens = hypothesis["tokens"], hypothesis["positional_scores"]
        if is_reversed(task.cfg):
            order = reversed_order(tokens, eos)
            tokens, of_tokens = tokens[order], of_tokens[order]
        rows, score, total = symbols(task.target_dictionary, tokens), hypothesis["score"].item(), of_tokens.sum().item()
        hypotheses.append(Hypothesis(tokens.cpu(), rows, score, total, of_tokens.tolist()))
    return hypotheses, recorded.beams


@torch.no_grad()
def log_probabilities(model: BaseFairseqModel, src_tokens: Tensor, tokens: Tensor) -> list[float]:
    """Return log P of each token of a translation (m,), of which the end symbol is last, for a source (1, n)."""
    inputs = torch.cat([tokens[-1:], tokens[:-1]])[None]
    output = model(src_tokens, src_tokens.new_tensor([src_tokens.size(1)]), inputs)
    return model.get_normalized_probs(output, log_probs=True)[0].gather(1, tokens[:, None])[:, 0].tolist()


class RecordedSearch(BeamSearch):
    """fairseq's beam search, which also records the hypotheses of a sentence that each step continues."""

    def __init__(self, dictionary: Dictionary):
        super().__init__(dictionary)
        self.dictionary = dictionary
        self.beams: list[list[Hypothesis]] = []

    def step(self, step, lprobs, scores, prev_output_tokens=None, original_batch_idxs=None):
        if step:
            prefixes, totals = prev_output_tokens[:, 1:].cpu(), scores[0, :, -1].tolist()
            self.beams.append(
                [
                    Hypothesis(tokens, symbols(self.dictionary, tokens), log_probability=total)
                    for tokens, total in zip(prefixes, totals, strict=True)
                    if total > -torch.inf
                ]
            )
        return super().step(step, lprobs, scores, prev_output_tokens, original_batch_idxs)


@torch.no_grad()
def attend(model: nn.Module, task: FairseqTask, source: str, hypothesis: Hypothesis) -> Attention:
    """Return the attention of a model that produces a translation. Raises UserError as :func:`encode` does, or if the
    model's attention cannot be read."""
    src_tokens, words = encode(task.source_dictionary, source, "--source")
    device = next(model.parameters()).device
    src_tokens, tokens = src_tokens.to(device)[None], hypothesis.tokens.to(device)
    weights = attention_weights(model, src_tokens, torch.cat([tokens[-1:], tokens[:-1]])[None])
    sides, by_side = {SOURCE: words}, [weights.source]
    if weights.reverse and isinstance(model, ReverseContextModel):
        sides[REVERSE] = symbols(task.target_dictionary, model.reverse_translations(src_tokens)[0])
        by_side.append(weights.reverse)
    if weights.target:
        sides[SO_FAR] = ["(start)", *hypothesis.rows[:-1]]
        by_side.append(weights.target)
    layers = [torch.cat(parts, dim=-1)[0].float().cpu() for parts in zip(*by_side, strict=True)]
    return Attention(hypothesis.rows, sides, layers)


def panels(attention: Attention, layer: int | str | None, head: int | None) -> list[Panel]:
    """Return the weights of one layer, of the mean over layers (MEAN) or, if `layer` is None, of each layer. If `head`
    is None, they are means over the heads. Raises UserError as :func:`choose` does."""
    made = []
    for number in range(len(attention.layers)) if layer is None else [layer]:
        weights = choose(attention.layers, number if isinstance(number, int) else None, head)
        title = "mean of the layers" if number == MEAN else f"layer {number}"
        title += "" if head is None else f", head {head}"
        made.append(Panel(title, attention.rows, [*attention.sides.values()], weights))
    return made


def save_weights(made: list[Panel], path: Path) -> None:
    """Write panels as arrays: weights (layers, rows, columns), tokens, and the numbers of columns of each side."""
    data = io.BytesIO()
    weights, widths = np.stack([panel.weights.numpy() for panel in made]), [len(side) for side in made[0].sides]
    np.savez(data, weights=weights, rows=made[0].rows, columns=made[0].columns, widths=widths)
    write_whole(path, data.getvalue())


def sentences(attention: Attention, task: FairseqTask) -> list[str]:
    """Return the source and the translation: words, in reading order."""
    return [join(attention.sides[SOURCE][:-1]), produced(attention.rows[:-1], task)]


def produced(rows: list[str], task: FairseqTask) -> str:
    """Return a translation or its beginning, in reading order, from its tokens in the order of production."""
    return join(rows[::-1] if is_reversed(task.cfg) else rows)


def encode(dictionary: Dictionary, text: str, option: str) -> tuple[Tensor, list[str]]:
    """Return the ids (n,) of a text's tokens, and the tokens. To those not in the dictionary, <unk> is added,
    before an @@. The end symbol is last. Raises UserError if the text has no words."""
    if not text.split():
        raise UserError(f"{option}: give a sentence")
    tokens = [
        token if token in dictionary else re.sub("(@@)?$", rf"{dictionary.unk_word}\1", token, count=1)
        for token in text.split()
    ]
    return dictionary.encode_line(text, add_if_not_exist=False).long(), [*tokens, dictionary.eos_word]


def require_length(option: str, tokens: Tensor, longest: int) -> None:
    """Raises UserError if a sentence (n,) with its end symbol is longer than the model allows."""
    if len(tokens) > longest:
        raise UserError(
            f"{option}: {len(tokens) - 1:,} tokens, but the model allows {longest - 1:,}: give a shorter sentence"
        )


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

    A token that ends in @@, as subword-nmt writes it, continues in the next token. If there is none, and a token begins
    with ▁ (U+2581), as sentencepiece writes it, words begin at such tokens.
    """
    begins = [not token.endswith("@@") for token in tokens[:-1]]
    if all(begins) and any(token.startswith("▁") for token in tokens):
        begins = [token.startswith("▁") for token in tokens[1:]]
    return list(accumulate(begins, initial=0))[: len(tokens)]


def join(tokens: list[str]) -> str:
    """Join tokens to words, with a space between words."""
    words: dict[int, str] = {}
    for number, token in zip(word_numbers(tokens), tokens, strict=True):
        words[number] = words.get(number, "") + token.removeprefix("▁").removesuffix("@@")
    return " ".join(words.values())


def is_right_to_left(text: str) -> bool:
    """Return whether most letters of a text are written from right to left."""
    kinds = [unicodedata.bidirectional(character) for character in text]
    return kinds.count("R") + kinds.count("AL") > kinds.count("L")
