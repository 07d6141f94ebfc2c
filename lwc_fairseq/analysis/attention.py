"""Attention weights of a trained model, read while it is given a translation (forced decoding).

Letters: B sentences, H heads, m target tokens, n source tokens.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from fairseq.checkpoint_utils import load_model_ensemble_and_task
from fairseq.models.transformer import TransformerModelBase
from fairseq.tasks import FairseqTask
from torch import Tensor, nn
from tqdm import tqdm

from lwc_fairseq_compat import UserError

from ..models.abd import ReverseContextModel
from ..models.deepatt import DeepAttModel
from ..models.lwc_transformer import LWCTransformerModel

OURS = (LWCTransformerModel, DeepAttModel, ReverseContextModel)


@dataclass(frozen=True)
class Forced:
    """A sentence pair and how its translation attends to the source. Row j is of the step that produces word j."""

    number: int  # in the data
    source: list[str]  # n tokens, sub-words, the end symbol last
    target: list[str]  # m, the same
    attentions: list[Tensor]  # a layer each, (H, m, n)
    reverse: bool = False  # the target is from right to left


def load(checkpoint: str, data: str) -> tuple[nn.Module, FairseqTask]:
    """A trained model, on a GPU if there is one, and its task.

    Raises:
        UserError: the checkpoint or the folder of binary data cannot be read.
    """
    if not Path(data).is_dir():
        raise UserError(f"--data {data}: no such folder")
    if not Path(checkpoint).is_file():
        raise UserError(f"{checkpoint}: no such checkpoint")
    (model,), _, task = load_model_ensemble_and_task([checkpoint], arg_overrides={"data": data})
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval(), task


def force(model: nn.Module, task: FairseqTask, subset: str, batch_size: int = 50) -> Iterator[Forced]:
    """Force a model to translate a subset of the task's data as its references do; sentences come in order of length.

    Raises:
        UserError: there is no such subset, or the model has no attention to show.
    """
    task.load_dataset(subset)
    dataset = task.dataset(subset)
    device = next(model.parameters()).device
    batches = task.get_batch_iterator(dataset, max_sentences=batch_size, max_positions=None)
    for sample in tqdm(batches.next_epoch_itr(shuffle=False), desc="reading attention", leave=False):
        if sample:
            yield from force_batch(model, task, sample, device)


@torch.no_grad()
def force_batch(model: nn.Module, task: FairseqTask, sample: dict, device: torch.device) -> Iterator[Forced]:
    """The sentences of one batch."""
    source = sample["net_input"]["src_tokens"]
    attentions = source_attentions(model, source.to(device), sample["net_input"]["prev_output_tokens"].to(device))
    dictionaries = task.source_dictionary, task.target_dictionary
    for i, number in enumerate(sample["id"].tolist()):
        sides = [row.ne(dictionaries[0].pad()).nonzero().squeeze(1) for row in (source[i], sample["target"][i])]
        columns, rows = sides
        words = [
            [dictionary[token] for token in tokens[i][side].tolist()]
            for dictionary, tokens, side in zip(dictionaries, (source, sample["target"]), sides, strict=True)
        ]
        kept = [weights[i].cpu().float()[:, rows][..., columns] for weights in attentions]
        yield Forced(number, *words, kept, getattr(task.cfg, "reverse_target", False))


@dataclass(frozen=True)
class Weights:
    """Attention weights of a model for a translation (B, m) given after its start symbol, a layer each."""

    source: list[Tensor]  # (B, H, m, n)
    target: list[Tensor]  # (B, H, m, m), to the tokens read so far; of models that have it
    reverse: list[Tensor]  # (B, H, m, T), to the states of a reverse translation; of models that have one


def source_attentions(model: nn.Module, src_tokens: Tensor, prev_output_tokens: Tensor) -> list[Tensor]:
    """Each layer's attention to the source, (B, H, m, n), as in :func:`attention_weights`."""
    return attention_weights(model, src_tokens, prev_output_tokens).source


def attention_weights(model: nn.Module, src_tokens: Tensor, prev_output_tokens: Tensor) -> Weights:
    """All that a decoder attends to.

    Raises:
        UserError: the model is of a kind whose attention is not known here.
    """
    if isinstance(model, TransformerModelBase):
        lengths = src_tokens.ne(model.encoder.padding_idx).sum(1)
        with recorded_heads(layer.encoder_attn for layer in model.decoder.layers) as source:  # noqa: SIM117
            with recorded_heads(layer.self_attn for layer in model.decoder.layers) as target:
                model(src_tokens, lengths, prev_output_tokens)
        return Weights(source, target, [])
    if not isinstance(model, OURS):
        raise UserError(
            f"{type(model).__name__}: the attention of this model is not known here; give one of this plugin's models "
            "or of fairseq's Transformers"
        )
    _, extra = model.decoder(prev_output_tokens, model.encoder(src_tokens))
    weights = extra["attentions"]
    if weights[0].dim() == 3:  # one head, or their mean
        heads = [x[:, None] for x in weights]
        return Weights(heads[:1], [], heads[1:]) if isinstance(model, ReverseContextModel) else Weights(heads, [], [])
    width = src_tokens.size(1)
    heads = [x.transpose(1, 2) for x in weights]  # to the source and, in mixed attention, to the target
    target = [x[..., width:] for x in heads] if heads[0].size(-1) > width else []
    return Weights([x[..., :width] for x in heads], target, [])


@contextmanager
def recorded_heads(attentions: Iterable[nn.Module]) -> Iterator[list[Tensor]]:
    """The weights (B, H, m, n) of modules of fairseq's attention, which averages heads unless it is asked not to."""
    recorded: list[Tensor] = []

    def ask(module, args, kwargs):
        # without a state of decoding, torch's own attention is called, which gives the mean alone
        return args, {**kwargs, "incremental_state": {}, "need_weights": True, "need_head_weights": True}

    def record(module, args, kwargs, output):
        recorded.append(output[1].transpose(0, 1))

    hooks = []
    for attention in attentions:
        hooks.append(attention.register_forward_pre_hook(ask, with_kwargs=True))
        hooks.append(attention.register_forward_hook(record, with_kwargs=True))
    try:
        yield recorded
    finally:
        for hook in hooks:
            hook.remove()
