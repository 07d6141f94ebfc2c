"""Truncation of sources that are too long for a model."""

import logging

import torch
from torch import Tensor

logger = logging.getLogger(__name__)


def truncate_source(tokens: Tensor, longest: int) -> Tensor:
    """Return the first `longest` tokens of a source (n,), the last of which is its end symbol. A warning says so."""
    if len(tokens) <= longest:
        return tokens
    logger.warning(
        f"a source has {len(tokens)} tokens, more than --max-source-positions or the models allow: only the first "
        f"{longest} are translated"
    )
    return torch.cat([tokens[: longest - 1], tokens[-1:]])
