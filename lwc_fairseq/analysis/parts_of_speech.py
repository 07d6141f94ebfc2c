"""BLEU of words with certain parts of speech, as in Zhang, Xiong, Su (2018), Table 3."""

from collections.abc import Sequence

from sacrebleu.metrics import BLEU

from lwc_fairseq_compat import UserError

Tagged = tuple[list[str], list[str]]
"""The lines of a text, and lines with a tag for each word."""


def part_of_speech_bleu(tags: Sequence[str], systems: dict[str, Tagged], reference: Tagged) -> dict[str, list[float]]:
    """Compute BLEU-1 to BLEU-4 of each system from only the words with certain tags.

    Args:
        tags: a word counts if its tag begins with one of these; for example, NNS begins with NN.
        systems: by the name of each system, its translations.

    Raises:
        UserError: a line does not have as many tags as words.
    """
    kept = {name: [keep(tags, *pair) for pair in pairs_of(name, *tagged)] for name, tagged in systems.items()}
    against = [[keep(tags, *pair) for pair in pairs_of("the reference", *reference)]]
    return {
        name: [
            round(BLEU(tokenize="none", force=True, max_ngram_order=n).corpus_score(lines, against).score, 2)
            for n in (1, 2, 3, 4)
        ]
        for name, lines in kept.items()
    }


def pairs_of(name: str, lines: list[str], tagged: list[str]) -> list[tuple[list[str], list[str]]]:
    """Return the words and the tags of each line.

    Raises:
        UserError: the numbers of words and tags differ.
    """
    if len(lines) != len(tagged):
        raise UserError(f"{name}: {len(lines)} lines, but {len(tagged)} lines of tags")
    pairs = [(line.split(), tags.split()) for line, tags in zip(lines, tagged, strict=True)]
    for number, (words, tags) in enumerate(pairs, 1):
        if len(words) != len(tags):
            raise UserError(f"{name}, line {number}: {len(words)} words, but {len(tags)} tags")
    return pairs


def keep(tags: Sequence[str], words: list[str], of_words: list[str]) -> str:
    """Return the words whose tags begin with one of `tags`."""
    return " ".join(word for word, tag in zip(words, of_words, strict=True) if tag.startswith(tuple(tags)))
