"""The only source of chance in the demo corpus."""

import random


class Dice:
    """Random choices that come out the same on every Python version.

    Only ``Random.random()`` is used: the language promises that its sequence for a seed never changes, and
    promises nothing of the kind for ``choice``, ``shuffle`` and the others.
    """

    def __init__(self, seed):
        self._random = random.Random(seed).random
        self._decks = {}

    def chance(self, probability):
        """True with the given probability."""
        return self._random() < probability

    def number(self, low, high):
        """A whole number from low to high, both included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, options):
        """One of a sequence, each as likely as the next."""
        return options[self.number(0, len(options) - 1)]

    def deal(self, name, options):
        """Like ``pick``, but none comes twice before all have come: for words that are rare even so.

        ``name`` stands for the options, which must be the same every time.
        """
        deck = self._decks.setdefault(name, [])
        if not deck:
            deck.extend(options)
        return deck.pop(self.number(0, len(deck) - 1))

    def pick_weighted(self, weighted):
        """One option from a sequence of (weight, option)."""
        rest = self._random() * sum(weight for weight, _ in weighted)
        for weight, option in weighted:
            rest -= weight
            if rest < 0:
                return option
        return weighted[-1][1]
