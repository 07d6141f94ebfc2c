"""Empty translations for empty sources.

Letters: B sentences, n source tokens.
"""

import torch
from fairseq.data import Dictionary
from torch import Tensor


def has_no_words(src_tokens: Tensor, dictionary: Dictionary) -> Tensor:
    """Return (B,), True for sources (B, n) that contain only padding and end symbols."""
    return (src_tokens.eq(dictionary.pad()) | src_tokens.eq(dictionary.eos())).all(1)


def translate_empty_sources(hypotheses: list[list[dict]], src_tokens: Tensor, dictionary: Dictionary) -> None:
    """Replace the hypotheses of each sentence with an empty source by one empty hypothesis of probability 1.

    Args:
        hypotheses: the hypotheses of each sentence, in fairseq's format; the function changes the list in place.
        src_tokens: (B, n).
    """
    for i in has_no_words(src_tokens, dictionary).nonzero().flatten().tolist():
        hypotheses[i] = [empty_hypothesis(hypotheses[i][0], dictionary.eos())]


def empty_hypothesis(like: dict, eos: int) -> dict:
    """Return a hypothesis without words, with log-probability 0 and the fields of `like`."""
    return {
        **like,
        "tokens": like["tokens"].new_tensor([eos]),
        "score": torch.zeros_like(like["score"]),
        "positional_scores": like["positional_scores"].new_zeros(1),
        "attention": like["attention"][..., :1],
        "alignment": [],
    }
