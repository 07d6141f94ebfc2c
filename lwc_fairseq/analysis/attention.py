"""Attention weights of a trained model, read while it is given a translation (forced decoding).

Letters: B sentences, H heads, m target tokens, n source tokens.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from fairseq.checkpoint_utils import load_model_ensemble_and_task
from fairseq.tasks import FairseqTask
from torch import Tensor, nn
from tqdm import tqdm

from lwc_fairseq_compat import UserError

from ..models.interface import attention_weights


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
    inputs = source.to(device), sample["net_input"]["prev_output_tokens"].to(device)
    attentions = attention_weights(model, *inputs).source
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
