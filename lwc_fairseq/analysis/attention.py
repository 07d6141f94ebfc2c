"""Attention weights of a trained model, read while it is given a translation (forced decoding).

Letters: B sentences, H heads, m target tokens, n source tokens.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from fairseq.checkpoint_utils import load_model_ensemble_and_task
from fairseq.models.transformer import TransformerModelBase
from torch import Tensor, nn
from tqdm import tqdm

from lwc_fairseq_compat import UserError


@dataclass(frozen=True)
class Forced:
    """A sentence pair and how its translation attends to the source. Row j is of the step that produces word j."""

    number: int  # in the data
    source: list[str]  # n tokens, sub-words, the end symbol last
    target: list[str]  # m, the same
    attentions: list[Tensor]  # a layer each, (H, m, n)
    reverse: bool = False  # the target is from right to left


def force(checkpoint: str, data: str, subset: str, batch_size: int = 50) -> Iterator[Forced]:
    """Force a model to translate a subset of binary data as its references do; sentences come in order of length.

    Raises:
        UserError: the checkpoint or the data cannot be read, or the model has no attention to show.
    """
    if not Path(data).is_dir():
        raise UserError(f"--data {data}: no such folder")
    if not Path(checkpoint).is_file():
        raise UserError(f"{checkpoint}: no such checkpoint")
    (model,), _, task = load_model_ensemble_and_task([checkpoint], arg_overrides={"data": data})
    try:
        task.load_dataset(subset)
    except FileNotFoundError as error:
        raise UserError(f"--subset {subset}: {data} has none") from error
    dataset = task.dataset(subset)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device).eval()
    batches = task.get_batch_iterator(dataset, max_sentences=batch_size, max_positions=None)
    for sample in tqdm(batches.next_epoch_itr(shuffle=False), desc="reading attention", leave=False):
        if sample:
            yield from force_batch(model, task, sample, device)


@torch.no_grad()
def force_batch(model: nn.Module, task, sample: dict, device: str) -> Iterator[Forced]:
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


def source_attentions(model: nn.Module, src_tokens: Tensor, prev_output_tokens: Tensor) -> list[Tensor]:
    """Each layer's attention to the source, (B, H, m, n), for a translation (B, m) given after its start symbol.

    Raises:
        UserError: the model is of a kind whose attention is not known here.
    """
    if isinstance(model, TransformerModelBase):
        with recorded_heads(model.decoder) as recorded:
            model(src_tokens, src_tokens.ne(model.encoder.padding_idx).sum(1), prev_output_tokens)
        return [weights.transpose(0, 1) for weights in recorded]
    _, extra = model.decoder(prev_output_tokens, model.encoder(src_tokens))
    if "attentions" not in extra:
        raise UserError(f"{type(model).__name__}: the attention of this model is not known here")
    weights = extra["attentions"]
    if hasattr(model.encoder, "reverse_translations"):
        weights = weights[:1]  # the other is to the reverse translation
    by_head = [x[:, None] if x.dim() == 3 else x.transpose(1, 2) for x in weights]
    return [x[..., : src_tokens.size(1)] for x in by_head]


@contextmanager
def recorded_heads(decoder: nn.Module) -> Iterator[list[Tensor]]:
    """The weights (H, B, m, n) of each layer's source attention in fairseq's Transformer.

    It averages heads unless it is asked not to.
    """
    recorded: list[Tensor] = []

    def ask(module, args, kwargs):
        return args, {**kwargs, "need_weights": True, "need_head_weights": True}

    hooks = []
    for layer in decoder.layers:
        hooks.append(layer.encoder_attn.register_forward_pre_hook(ask, with_kwargs=True))
        hooks.append(layer.encoder_attn.register_forward_hook(lambda *call: recorded.append(call[-1][1])))
    try:
        yield recorded
    finally:
        for hook in hooks:
            hook.remove()
