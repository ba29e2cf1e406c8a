"""Scores of which each user moves few, made from scores of which a user may move many, and what is lost by that.

For planning alone: it holds both scores of every item, and no release is made from it.
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
    """The scores that a list is judged by, where it is drawn by others.

    Attributes
    ----------
    tally
        The scores that say what is right.
    standings
        By those, the rank of the item at each rank of the scores that the list is drawn by.
    """

    tally: Tally
    standings: Ranks

    def count_lost(self, drawn_by: Tally, k: int, right: int) -> Fraction:
        """How many of the best k by the other scores are not among the `right` best; of ties, on average."""
        ends = np.arange(drawn_by.d) if drawn_by.last is None else drawn_by.last
        run = int(np.searchsorted(ends, k - 1))
        begin, end = (int(ends[run - 1]) + 1 if run else 0), int(ends[run]) + 1
        wrong = self.standings >= right
        tied = Fraction(int(wrong[begin:end].sum()), end - begin)
        return int(wrong[:begin].sum()) + (k - begin) * tied


class ClippableSource(Source):
    """A source that can count its scores with fewer items of each user, for a plan."""

    @property
    @abstractmethod
    def can_be_clipped(self) -> bool:
        """Whether a release from it may have a bound that it has not: where users and items can be told apart."""

    @abstractmethod
    def count_clipped(self, most: int) -> ClippedSource:
        """The scores with at most so many items of each user, beside those of all their items: NOT private."""


class ClippedSource(Source):
    """The scores of a source with at most so many items of each user, and the scores of all their items.

    Parameters
    ----------
    source
        The source of the scores of all items.
    most
        How many items of a user are kept.
    scores, kept, items
        How many items have which score and which one with the bound, in whole steps of the grid of the source. Items
        that are left out have the score 0 both times.
    """

    def __init__(self, source: Source, most: int, scores: Ranks, kept: Ranks, items: Ranks) -> None:
        self.sensitivity, self.grid, self.adjacency = source.sensitivity, source.grid, source.adjacency
        self.max_items_per_user = most
        self._d = source.d
        missing = source.d - int(items.sum())
        if missing < 0:
            raise RuntimeError("the engine has joined the scores in a way of its own")
        nothing = np.zeros(1 if missing else 0, np.int64)
        self._scores, self._kept = np.append(scores, nothing), np.append(kept, nothing)
        self._items = np.append(items, nothing + missing)

    @property
    def d(self) -> int:
        return self._d

    @property
    def keeps_all(self) -> bool:
        """Whether no score is another one with the bound."""
        return bool((self._scores == self._kept).all())

    def tally(self) -> Tally:
        return self._count_runs(self._kept)

    @cached_property
    def truth(self) -> Truth:
        """The scores of all items, and where each item stands by them.

        Of items with equal scores, those with less left of it come first: the order that is hardest to release.
        """
        by_kept = np.lexsort((-self._scores, -self._kept))
        by_score = np.lexsort((self._kept[by_kept], -self._scores[by_kept]))
        items = self._items[by_kept]
        starts = np.empty_like(items)
        starts[by_score] = np.cumsum(items[by_score]) - items[by_score]
        # The j-th item of a pair has the j-th rank from where its pair starts.
        begins = np.cumsum(items) - items
        standings = np.arange(self._d) + np.repeat(starts - begins, items)
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
