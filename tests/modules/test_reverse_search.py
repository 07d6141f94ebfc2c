"""The greedy search: which tokens it chooses, and for which sentences it asks."""

import torch

from conftest import EOS, PAD
from lwc_fairseq.modules.reverse_search import choose_greedily

A, B = 5, 6
TRANSLATIONS = [[A, EOS], [B, A, B, A, B, A], [EOS], [A, A, B, EOS], [B, EOS]]
LIMITS = torch.tensor([9, 6, 9, 4, 9])


def test_sentences_leave_the_batch_after_their_end():
    """As soon as they are a quarter of it. The search ends with the last sentence, at its limit."""
    asked = []

    def next_logits(token, sentences):
        step = len(asked)
        last = [EOS if step == 0 else (TRANSLATIONS[i] + [PAD] * 9)[step - 1] for i in sentences.tolist()]
        assert token.squeeze(1).tolist() == last
        asked.append(sentences.tolist())
        logits = torch.zeros(len(sentences), 8)
        logits[:, PAD] = 9.0  # never chosen
        for row, i in enumerate(sentences.tolist()):
            logits[row, (TRANSLATIONS[i] + [A] * 9)[step]] = 1.0
        return logits

    kept = []
    tokens = choose_greedily(next_logits, kept.append, LIMITS, EOS, PAD)
    assert [[token for token in row if token != PAD] for row in tokens.tolist()] == TRANSLATIONS
    assert asked == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [1, 3], [1, 3], [1], [1]]
    assert [rows.tolist() for rows in kept] == [[1, 3], [0]]
