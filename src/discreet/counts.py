"""Counts: a noisy score for each released item, by the discrete Laplace mechanism on the grid of the scores.

Noise is added in whole steps of the grid, with scale L / epsilon for the L1 sensitivity L in steps. A selection does
not notice a constant added to all scores, but counts do: L is made of max(down, up), never of (down + up) / 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

from discreet.encoding import decoded, encoded
from discreet.errors import InvalidTypeError, InvalidValueError, shown
from discreet.exact.laplace import half_width
from discreet.labels import sort_key
from discreet.privacy import Sensitivity, positive
from discreet.sources.base import Source

MISSED = Fraction(1, 20)
"""How often an interval may miss the score: one in twenty."""


@dataclass(frozen=True)
class Count:
    """About how high a released item scores.

    Attributes
    ----------
    item
        The item.
    value
        Its score with noise: a whole number, or a Fraction where scores are sums in finer steps.
    low, high
        The score is from `low` to `high` with a chance of at least 95%, for this item by itself.

    Examples
    --------
    >>> import discreet
    >>> release = discreet.top_k({"dune": 912, "alien": 877, "heat": 410}, k=2, epsilon=100, counts=1000)
    >>> release.counts
    [Count(item='dune', value=912, low=912, high=912), Count(item='alien', value=877, low=877, high=877)]
    """

    item: Any
    value: int | Fraction
    low: int | Fraction
    high: int | Fraction

    def to_dict(self) -> dict[str, Any]:
        """The count in terms that JSON can hold; fractions are strings."""
        figures = {"value": self.value, "low": self.low, "high": self.high}
        plain = {name: figure if isinstance(figure, int) else str(figure) for name, figure in figures.items()}
        return {"item": encoded(self.item), **plain}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Count:
        """The count that `to_dict` wrote."""
        figures = (data[name] for name in ("value", "low", "high"))
        return cls(decoded(data["item"]), *(Fraction(one) if isinstance(one, str) else int(one) for one in figures))


@dataclass(frozen=True)
class Counting:
    """How the counts of a release are made; all of it is public.

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

    def steps(self, score: Fraction) -> int:
        """The score in whole steps, the nearest where it is not on the grid.

        Rounding keeps the promise: scores that differ by x are at most ceil(x / grid) steps apart.
        """
        return floor(score / self.grid + Fraction(1, 2))

    def counts(self, items: list[Any], scores: list[Fraction], noise: Callable[[Fraction], int]) -> list[Count]:
        """The noisy counts of some items, the largest first, equal ones in the order of their labels.

        `noise` draws whole numbers of some rate. What is listed where is told by the counts and labels alone.
        """
        width = half_width(self.rate, MISSED)
        made = [
            self._count(item, self.steps(score) + noise(self.rate), width)
            for item, score in zip(items, scores, strict=True)
        ]
        return sorted(made, key=lambda count: (-count.value, sort_key(count.item)))

    def _count(self, item: Any, steps: int, width: int) -> Count:
        return Count(item, *(self._reported(at) for at in (steps, steps - width, steps + width)))

    def _reported(self, steps: int) -> int | Fraction:
        value = self.grid * (max(0, steps) if self.floor else steps)
        return int(value) if self.grid.denominator == 1 else value


def check_counts(source: Source, counts: Any, split: Any) -> None:
    """Raises unless counts can be had of this source, as far as its type tells, and are asked for in one way."""
    if counts is None and split is None:
        return
    if split is not None and not (isinstance(split, str) and split == "auto"):
        raise InvalidValueError(f"split must be 'auto' or left out, not {shown(split)}")
    if counts is not None and split is not None:
        raise InvalidValueError("split must be left out with counts, which says what the counts may cost")
    if source.grid is None:
        raise InvalidTypeError(
            "scores must be of a type of whole numbers for counts: round them, or use events with clip and resolution"
        )


def shares(budget: Fraction, counts: Any, split: Any, everything: bool) -> tuple[Fraction, Fraction]:
    """What the selection and the counts cost; `everything` is whether all items are released, which costs nothing.

    One budget is split in halves, or is all for the counts where the selection costs nothing.
    """
    selection = Fraction(0) if everything else budget
    if split is not None:
        return selection / 2, budget - selection / 2
    return selection, Fraction(0) if counts is None else positive(counts, "counts")


def counting(
    sensitivity: Sensitivity, adjacency: str, grid: Fraction, k: int, per_user: int | None, epsilon: Fraction
) -> Counting:
    """How to make epsilon-private counts of k items.

    `sensitivity` is that of adding one user, whatever the adjacency; `per_user` bounds the items that a user touches.
    """
    steps = l1_steps(sensitivity, adjacency, grid, k, per_user)
    return Counting(grid, epsilon / steps, floor=sensitivity.down == 0)


def l1_steps(sensitivity: Sensitivity, adjacency: str, grid: Fraction, k: int, per_user: int | None = None) -> int:
    """How many steps one user can move the scores of k items in all.

    Let m = max(down, up) and w = down + up, in steps rounded up, and l the most items that a user touches (any number
    of them: l = k).

    A user added or removed moves at most min(k, l) of the k scores, each by at most m: min(k, l) m.

    A user replaced leaves at most l items and comes to at most l. Of the k items let a be among both, moved by at most
    w each, and b among one of the two, moved by at most m each. Then 2a + b <= 2l and a + b <= k, hence 2a + b <=
    2 min(k, l) and a + b <= min(k, 2l). Since m <= w <= 2m, the scores move by at most
    a w + b m = (2a + b) (w - m) + (a + b) (2m - w) <= 2 min(k, l) (w - m) + min(k, 2l) (2m - w),
    which some pair of users reaches. For counts of users, m = w, this is min(k, 2l); with l = k it is k w.
    """
    most = ceil(max(sensitivity.down, sensitivity.up) / grid)
    touched = k if per_user is None else min(k, per_user)
    if adjacency == "add-remove":
        return touched * most
    both = ceil((sensitivity.down + sensitivity.up) / grid)
    either = k if per_user is None else min(k, 2 * per_user)
    return 2 * touched * (both - most) + either * (2 * most - both)
