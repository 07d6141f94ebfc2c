"""The lines `R-` of --print-reverse: the reverse translations that ABD and its relatives attend to."""

import torch
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from torch import Tensor

from lwc_fairseq_compat import UserError

from ..data.reverse import reverse_words
from ..models.reverse_context import ReverseContextModel
from .empty_source import has_no_words


@torch.no_grad()
def reverse_lines(
    models: list[BaseFairseqModel], sample: dict, dictionaries: tuple[Dictionary, Dictionary], reverse_target: bool
) -> list[str]:
    """A line for each sentence of a batch, in reading order, with its number if the command numbers sentences.

    Args:
        models: an ensemble; the first model with a reverse translation is asked for it.
        dictionaries: of source and target.
        reverse_target: whether the models' targets are from right to left; their reverse is then in reading order.

    Raises:
        UserError: none of the models has a reverse translation.
    """
    src_tokens = sample["net_input"]["src_tokens"]
    source, target = dictionaries
    rows = find_reverse_translations(models, src_tokens)
    numbers = sample["id"].tolist() if "id" in sample else [""] * len(rows)
    lines = []
    for number, row, is_empty in zip(numbers, rows, has_no_words(src_tokens, source).tolist(), strict=True):
        words = row[:0] if is_empty else row[row.ne(target.pad()) & row.ne(target.eos())]
        words = words if reverse_target else reverse_words(words, target.eos())
        lines.append(f"R-{number}\t{target.string(words)}")
    return lines


def find_reverse_translations(models: list[BaseFairseqModel], src_tokens: Tensor) -> Tensor:
    """The reverse translations (B, T), padding on the right, of sources (B, n) by the first model that has them.

    Raises:
        UserError: no model has them.
    """
    for model in models:
        if isinstance(model, ReverseContextModel):
            return model.reverse_translations(src_tokens)
    raise UserError("--print-reverse: these models have no reverse translation; it is for abd, nsc_rt, nsc_hs")
