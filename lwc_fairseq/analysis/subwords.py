"""Sub-words and the words that they make up, as subword-nmt (@@) and sentencepiece (▁) write them."""

from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

from lwc_fairseq_compat import UserError

from ..preparation import make_subwords

CONTINUES = "@@"
"""At the end of a token of subword-nmt, says that the next token belongs to the same word."""

BEGINS = "▁"
"""At the beginning of a token of sentencepiece, says that a word begins (U+2581)."""

SUBWORDS_HINT = " (if the data has sub-words, --bpe-codes or --sentencepiece-model makes them)"
"""Added to a warning of unknown tokens."""


def word_numbers(tokens: list[str]) -> list[int]:
    """Return, for each token, the number of its word, counted from 0.

    If a token of the sentence begins with ▁, words begin at such tokens. Otherwise, a token that ends in @@ continues
    in the next token.
    """
    if any(token.startswith(BEGINS) for token in tokens):
        begins = [token.startswith(BEGINS) for token in tokens[1:]]
    else:
        begins = [not token.endswith(CONTINUES) for token in tokens[:-1]]
    return list(accumulate(begins, initial=0))[: len(tokens)]


def join(tokens: list[str]) -> str:
    """Join tokens to words, with a space between words."""
    words: dict[int, str] = {}
    for number, token in zip(word_numbers(tokens), tokens, strict=True):
        words[number] = words.get(number, "") + token.removeprefix(BEGINS).removesuffix(CONTINUES)
    return " ".join(words.values())


def segmenter(bpe_codes: Path | None, sentencepiece_model: Path | None) -> Callable[[str], str]:
    """Return a function that splits the words of a text into sub-words; without files, it leaves the text as it is.

    Raises:
        UserError: a file does not exist or is invalid, or sentencepiece is not installed.
    """
    for path in filter(None, (bpe_codes, sentencepiece_model)):
        if not path.is_file():
            raise UserError(f"{path}: no such file")
    if bpe_codes:
        return make_subwords("subword_nmt", str(bpe_codes)).encode
    if sentencepiece_model:
        return make_subwords("sentencepiece", str(sentencepiece_model)).encode
    return str
