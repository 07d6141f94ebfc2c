"""Targets from right to left, on whole batches."""

import torch
from torch import Tensor


def reverse_targets(target: Tensor, pad: int) -> Tensor:
    """Targets (B, m), their end symbol last and padding on the right, the words before it in reverse order."""
    words = target.ne(pad).sum(1, keepdim=True) - 1
    return _reverse(target, torch.zeros_like(words), words)


def reverse_inputs(prev_output_tokens: Tensor, pad: int) -> Tensor:
    """Target input (B, m), the start symbol first and padding on the right, the words after it in reverse order."""
    words = prev_output_tokens.ne(pad).sum(1, keepdim=True) - 1
    return _reverse(prev_output_tokens, torch.ones_like(words), words)


def _reverse(tokens: Tensor, first: Tensor, words: Tensor) -> Tensor:
    """Each row's `words` tokens from `first` on reversed, (B, 1) each."""
    column = torch.arange(tokens.size(1), device=tokens.device).expand_as(tokens)
    inside = (column >= first) & (column < first + words)
    return tokens.gather(1, torch.where(inside, 2 * first + words - 1 - column, column))
