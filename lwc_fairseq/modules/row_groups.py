"""The effect of reordering hypotheses on their sentences.

A decoder computes one row for each hypothesis, but stores its caches once per sentence. `beam` consecutive rows share a
sentence: row r belongs to sentence r // beam. When a search reorders the rows, the functions below find the remaining
sentences and the new beam.
"""

import torch
from torch import Tensor


def kept_sentences(order: Tensor, sentences: int, beam: int) -> tuple[Tensor | None, int]:
    """Find the sentences that a new order of rows keeps, and the new beam.

    Args:
        order: the old row that each new row continues, out of sentences · beam old rows.

    Returns:
        The indices of the sentences to keep, or None if all sentences stay in place; and the new beam.
    """
    kept, beam = group_rows(order.tolist(), beam)
    if kept == list(range(sentences)):
        return None, beam
    return torch.tensor(kept, dtype=torch.long, device=order.device), beam


def group_rows(order: list[int], beam: int) -> tuple[list[int], int]:
    """Divide a new order of rows into groups of equal size, each from one sentence.

    The function tries two sizes: first the number of rows before the sentence first changes, then the old beam. The
    first size fits when a search repeats every sentence for its beam; the second fits when it reorders hypotheses or
    drops finished sentences. If neither fits, every row becomes a group of its own.

    Args:
        order: the old row that each new row continues; old row r belongs to sentence r // beam.

    Returns:
        The sentence of each group, and the size of the groups, which is the new beam.
    """
    sentences = [row // beam for row in order]
    run = next((i for i, sentence in enumerate(sentences) if sentence != sentences[0]), len(sentences))
    for size in filter(None, (run, beam)):
        groups = [sentences[i : i + size] for i in range(0, len(sentences), size)]
        if all(group == [group[0]] * size for group in groups):
            return [group[0] for group in groups], size
    return sentences, 1
