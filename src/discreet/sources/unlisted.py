"""Scored items that nobody listed: a source of which not even the items are known before they are found.

What a source with a public list answers, its size or its tally, is private here. So it is a kind of its own, which
gives how many items count for how many users, and after that the items that were drawn to be kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from discreet.discovery_terms import Discovered
from discreet.exact.arrays import Ranks
from discreet.privacy import Sensitivity
from discreet.sources.base import AnySource


class FoundItems(NamedTuple):
    """The items that were kept, and of each the score among all users, in whole steps of the grid."""

    items: list[Any]
    scores: list[int]


KeepItems = Callable[[Ranks, Ranks], Ranks]
"""Which items are kept, by rank, given for how many users the items of each run count and how many they are."""


class UnlistedSource(AnySource, ABC):
    """Scored items that nobody listed.

    Attributes
    ----------
    terms
        How they are to be found.
    sensitivity, adjacency, grid
        How far adding one user can move a score, what neighbours differ by, and what a score is a multiple of.
    """

    terms: Discovered
    sensitivity: Sensitivity
    adjacency: str
    grid: Fraction

    @property
    def delta(self) -> Fraction:
        return self.terms.delta

    @abstractmethod
    def find_items(self, key: str, keep: KeepItems) -> list[FoundItems]:
        """The items that `keep` keeps, all from one snapshot, which is let go again.

        Parameters
        ----------
        key
            What the hash depends on that decides which items of a user count. It need not be secret.
        keep
            Called once for every group, in order; once where there are no groups.
        """


class UnlistedGroups(UnlistedSource):
    """Scored items that nobody listed, in each of several public groups; as `GroupedSource` has them.

    Attributes
    ----------
    keys, names
        The groups in the order of the public list, and the names of the columns that make one.
    each_user, groups_per_user
        Whether a user counts in one group or in many, and in how many at most.
    """

    keys: tuple[Any, ...]
    names: tuple[str, ...]
    each_user: str
    groups_per_user: int
