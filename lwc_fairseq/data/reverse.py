"""Right-to-left order: the words of a target in reverse order, with the end symbol still last.

Everything that is stored per target token is reversed in the same way: tokens, scores, attention weights, alignments.
Reversing twice restores the order, so the same functions convert from reading order to right-to-left order and back.

Letters: B sentences, m target tokens.
"""

import torch
import torch.nn.functional as F
from fairseq.token_generation_constraints import pack_constraints, unpack_constraints
from torch import Tensor

from lwc_fairseq_compat import UserError


def is_reversed(task_cfg: object) -> bool:
    """Return whether a task produces targets from right to left.

    Args:
        task_cfg: the configuration of any fairseq task, taken from the task or from a checkpoint, or None.
    """
    return bool(getattr(task_cfg, "reverse_target", False))


def require_reversed(task_cfg: object, source: str) -> None:
    """Raises UserError unless a task produces targets from right to left. The error calls its model `source`."""
    if not is_reversed(task_cfg):
        raise UserError(
            f"{source}: this model was not trained from right to left; train one with --task concat_translation "
            "--reverse-target"
        )


def reversed_order(tokens: Tensor, eos: int) -> Tensor:
    """Return the indices (m,) that reverse a sentence's tokens (m,). The end symbol stays last; it may be missing."""
    words = count_words(tokens, eos)
    return torch.cat([torch.arange(words).flip(0), torch.arange(words, len(tokens))]).to(tokens.device)


def count_words(tokens: Tensor, eos: int) -> int:
    """Count a sentence's tokens (m,), except the end symbol, which may be last."""
    return len(tokens) - int(len(tokens) > 0 and tokens[-1].item() == eos)


def reverse_words(tokens: Tensor, eos: int) -> Tensor:
    """Reverse a sentence's tokens (m,)."""
    return tokens[reversed_order(tokens, eos)]


def reverse_targets(target: Tensor, pad: int, values: Tensor | None = None) -> Tensor:
    """Reverse targets (B, m), or `values` (B, m) of their tokens. The end symbol of each stays last; padding may be on
    either side."""
    real = target.ne(pad)
    return _reverse(target if values is None else values, _first(real), real.sum(1, keepdim=True) - 1)


def reverse_inputs(prev_output_tokens: Tensor, pad: int) -> Tensor:
    """Reverse decoder inputs (B, m). The start symbol of each stays first; padding may be on either side."""
    real = prev_output_tokens.ne(pad)
    return _reverse(prev_output_tokens, _first(real) + 1, real.sum(1, keepdim=True) - 1)


def inputs_of(translations: Tensor, eos: int, pad: int) -> Tensor:
    """Return the decoder inputs (B, m) that lead to translations (B, m), padded on the right: the start symbol, which
    is `eos`, and all tokens of a translation except its last."""
    return F.pad(translations[:, :-1], (1, 0), value=eos).masked_fill(translations.eq(pad), pad)


def _first(real: Tensor) -> Tensor:
    """Return the column (B, 1) of the first True in each row of (B, m)."""
    return real.int().argmax(1, keepdim=True)


def _reverse(tokens: Tensor, first: Tensor, words: Tensor) -> Tensor:
    """Reverse, in each row of (B, m), the `words` tokens that start at column `first`, (B, 1) each."""
    column = torch.arange(tokens.size(1), device=tokens.device).expand_as(tokens)
    inside = (column >= first) & (column < first + words)
    return tokens.gather(1, torch.where(inside, 2 * first + words - 1 - column, column))


def reverse_hypothesis(hypothesis: dict, eos: int) -> dict:
    """Reverse a hypothesis of fairseq's generators: tokens, positional scores, attention and alignment."""
    tokens = hypothesis["tokens"]
    order = reversed_order(tokens, eos)
    attention = hypothesis["attention"]  # (n, m), empty, or None
    if attention is not None and attention.numel():
        attention = attention[:, order]
    return {
        **hypothesis,
        "tokens": tokens[order],
        "positional_scores": hypothesis["positional_scores"][order],
        "attention": attention,
        "alignment": _reverse_alignment(hypothesis["alignment"], order, count_words(tokens, eos)),
    }


def _reverse_alignment(alignment: list | Tensor, order: Tensor, words: int) -> list | Tensor:
    """Reverse fairseq's alignment of a hypothesis, which may be an empty list or tensor."""
    if not isinstance(alignment, list) or not alignment:
        return alignment
    if isinstance(alignment[0], tuple):  # hard: pairs of a source and a target word, in the order of the target
        return [(source, words - 1 - target) for source, target in reversed(alignment)]
    return [alignment[i] for i in order.tolist()]  # soft: a row of weights for each target token


def reverse_constraints(constraints: Tensor) -> Tensor:
    """Reverse fairseq's packed target constraints (B, ...): the order of the phrases, and of the words in each
    phrase."""
    return pack_constraints([[phrase.flip(0) for phrase in unpack_constraints(row)[::-1]] for row in constraints])
