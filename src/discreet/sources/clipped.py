"""Scores under a contribution bound in items beside the scores without it, to plan with the loss that the bound causes.

These sources hold both scores of every item and are NOT private: no release is made from them.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from discreet.errors import InvalidTypeError
from discreet.exact.arrays import Ranks
from discreet.mechanisms.tally import Tally
from discreet.sources.base import Source


@dataclass(frozen=True, eq=False, repr=False)
class Truth:
    """The scores that a list is judged by if it is drawn by other scores.

    Attributes
    ----------
    tally
        The true scores.
    standings
        The rank by the true scores of the item at each rank of the scores that the list is drawn by.
    """

    tally: Tally
    standings: Ranks

    def count_lost(self, drawn_by: Tally, k: int, right: int) -> Fraction:
        """Return how many of the best k by the other scores are not among the `right` best, averaged over ties."""
        ends = np.arange(drawn_by.d) if drawn_by.last is None else drawn_by.last
        run = int(np.searchsorted(ends, k - 1))
        begin, end = (int(ends[run - 1]) + 1 if run else 0), int(ends[run]) + 1
        wrong = self.standings >= right
        tied = Fraction(int(wrong[begin:end].sum()), end - begin)
        return int(wrong[:begin].sum()) + (k - begin) * tied


class ClippableSource(Source):
    """A source that can count its scores under a contribution bound, for a plan."""

    @property
    @abstractmethod
    def can_be_clipped(self) -> bool:
        """True if a release from the source may get a contribution bound: it has none, and users can be told apart."""

    @abstractmethod
    def count_clipped(self, most: int) -> ClippedSource:
        """Return the scores with at most `most` items of each user, beside those of all items: NOT private."""


class ClippedSource(Source):
    """The scores of a source with at most `most` items of each user, and the scores of all items.

    Parameters
    ----------
    source
        The source of the scores of all items.
    most
        The number of items of a user that are kept.
    scores, kept, items
        The distinct pairs of a score and its score under the bound, in whole steps of the grid, and the number of items
        with each pair. Items left out have the score 0 in both.
    """

    def __init__(self, source: Source, most: int, scores: Ranks, kept: Ranks, items: Ranks) -> None:
        self.sensitivity, self.grid, self.adjacency = source.sensitivity, source.grid, source.adjacency
        self.max_items_per_user = most
        self.d = source.d
        missing = source.d - int(items.sum())
        if missing < 0:
            raise RuntimeError("the engine has joined the scores in a way of its own")
        nothing = np.zeros(1 if missing else 0, np.int64)
        self._scores, self._kept = np.append(scores, nothing), np.append(kept, nothing)
        self._items = np.append(items, nothing + missing)

    @property
    def keeps_all(self) -> bool:
        """True if the bound changes no score."""
        return bool((self._scores == self._kept).all())

    def tally(self) -> Tally:
        return self._count_runs(self._kept)

    @cached_property
    def truth(self) -> Truth:
        """The scores of all items, and the standing of each item by them.

        Ties are ranked least-retained first, which is the worst case.
        """
        by_kept = np.lexsort((-self._scores, -self._kept))
        by_score = np.lexsort((self._kept[by_kept], -self._scores[by_kept]))
        items = self._items[by_kept]
        starts = np.empty_like(items)
        starts[by_score] = np.cumsum(items[by_score]) - items[by_score]
        # The j-th item of a pair of scores has the j-th rank after the start of the pair.
        begins = np.cumsum(items) - items
        standings = np.arange(self.d) + np.repeat(starts - begins, items)
        return Truth(self._count_runs(self._scores), standings)

    def _count_runs(self, steps: Ranks) -> Tally:
        values, places = np.unique(-steps, return_inverse=True)
        counts = np.zeros(len(values), np.int64)
        np.add.at(counts, places, self._items)
        return Tally.of_runs((-values).tolist(), counts.tolist(), self.grid)

    def items(self, ranks: Ranks) -> NoReturn:
        raise InvalidTypeError("scores that were made for a plan have no items")

    def every_item(self) -> list[Any]:
        raise InvalidTypeError("scores that were made for a plan have no items")
