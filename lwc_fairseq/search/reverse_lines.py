"""The output lines `R-` of --print-reverse: the reverse translations that ABD and its relatives attend to."""

import torch
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from torch import Tensor

from lwc_fairseq_compat import UserError

from ..data.reverse import reverse_words
from ..models.abd import ReverseContextModel
from .empty_source import has_no_words


@torch.no_grad()
def reverse_lines(
    models: list[BaseFairseqModel], sample: dict, dictionaries: tuple[Dictionary, Dictionary], reverse_target: bool
) -> list[str]:
    """Return one line for each sentence of a batch: its number, if the command numbers sentences, and its reverse
    translation in reading order.

    Args:
        models: the models of the ensemble. The first one that has a reverse translation provides the lines.
        dictionaries: the source and the target dictionary.
        reverse_target: whether the models' targets are from right to left; their reverse translations are then in
            reading order.

    Raises:
        UserError: no model has a reverse translation.
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
    """Return the reverse translations (B, T), padded on the right, of sources (B, n) by the first model that has them.

    Raises:
        UserError: no model has reverse translations.
    """
    for model in models:
        if isinstance(model, ReverseContextModel):
            return model.reverse_translations(src_tokens)
    raise UserError("--print-reverse: these models have no reverse translation; only abd, nsc_rt and nsc_hs have one")
