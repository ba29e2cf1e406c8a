"""Release a noisy score for each item by the discrete Laplace mechanism on the grid of the scores.

The noise is a whole number of steps of the grid, with scale L / epsilon for the L1 sensitivity L in steps. A selection
is invariant under a constant added to all scores, but counts are not: L is made of max(down, up), never of (down + up)
/ 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.exact.discrete import interval_half_width, rounded_half_width
from discreet.labels import sort_key
from discreet.privacy import Sensitivity, positive
from discreet.release.release import CONFIDENCE, Count

MISS_PROBABILITY = 1 - CONFIDENCE
"""The probability that an interval misses the score."""


@dataclass(frozen=True)
class CountMechanism:
    """The discrete Laplace mechanism of the counts of a release; all of its fields are public.

    Attributes
    ----------
    grid
        The size of one step: scores are whole multiples of it.
    rate
        The noise is n steps with probability proportional to exp(-rate |n|).
    floor
        True if counts below zero are reported as zero, because no score can be negative.
    """

    grid: Fraction
    rate: Fraction
    floor: bool

    def to_steps(self, score: Fraction) -> int:
        """Return the score in whole steps, rounded to the nearest step.

        Rounding preserves privacy: scores that differ by x are at most ceil(x / grid) steps apart.
        """
        return round_half_up(score, self.grid)

    def add_noise(self, items: list[Any], scores: list[Fraction], noise: Callable[[Fraction], int]) -> list[Count]:
        """Return the noisy counts of some items, the largest first, equal ones in the order of their labels.

        `noise` draws a whole number for a rate. The order of the result depends on the counts and labels alone.
        """
        form = CountFormat(self.grid, interval_half_width(self.rate, MISS_PROBABILITY), self.floor)
        made = [
            form.make_count(item, self.to_steps(score) + noise(self.rate))
            for item, score in zip(items, scores, strict=True)
        ]
        return sorted(made, key=lambda count: (-count.value, sort_key(count.item)))


@dataclass(frozen=True)
class CountFormat:
    """The format of noisy scores in whole steps; all of its fields are public.

    Attributes
    ----------
    grid
        The size of one step.
    half_width
        The number of steps from the middle of an interval to either end.
    floor
        True if numbers below zero are reported as zero, because no score can be negative.
    """

    grid: Fraction
    half_width: int
    floor: bool

    def make_count(self, item: Any, steps: int) -> Count:
        """Return the count of an item from its noisy score in steps."""
        low, high = steps - self.half_width, steps + self.half_width
        if self.floor and low < 0:
            steps, low, high = max(0, steps), 0, max(0, high)
        return Count(item, *(to_score(number, self.grid) for number in (steps, low, high)))


def make_value_format(grid: Fraction, l1: Fraction, epsilon: Fraction, d: int, *, floor: bool) -> CountFormat:
    """Return the format of the values of all d scores with Laplace noise of scale l1 / epsilon.

    An interval covers the noises of all d items at once, and so holds for any items that are released.
    """
    width = rounded_half_width(epsilon * grid / l1, MISS_PROBABILITY / d)
    return CountFormat(grid, width, floor)


def round_half_up(value: Fraction, step: Fraction = Fraction(1)) -> int:
    """Round to the nearest whole step, half up; half to even could put scores 1 apart on steps 2 apart."""
    # floor(value / step + 1/2) in whole numbers, which is several times faster than in fractions.
    over, under = value.numerator * step.denominator, value.denominator * step.numerator
    return (2 * over + under) // (2 * under)


def to_score(steps: int, grid: Fraction) -> int | Fraction:
    """Return a number of steps of a grid as a score, an int if the grid is whole."""
    return steps * grid.numerator if grid.denominator == 1 else steps * grid


def check_counts(grid: Fraction | None, counts: Any, split: Any) -> None:
    """Raise unless scores on this grid can have the counts, which must be requested in one way only."""
    if split is not None and not (isinstance(split, str) and split == "auto"):
        raise InvalidValueError(f"split must be 'auto' or left out, not {quote(split)}")
    if counts is not None and split is not None:
        raise InvalidValueError("split must be left out with counts, which says what the counts may cost")
    if grid is None:
        raise InvalidTypeError(
            "scores must be of a type of whole numbers for counts: round them, or use events with clip and resolution"
        )


def split_budget(budget: Fraction, selection: Fraction, counts: Any, split: Any) -> tuple[Fraction, Fraction]:
    """Return the epsilon of the selection and of the counts.

    `selection` is the cost of the selection without counts: the budget, or 0 where it is free. With `split` each gets
    half of the budget, or the counts get all of it where the selection is free.
    """
    if split is not None:
        return selection / 2, budget - selection / 2
    return selection, positive(counts, "counts")


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
    """Return the mechanism that makes epsilon-private counts of k items.

    `sensitivity` is that of adding one user, whatever the adjacency. `per_user` is the contribution bound in items.
    `floor` is True if no score can be negative, and `grouped` if the scores belong to one of several groups.
    """
    l1 = l1_steps_by_group if grouped else l1_steps
    steps = l1(sensitivity, adjacency, grid, k, per_user)
    return CountMechanism(grid, epsilon / steps, floor)


def l1_steps(sensitivity: Sensitivity, adjacency: str, grid: Fraction, k: int, per_user: int | None = None) -> int:
    """Return the L1 sensitivity of k scores in steps, after rounding each score to whole steps."""
    return int(l1_distance(_in_whole_steps(sensitivity, grid), adjacency, k, per_user))


def l1_steps_by_group(
    sensitivity: Sensitivity, adjacency: str, grid: Fraction, k: int, per_user: int | None = None
) -> int:
    """Return the same for one of several groups, where a replaced user can leave one group and join another."""
    return int(l1_distance_by_group(_in_whole_steps(sensitivity, grid), adjacency, k, per_user))


@dataclass(frozen=True)
class Reach:
    """The furthest that one user (`single`, max(down, up)) or two users (`both`, down + up) can move one score."""

    single: Fraction
    both: Fraction

    @classmethod
    def of(cls, sensitivity: Sensitivity) -> Reach:
        """Return the reach of the sensitivity of adding one user, in units of score."""
        return cls(max(sensitivity.down, sensitivity.up), sensitivity.span)


def _in_whole_steps(sensitivity: Sensitivity, grid: Fraction) -> Reach:
    """Return the reach in steps, rounded up: scores that differ by x are at most ceil(x / grid) steps apart."""
    reach = Reach.of(sensitivity)
    return Reach(Fraction(ceil(reach.single / grid)), Fraction(ceil(reach.both / grid)))


def l1_distance(reach: Reach, adjacency: str, k: int, per_user: int | None = None) -> Fraction:
    """Return the L1 sensitivity of k scores: the furthest that one user can move them in total.

    Let m = max(down, up) and w = down + up be the reach, and l the contribution bound in items (l = k if unbounded).

    A user added or removed moves at most min(k, l) of the k scores, each by at most m: min(k, l) m.

    A user replaced leaves at most l items and joins at most l. Of the k items let a be among both, moved by at most
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
    """Return the L1 sensitivity to charge one of several groups, where a replaced user can leave one and join another.

    Each of the two groups then sees only a removal or an addition, and both together must cost no more than one group
    that sees the whole replacement. So the result is at least twice the distance of a removal or an addition.
    """
    alone = l1_distance(reach, adjacency, k, per_user)
    if adjacency == "add-remove":
        return alone
    return max(2 * l1_distance(reach, "add-remove", k, per_user), alone)
