"""An empty source has an empty translation.

Letters: B sentences, n source tokens.
"""

import torch
from fairseq.data import Dictionary
from torch import Tensor


def has_no_words(src_tokens: Tensor, dictionary: Dictionary) -> Tensor:
    """(B,), True for sources (B, n) that hold only padding and end symbols."""
    return (src_tokens.eq(dictionary.pad()) | src_tokens.eq(dictionary.eos())).all(1)


def translate_empty_sources(hypotheses: list[list[dict]], src_tokens: Tensor, dictionary: Dictionary) -> None:
    """Give each sentence whose source is empty one hypothesis, which is empty and has a probability of 1.

    Args:
        hypotheses: of each sentence, in fairseq's form; changed in place.
        src_tokens: (B, n)
    """
    for i in has_no_words(src_tokens, dictionary).nonzero().flatten().tolist():
        hypotheses[i] = [empty_hypothesis(hypotheses[i][0], dictionary.eos())]


def empty_hypothesis(like: dict, eos: int) -> dict:
    """A hypothesis without words and of log-probability 0, with the fields of `like`."""
    return {
        **like,
        "tokens": like["tokens"].new_tensor([eos]),
        "score": torch.zeros_like(like["score"]),
        "positional_scores": like["positional_scores"].new_zeros(1),
        "attention": like["attention"][..., :1],
        "alignment": [],
    }
