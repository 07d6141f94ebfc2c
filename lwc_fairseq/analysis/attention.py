"""Attention weights of a trained model under teacher forcing with given translations (forced decoding).

Letters: B sentences, H heads, m target tokens, n source tokens.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from fairseq.checkpoint_utils import load_model_ensemble_and_task
from fairseq.data import Dictionary
from fairseq.tasks import FairseqTask
from torch import Tensor, nn
from tqdm import tqdm

from lwc_fairseq_compat import UserError
from lwc_fairseq_compat.data import require_targets

from ..data.reverse import is_reversed, reversed_order
from ..models.interface import attention_weights


@dataclass(frozen=True)
class Forced:
    """A sentence pair and its attention weights. Row j of the weights belongs to the step that produces token j.

    The translation is in reading order, even if the model produces it from right to left.
    """

    number: int  # index in the data
    source: list[str]  # n subwords, the end symbol last
    target: list[str]  # m subwords, the end symbol last
    attentions: list[Tensor]  # one tensor per layer, (H, m, n)


def load(checkpoint: str, data: str) -> tuple[nn.Module, FairseqTask]:
    """Load a trained model, on a GPU if there is one, and its task.

    Raises:
        UserError: the checkpoint or the folder of binary data does not exist.
    """
    if not Path(data).is_dir():
        raise UserError(f"--data {data}: no such folder")
    if not Path(checkpoint).is_file():
        raise UserError(f"{checkpoint}: no such checkpoint")
    (model,), _, task = load_model_ensemble_and_task([checkpoint], arg_overrides={"data": data})
    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval(), task


def force(model: nn.Module, task: FairseqTask, subset: str, batch_size: int = 50) -> Iterator[Forced]:
    """Yield the attention of a model that is forced to produce the references of a subset of the task's data.

    The sentences are in order of length.

    Raises:
        UserError: the subset does not exist or has no references, or the attention of the model cannot be read.
    """
    task.load_dataset(subset)
    dataset = task.dataset(subset)
    require_targets(dataset, "word alignment")
    device = next(model.parameters()).device
    batches = task.get_batch_iterator(dataset, max_sentences=batch_size, max_positions=None)
    for sample in tqdm(batches.next_epoch_itr(shuffle=False), desc="reading attention", leave=False):
        if sample:
            yield from force_batch(model, task, sample, device)


@torch.no_grad()
def force_batch(model: nn.Module, task: FairseqTask, sample: dict, device: torch.device) -> Iterator[Forced]:
    """Yield the sentences of one batch."""
    source = sample["net_input"]["src_tokens"]
    inputs = source.to(device), sample["net_input"]["prev_output_tokens"].to(device)
    attentions = attention_weights(model, *inputs).source
    target = sample["target"]
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


def symbols(dictionary: Dictionary, tokens: Tensor) -> list[str]:
    return [dictionary[token] for token in tokens.tolist()]
