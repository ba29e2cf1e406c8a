"""Counts: a noisy score for each released item, by the discrete Laplace mechanism on the grid of the scores.

Noise is added in whole steps of the grid, with scale L / epsilon for the L1 sensitivity L in steps. A selection does
not notice a constant added to all scores, but counts do: L is made of max(down, up), never of (down + up) / 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.exact.discrete import interval_half_width, rounded_half_width
from discreet.labels import sort_key
from discreet.privacy import Sensitivity, positive
from discreet.release.release import Count

MISS_PROBABILITY = Fraction(1, 20)
"""How often an interval may miss the score: one in twenty."""


@dataclass(frozen=True)
class CountMechanism:
    """The discrete Laplace mechanism that makes the counts of a release; all of it is public.

    Attributes
    ----------
    grid
        What one step is worth: scores are whole multiples of it.
    rate
        The noise is n steps with probability proportional to exp(-rate |n|).
    floor
        Whether counts below zero are reported as zero, because no score can be negative.
    """

    grid: Fraction
    rate: Fraction
    floor: bool

    def to_steps(self, score: Fraction) -> int:
        """The score in whole steps, the nearest where it is not on the grid.

        Rounding keeps the promise: scores that differ by x are at most ceil(x / grid) steps apart.
        """
        return round_half_up(score / self.grid)

    def add_noise(self, items: list[Any], scores: list[Fraction], noise: Callable[[Fraction], int]) -> list[Count]:
        """The noisy counts of some items, the largest first, equal ones in the order of their labels.

        `noise` draws whole numbers of some rate. What is listed where is told by the counts and labels alone.
        """
        form = CountFormat(self.grid, interval_half_width(self.rate, MISS_PROBABILITY), self.floor)
        made = [
            form.make_count(item, self.to_steps(score) + noise(self.rate))
            for item, score in zip(items, scores, strict=True)
        ]
        return sorted(made, key=lambda count: (-count.value, sort_key(count.item)))


@dataclass(frozen=True)
class CountFormat:
    """How noisy scores in whole steps are reported; all of it is public.

    Attributes
    ----------
    grid
        What one step is worth.
    half_width
        How many steps an interval reaches to either side.
    floor
        Whether what is below zero is reported as zero, because no score can be negative.
    """

    grid: Fraction
    half_width: int
    floor: bool

    def make_count(self, item: Any, steps: int) -> Count:
        """The count of an item whose noisy score is so many steps."""
        low, high, worth = steps - self.half_width, steps + self.half_width, self._worth
        if self.floor and low < 0:
            steps, low, high = max(0, steps), 0, max(0, high)
        return Count(item, steps * worth, low * worth, high * worth)

    @cached_property
    def _worth(self) -> int | Fraction:
        """What one step is worth, as a whole number where it is one."""
        return self.grid.numerator if self.grid.denominator == 1 else self.grid


def make_value_format(grid: Fraction, l1: Fraction, epsilon: Fraction, d: int, *, floor: bool) -> CountFormat:
    """How the values of all d scores with Laplace noise of scale l1 / epsilon are reported.

    An interval holds for the noises of all d items at once, and so for whichever are released.
    """
    width = rounded_half_width(epsilon * grid / l1, MISS_PROBABILITY / d)
    return CountFormat(grid, width, floor)


def round_half_up(value: Fraction) -> int:
    """The nearest whole number, the larger of two: no rounding half to even, by which 1 apart could be 2 steps."""
    return floor(value + Fraction(1, 2))


def check_counts(grid: Fraction | None, counts: Any, split: Any) -> None:
    """Raises unless counts can be had of scores on this grid, if any, and are asked for in one way."""
    if counts is None and split is None:
        return
    if split is not None and not (isinstance(split, str) and split == "auto"):
        raise InvalidValueError(f"split must be 'auto' or left out, not {quote(split)}")
    if counts is not None and split is not None:
        raise InvalidValueError("split must be left out with counts, which says what the counts may cost")
    if grid is None:
        raise InvalidTypeError(
            "scores must be of a type of whole numbers for counts: round them, or use events with clip and resolution"
        )


def split_budget(budget: Fraction, counts: Any, split: Any, everything: bool) -> tuple[Fraction, Fraction]:
    """What the selection and the counts cost; `everything` is whether all items are released, which costs nothing.

    One budget is split in halves, or is all for the counts where the selection costs nothing.
    """
    selection = Fraction(0) if everything else budget
    if split is not None:
        return selection / 2, budget - selection / 2
    return selection, Fraction(0) if counts is None else positive(counts, "counts")


def make_count_mechanism(
    sensitivity: Sensitivity,
    adjacency: str,
    grid: Fraction,
    k: int,
    per_user: int | None,
    epsilon: Fraction,
    *,
    floor: bool = False,
    grouped: bool = False,
) -> CountMechanism:
    """The mechanism that makes epsilon-private counts of k items.

    `sensitivity` is that of adding one user, whatever the adjacency; `per_user` bounds the items that a user touches.
    `floor` says whether no score can be negative, and `grouped` whether they are those of one of several groups.
    """
    l1 = l1_steps_by_group if grouped else l1_steps
    steps = l1(sensitivity, adjacency, grid, k, per_user)
    return CountMechanism(grid, epsilon / steps, floor)


def l1_steps(sensitivity: Sensitivity, adjacency: str, grid: Fraction, k: int, per_user: int | None = None) -> int:
    """How many steps one user can move the scores of k items in all, each rounded to whole steps."""
    return int(l1_distance(_in_whole_steps(sensitivity, grid), adjacency, k, per_user))


def l1_steps_by_group(
    sensitivity: Sensitivity, adjacency: str, grid: Fraction, k: int, per_user: int | None = None
) -> int:
    """How many steps to count for a group, where one user replaced can leave a group and come to another."""
    return int(l1_distance_by_group(_in_whole_steps(sensitivity, grid), adjacency, k, per_user))


@dataclass(frozen=True)
class Reach:
    """How far one user can move a score: `single` is max(down, up), and `both` is down + up, by two users."""

    single: Fraction
    both: Fraction

    @classmethod
    def of(cls, sensitivity: Sensitivity) -> Reach:
        """The reach of a sensitivity of adding one user, in units of score."""
        return cls(max(sensitivity.down, sensitivity.up), sensitivity.down + sensitivity.up)


def _in_whole_steps(sensitivity: Sensitivity, grid: Fraction) -> Reach:
    """The reach in steps, rounded up: scores that differ by x are at most ceil(x / grid) steps apart once rounded."""
    reach = Reach.of(sensitivity)
    return Reach(Fraction(ceil(reach.single / grid)), Fraction(ceil(reach.both / grid)))


def l1_distance(reach: Reach, adjacency: str, k: int, per_user: int | None = None) -> Fraction:
    """How far one user can move the scores of k items in all.

    Let m = max(down, up) and w = down + up be the reach, and l the most items that a user touches (any number of them:
    l = k).

    A user added or removed moves at most min(k, l) of the k scores, each by at most m: min(k, l) m.

    A user replaced leaves at most l items and comes to at most l. Of the k items let a be among both, moved by at most
    w each, and b among one of the two, moved by at most m each. Then 2a + b <= 2l and a + b <= k, hence 2a + b <=
    2 min(k, l) and a + b <= min(k, 2l). Since m <= w <= 2m, the scores move by at most
    a w + b m = (2a + b) (w - m) + (a + b) (2m - w) <= 2 min(k, l) (w - m) + min(k, 2l) (2m - w),
    which some pair of users reaches. For counts of users, m = w, this is min(k, 2l); with l = k it is k w.
    """
    touched = k if per_user is None else min(k, per_user)
    if adjacency == "add-remove":
        return touched * reach.single
    either = k if per_user is None else min(k, 2 * per_user)
    return 2 * touched * (reach.both - reach.single) + either * (2 * reach.single - reach.both)


def l1_distance_by_group(reach: Reach, adjacency: str, k: int, per_user: int | None = None) -> Fraction:
    """How far to count for a group, where one user replaced can leave a group and come to another.

    Each of the two groups then sees a user removed or added alone, and both together must cost no more than one group
    that sees the whole: so a removal or an addition is half of what is counted, or less.
    """
    alone = l1_distance(reach, adjacency, k, per_user)
    if adjacency == "add-remove":
        return alone
    return max(2 * l1_distance(reach, "add-remove", k, per_user), alone)
