"""What is good enough: the goals that a release is judged by, in terms of ranks.

A released set is described by h, how many of the best ranks it holds before the first one that it lacks, and t, its
worst rank, counted from 1; most goals are h >= some h0 and t <= some t0. Recall counts the released items that are
right. An item is right where it scores at least as much as the k-th best: of items tied with the k-th any is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from discreet.errors import InvalidValueError, quote
from discreet.privacy import exact
from discreet.tally import Tally
from discreet.text import decimal

GOALS = ("top", "great", "good", "optimal", "recall")
"""The goals by name."""

Region = tuple[int, int]
"""H at least the first number, t at most the second."""


@dataclass(frozen=True)
class Hits:
    """How many of the k released items are among the best `right` ranks.

    Attributes
    ----------
    right
        How many ranks are right: all that score at least as much as the k-th.
    least
        None for the expected share of k; else how many must be right, for the probability that so many are.
    """

    right: int
    least: int | None = None

    def rate(self, hits: int, k: int) -> float:
        """What so many hits count for, from 0 to 1."""
        return hits / k if self.least is None else float(hits >= self.least)


Wanted = Region | Hits
"""What a probability, or the expected share, is wanted of."""


def goals(tally: Tally, k: int, share: Fraction | None = None) -> dict[str, Wanted]:
    """The goals for k of d items; recall is the expected share, or at least this share being right."""
    d = tally.d
    great, good = (ceil(k / 10), min(d, 11 * k // 10)), (ceil(k / 100), min(d, 3 * k // 2))
    right = count_right_ranks(tally, k)
    optimal = (k, k)
    if right > k:
        # Of the items that share the k-th score, any will do.
        optimal = (_first(lambda rank: tally.gap(rank, k - 1) == 0, 0, k - 1), right)
    recall = Hits(right, None if share is None else ceil(share * k))
    return {"top": (k, k), "great": great, "good": good, "optimal": optimal, "recall": recall}


def count_right_ranks(tally: Tally, k: int) -> int:
    """How many items score at least as much as the k-th."""
    if k == tally.d or tally.gap(k - 1, k) > 0:
        return k
    return _first(lambda rank: tally.gap(k - 1, rank) > 0, k, tally.d)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The first rank from `low` on at which something holds, which then holds on; `high` if there is none before."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def is_reached(wanted: Wanted, ranks: Any, k: int) -> float:
    """What a set of ranks in ascending order counts for: 1 where it is good enough, 0 where not, or its share."""
    if isinstance(wanted, Hits):
        return wanted.rate(int(np.searchsorted(ranks, wanted.right)), k)
    h, t = describe_ranks(ranks)
    return float(h >= wanted[0] and t <= wanted[1])


def describe_ranks(ranks: Any) -> Region:
    """H and t of a set of ranks in ascending order: how many of the best it holds in a row, and the worst, from 1."""
    missing = np.flatnonzero(ranks != np.arange(len(ranks)))
    return int(missing[0]) if len(missing) else len(ranks), int(ranks[-1]) + 1


def check_goal(goal: Any, share: Any) -> Fraction | None:
    """The share that must be right, where one was given; the goal must be one, and must be recall with a share."""
    if goal not in GOALS:
        raise InvalidValueError(f"goal must be one of {', '.join(GOALS)}, not {quote(goal)}")
    if share is not None and goal != "recall":
        raise InvalidValueError(f"share must be left out with the goal {goal}: it says how much of recall is enough")
    return check_share(share)


def check_share(share: Any) -> Fraction | None:
    """The share of the list that must be right, exactly, or None for the expected share."""
    if share is None:
        return None
    number = exact(share, "share")
    if not 0 < number <= 1:
        raise InvalidValueError(f"share must be above 0 and at most 1, not {quote(share)}")
    return number


def name_goal(goal: str, share: Fraction | None) -> str:
    """What a goal is called in a table: recall by the share that must be right, where there is one."""
    return goal if goal != "recall" or share is None else f"{decimal(share)} right"


def split_edges(wanted: Iterable[Wanted]) -> list[int]:
    """The ranks t, from 0, at which the classes that count for something may begin or end."""
    return sorted({one.right if isinstance(one, Hits) else one[1] for one in wanted})
