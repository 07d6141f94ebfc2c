"""The only source of randomness in the demo corpus."""

import random
from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

Option = TypeVar("Option")


class Dice:
    """Random choices that are the same in every version of Python.

    They use ``Random.random()`` alone. Python promises that its sequence for a seed never changes, and promises nothing
    for ``choice``, ``shuffle`` and the other methods.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random
        self._decks: dict[Hashable, list[Any]] = {}

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self._random() < probability

    def number(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, options: Sequence[Option]) -> Option:
        """One of the options, all equally likely."""
        return options[self.number(0, len(options) - 1)]

    def pick_weighted(self, weighted: Sequence[tuple[float, Option]]) -> Option:
        """One of the options, each given as (weight, option)."""
        rest = self._random() * sum(weight for weight, _ in weighted)
        for weight, option in weighted:
            rest -= weight
            if rest < 0:
                return option
        return weighted[-1][1]

    def deal(self, deck: Hashable, options: Sequence[Option]) -> Option:
        """Like ``pick``, but without replacement: no option comes twice before all have come.

        It makes rare words about equally frequent. ``deck`` names the options, which must be the same in every call.
        """
        cards = self._decks.setdefault(deck, [])
        if not cards:
            cards.extend(options)
        card: Option = cards.pop(self.number(0, len(cards) - 1))
        return card
