"""Sentences that are longer than a model can read."""

import functools
import logging
import os
import re
import sys

import torch

from .errors import UserError
from .hooks import mends

logger = logging.getLogger(__name__)


@mends("fairseq.tasks.fairseq_task", "FairseqTask.filter_indices_by_size")
def truncate_text_and_name_invalid_size(filter_indices_by_size):
    """Truncate sentences that are given as text, and say in one line which sentence of a data set is too long.

    Why: fairseq fails with a traceback, and the lines that ``fairseq-interactive`` has read are lost. Needed: always.
    """

    @functools.wraps(filter_indices_by_size)
    def filter_indices_by_named_size(self, indices, dataset, max_positions=None, ignore_invalid_inputs=False):
        truncate_sources(dataset, max_positions)
        try:
            return filter_indices_by_size(self, indices, dataset, max_positions, ignore_invalid_inputs)
        except Exception as error:
            if "is invalid" not in str(error):
                raise
            message = re.sub(r"np\.int\d+\((\d+)\)", r"\1", str(error))
            raise UserError(f"{message}. {advice(self, max_positions)}") from error

    return filter_indices_by_named_size


def truncate_sources(dataset, max_positions):
    """Truncate the sources of a data set that consists of lines of text, not of files, and so has no targets."""
    from fairseq.data import LanguagePairDataset

    if not isinstance(dataset, LanguagePairDataset) or dataset.tgt is not None or not isinstance(dataset.src, list):
        return
    longest = max_positions[0] if isinstance(max_positions, (tuple, list)) else max_positions
    if longest is None:
        return
    dataset.src = [truncate_source(tokens, longest) for tokens in dataset.src]
    dataset.src_sizes[:] = [len(tokens) for tokens in dataset.src]


def truncate_source(tokens, longest):
    """Return the first `longest` tokens of a source (n,), the last of which is its end symbol. A warning says so."""
    if len(tokens) <= longest:
        return tokens
    logger.warning(
        f"a source has {len(tokens)} tokens, more than --max-source-positions or the models allow: only the first "
        f"{longest} are translated"
    )
    return torch.cat([tokens[: longest - 1], tokens[-1:]])


def advice(task, max_positions):
    """Return what else to do about sentences of a data set that are too long, besides leaving them out."""
    command = os.path.basename(sys.argv[0])
    options = "--max-source-positions and --max-target-positions"
    if command == "fairseq-validate" or (command != "fairseq-train" and is_below(max_positions, task.max_positions())):
        return (
            f"The limits are those of the model, which was trained with these {options}; fairseq-interactive truncates "
            "a source that is too long"
        )
    return f"To read longer sentences, raise {options}"


def is_below(limits, others):
    """Return whether one of two limits, of source and target, is below the other one of its side."""
    return others is not None and any(limit < other for limit, other in zip(limits, others, strict=True))
