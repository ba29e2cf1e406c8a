"""Scores in descending order, run-length encoded, as mechanisms read them, and the selections that they draw.

Ranks count from 0, so that the last rank of 2^63 items is still an int64; rank r here is rank r + 1 in the papers. A
score is the exact rational that it denotes. Only differences of scores leave this module as floats, and each is rounded
once. Nothing here prints scores.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidValueError
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.ball import LARGEST
from discreet.exact.entropy import Entropy

CORE, OTHERWISE = "core", "otherwise"
"""The kinds of candidates of a mechanism that chooses between several."""

TINY = 2.0**-1000
"""Positive gaps are at least this after rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """Scores by descending rank.

    Parameters
    ----------
    column
        The scores in ascending order, or the distinct ones with `last`.
    last
        The last rank of each run of equal scores, in descending order of score; None if every item is a run.
    """

    column: Column
    last: Ranks | None = None

    @classmethod
    def of_runs(cls, values: Sequence[Any], counts: Sequence[int], unit: Fraction | None = None) -> Tally:
        """Return the tally of distinct scores in descending order and their numbers of items, up to 2^63 items in all.

        Parameters
        ----------
        values
            The scores, or with `unit` whole numbers of units that fit 64 bits and a sign.
        counts
            The number of items with each score.
        unit
            The score that one step of `values` stands for.
        """
        if not values or len(values) != len(counts) or min(counts) < 1:
            raise InvalidValueError("counts must give a positive number of items for every score")
        if any(one <= other for one, other in pairwise(values)):
            raise InvalidValueError("values must be in descending order, without repeats")
        total = sum(map(int, counts))
        if total > 2**63:
            raise InvalidValueError(f"counts must add up to at most 2^63 items, not {total}")
        last = np.array([end - 1 for end in accumulate(map(int, counts))], np.int64)
        if unit is not None:
            return cls(_integer_column(values[::-1], unit), last)
        ascending = [Fraction(value) for value in reversed(values)]
        unit = common_unit(ascending)
        if unit is None:
            return cls(ExactColumn(ascending), last)
        return cls(_integer_column([int(value / unit) for value in ascending], unit), last)

    @property
    def d(self) -> int:
        """The number of items."""
        return len(self.column) if self.last is None else int(self.last[-1]) + 1

    def last_of_run(self, ranks: Ranks) -> Ranks:
        """Return the last rank with the same score, for each rank."""
        positions = self._positions(ranks)
        if self.last is not None:
            return self.last[len(self.column) - 1 - positions]
        return len(self.column) - 1 - self.column.run(positions)

    def raw(self, ranks: Ranks) -> NDArray[Any]:
        """Return the scores at some ranks as the column stores them."""
        return self.column.raw(self._positions(ranks))

    def exact(self, rank: int) -> Fraction:
        """Return the score at a rank."""
        return self.column.unit * Fraction(self.number(rank))

    def number(self, rank: int) -> int | float | Fraction:
        """Return the score at a rank in units of the column, exactly."""
        run = rank if self.last is None else int(self.last.searchsorted(rank))
        return self.column.number(len(self.column) - 1 - run)

    def gap(self, upper: int, lower: int) -> Fraction:
        """Return the score at rank `upper` minus that at rank `lower`."""
        one, other = self.number(upper), self.number(lower)
        # Whole numbers and rationals subtract exactly, floats do not.
        if isinstance(one, float) or isinstance(other, float):
            one, other = Fraction(one), Fraction(other)
        return self.column.unit * (one - other)

    def gaps(self, upper: Ranks, lower: Ranks, scale: Fraction) -> Floats:
        """Return scale (score[upper] - score[lower]) for pairs of ranks, and 0 if it is negative.

        The error is a relative 2^-50 or an absolute 2^-1000; the largest float stands for all beyond.
        """
        larger, smaller = self._positions(upper), self._positions(lower)
        factor = to_float(scale * self.column.unit)
        differences = self.column.differences(larger, smaller)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            gaps = factor * differences
            # Neither inf nor NaN is below LARGEST.
            if 2.0**-900 < factor < 2.0**900 and gaps.max(initial=0.0) < LARGEST:
                return gaps
            if 2.0**-900 < factor < 2.0**900 and not np.isinf(differences).any():
                return np.minimum(gaps, LARGEST)
        pairs = zip(upper.tolist(), lower.tolist(), strict=True)
        exact = [scale * max(self.gap(i, j), Fraction(0)) for i, j in pairs]
        return np.minimum(np.array([to_float(value) for value in exact], np.float64), LARGEST)

    def scaled_distance(self, one: int, other: int, scale: Fraction) -> float:
        """Return scale times the distance of the scores at two ranks, in units of the column; inf or NaN beyond floats.

        It is faster than arrays for one pair.
        """
        # Both scores are rationals (or whole numbers), or both are floats.
        distance: Any = abs(self.number(one) - self.number(other))
        return to_float(scale) * (distance if isinstance(distance, float) else to_float(distance))

    def within(self, ranks: Ranks, reaches: Floats) -> Ranks:
        """Return the last rank whose score is less than `reach` below that of each rank, for positive reaches."""
        runs = len(self.column) - 1 - self.column.within(self._positions(ranks), reaches)
        return runs if self.last is None else self.last[runs]

    def without(self, ranks: Ranks) -> Remaining:
        """Return the tally without some ranks, which must be ascending."""
        return Remaining(self, ranks)

    def largest_gap(self, upper: Ranks, lower: Ranks) -> Fraction:
        """Return the largest of the gaps between pairs of ranks exactly, or 0 if none is positive.

        Rounding preserves order, so the largest gap is among those that round to the largest float.
        """
        rounded = self.gaps(upper, lower, Fraction(1))
        highest = rounded.max()
        # Only rationals have gaps so small that they round to 0.
        if highest == 0.0 and not isinstance(self.column, ExactColumn):
            return Fraction(0)
        ties = np.flatnonzero(rounded == highest)
        pairs = zip(upper[ties].tolist(), lower[ties].tolist(), strict=True)
        return max(Fraction(0), *(self.gap(i, j) for i, j in pairs))

    def scale_by(self, factor: Fraction) -> Tally:
        """Return the tally with every score multiplied by a positive rational."""
        numbers = map(self.column.number, range(len(self.column)))
        return Tally(ExactColumn([factor * self.column.unit * Fraction(number) for number in numbers]), self.last)

    def _positions(self, ranks: Ranks) -> Ranks:
        runs = ranks if self.last is None else np.searchsorted(self.last, ranks, side="left")
        return len(self.column) - 1 - runs


@dataclass(frozen=True, eq=False, repr=False)
class Remaining:
    """A tally without some ranks; ranks count the remaining items."""

    tally: Tally
    gone: Ranks

    @property
    def d(self) -> int:
        return self.tally.d - len(self.gone)

    def original(self, ranks: Ranks) -> Ranks:
        """Return the ranks in the full tally: each skips the removed ranks before it."""
        return ranks + np.searchsorted(self.gone - np.arange(len(self.gone)), ranks, side="right")

    def gap(self, upper: int, lower: int) -> Fraction:
        both = self.original(np.array([upper, lower])).tolist()
        return self.tally.gap(both[0], both[1])

    def gaps(self, upper: Ranks, lower: Ranks, scale: Fraction) -> Floats:
        return self.tally.gaps(self.original(upper), self.original(lower), scale)

    def within(self, ranks: Ranks, reaches: Floats) -> Ranks:
        last = self.tally.within(self.original(ranks), reaches)
        return last - np.searchsorted(self.gone, last, side="right")


@dataclass(frozen=True, eq=False, repr=False)
class UniformSubset:
    """A uniform subset of `count` of the ranks first..last, still to be drawn."""

    count: int
    first: int
    last: int
    entropy: Entropy

    def draw(self) -> Ranks:
        """Draw the subset, in ascending order."""
        return self.first + self.entropy.subset(self.count, self.last - self.first)


class NoisyValues(Protocol):
    """The noisy scores of some ranks, to any precision."""

    def to_steps(self, grid: Fraction) -> list[int]:
        """Return each value in whole steps of a grid, rounded to the nearest: floor(value / grid + 1/2)."""


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """Individual ranks, all ranks below `head`, and a uniform subset of a range.

    Attributes
    ----------
    ranks
        Individual ranks. A selection with a released order has all its ranks here, in that order.
    head
        All ranks below this are selected.
    subset
        The uniform subset, if there is one.
    values
        The noisy scores of `ranks`, if the mechanism releases them.
    chosen
        The kind of candidate, if the mechanism chose between several; it is public.
    cuts_no_run
        True if there are no individual ranks, and neither the head nor the range begins or ends inside a run of equal
        scores.
    """

    ranks: Ranks
    head: int = 0
    subset: UniformSubset | None = None
    values: NoisyValues | None = None
    chosen: str | None = None
    cuts_no_run: bool = False

    @property
    def is_empty(self) -> bool:
        """True if nothing is selected."""
        return self.is_listed and not len(self.ranks)

    @property
    def is_listed(self) -> bool:
        """True if all ranks are individual ones."""
        return not self.head and self.subset is None

    def draw_ranks(self) -> Ranks:
        """Return all ranks, after drawing those still to be drawn."""
        if self.is_listed:
            return self.ranks
        subset = np.empty(0, np.int64) if self.subset is None else self.subset.draw()
        return np.concatenate([np.arange(self.head), subset, self.ranks])


class Column(Protocol):
    """Scores in ascending order, by position."""

    @property
    def unit(self) -> Fraction:
        """The score that one unit of `number` and `differences` stands for."""

    def __len__(self) -> int: ...

    def number(self, position: int) -> int | float | Fraction:
        """Return the score at a position in units, exactly."""

    def differences(self, larger: Ranks, smaller: Ranks) -> Floats:
        """Return max(score[larger] - score[smaller], 0) / unit, correctly rounded; inf beyond the floats."""

    def within(self, positions: Ranks, reaches: Floats) -> Ranks:
        """Return the first position whose score is above score[position] - reach, for positive reaches.

        Positions and reaches are broadcast against each other.
        """

    def run(self, positions: Ranks) -> Ranks:
        """Return the first position with the same score, for each position."""

    def raw(self, positions: Ranks) -> NDArray[Any]:
        """Return the scores as they are stored: whole numbers of units modulo 2^64, floats, or rationals."""


@dataclass(frozen=True, eq=False, repr=False)
class IntegerColumn:
    """Whole multiples, low + key, of a unit, for ascending keys."""

    keys: NDArray[np.uint64]
    low: int = 0
    unit: Fraction = Fraction(1)

    def __len__(self) -> int:
        return len(self.keys)

    def number(self, position: int) -> int:
        return self.low + int(self.keys[position])

    def differences(self, larger: Ranks, smaller: Ranks) -> Floats:
        one, other = self.keys[larger], self.keys[smaller]
        return (np.maximum(one, other) - other).astype(np.float64)

    def within(self, positions: Ranks, reaches: Floats) -> Ranks:
        lowest = lowest_keys(self.keys[positions], reaches, self.unit)
        return np.searchsorted(self.keys, lowest, side="left").astype(np.int64, copy=False)

    def run(self, positions: Ranks) -> Ranks:
        return np.searchsorted(self.keys, self.keys[positions], side="left").astype(np.int64)

    def raw(self, positions: Ranks) -> NDArray[Any]:
        taken = self.keys.take(positions)
        if self.low:
            taken += np.uint64(self.low % 2**64)
        return taken


@dataclass(frozen=True, eq=False, repr=False)
class FloatColumn:
    """Finite scores of float32 or float64."""

    values: NDArray[np.floating[Any]]
    unit: ClassVar[Fraction] = Fraction(1)

    def __len__(self) -> int:
        return len(self.values)

    def number(self, position: int) -> float:
        return float(self.values[position])

    def differences(self, larger: Ranks, smaller: Ranks) -> Floats:
        return float_differences(self.values[larger], self.values[smaller])

    def within(self, positions: Ranks, reaches: Floats) -> Ranks:
        near, from_near_on = reach_thresholds(self.values[positions], reaches)
        from_near, above = (np.searchsorted(self.values, near, side=side) for side in ("left", "right"))
        return np.where(from_near_on, from_near, above).astype(np.int64)

    def run(self, positions: Ranks) -> Ranks:
        return np.searchsorted(self.values, self.values[positions], side="left").astype(np.int64)

    def raw(self, positions: Ranks) -> NDArray[Any]:
        return self.values.take(positions)


@dataclass(frozen=True, eq=False, repr=False)
class ExactColumn:
    """Rationals of any size."""

    values: Sequence[Fraction]
    unit: ClassVar[Fraction] = Fraction(1)

    def __len__(self) -> int:
        return len(self.values)

    def number(self, position: int) -> Fraction:
        return self.values[position]

    def differences(self, larger: Ranks, smaller: Ranks) -> Floats:
        pairs = zip(larger.tolist(), smaller.tolist(), strict=True)
        return np.array([to_float(max(self.values[i] - self.values[j], Fraction(0))) for i, j in pairs], np.float64)

    def within(self, positions: Ranks, reaches: Floats) -> Ranks:
        pairs = np.broadcast(positions, reaches)
        found = [
            0 if math.isinf(reach) else bisect_right(self.values, self.values[i] - Fraction(reach))
            for i, reach in pairs
        ]
        return np.array(found, np.int64).reshape(pairs.shape)

    def run(self, positions: Ranks) -> Ranks:
        return np.array([bisect_left(self.values, self.values[i]) for i in positions.tolist()], np.int64)

    def raw(self, positions: Ranks) -> NDArray[Any]:
        return np.array([self.values[i] for i in positions.tolist()], object)


def _integer_column(ascending: Sequence[int], unit: Fraction) -> IntegerColumn:
    """Return the column of whole numbers of units."""
    low = int(ascending[0])
    return IntegerColumn(np.array([int(value) - low for value in ascending], np.uint64), low, unit)


def common_unit(values: Sequence[Fraction]) -> Fraction | None:
    """Return a unit of which all values are whole multiples that fit 64 bits and a sign, or None."""
    bottom = 1
    for value in values:
        bottom = math.lcm(bottom, value.denominator)
        if bottom >= 2**63:
            return None
    fits = min(values) * bottom > -(2**63) and max(values) * bottom < 2**63
    return Fraction(1, bottom) if fits else None


def scaled_gaps(larger: NDArray[Any], smaller: NDArray[Any], scale: Fraction) -> Floats:
    """Return scale (larger - smaller) for scores as `Column.raw` returns them, none of which is negative.

    The relative error is 2^-50. Results are at least TINY and at most the largest float, and 0 only for equal scores or
    a scale of 0. The caller silences NumPy's warnings about overflow and underflow.
    """
    factor = to_float(scale)
    if larger.dtype == object or not 2.0**-900 < factor < 2.0**900:
        return _scale_gaps_exactly(larger, smaller, scale)
    if larger.dtype == np.uint64:
        whole: Floats = (larger - smaller).astype(np.float64)
        whole *= factor
        return whole
    gaps = _subtract(larger, smaller)
    gaps *= factor
    if gaps.size and not gaps.item(gaps.argmax()) <= LARGEST:
        return _scale_gaps_exactly(larger, smaller, scale)
    if gaps.size and gaps.item(gaps.argmin()) < TINY:
        gaps = np.maximum(gaps, TINY * (larger != smaller))
    return gaps


def _scale_gaps_exactly(larger: NDArray[Any], smaller: NDArray[Any], scale: Fraction) -> Floats:
    """Return the gaps of `scaled_gaps`, computed with rationals."""
    if scale == 0:
        return np.zeros(np.broadcast(larger, smaller).shape)
    shape = np.broadcast(larger, smaller).shape
    if larger.dtype == np.uint64:
        gaps = [Fraction(each) for each in (larger - smaller).ravel().tolist()]
    else:
        # Fraction takes no NumPy float narrower than Python's.
        wide = [each if each.dtype == object else each.astype(np.float64) for each in (larger, smaller)]
        gaps = [Fraction(one) - Fraction(other) for one, other in np.broadcast(*wide)]
    rounded = [min(max(to_float(scale * gap), TINY), LARGEST) if gap else 0.0 for gap in gaps]
    return np.array(rounded, np.float64).reshape(shape)


def float_differences(larger: NDArray[Any], smaller: NDArray[Any]) -> Floats:
    """Return the differences of floats if positive, else 0; inf beyond the floats."""
    with np.errstate(over="ignore", under="ignore"):
        return np.maximum(_subtract(larger, smaller), 0.0)


def _subtract(larger: NDArray[Any], smaller: NDArray[Any]) -> Floats:
    """Return the differences of floats of any width, as float64."""
    differences: Floats = larger.astype(np.float64, copy=False) - smaller.astype(np.float64, copy=False)
    return differences


def lowest_keys(keys: NDArray[np.uint64], reaches: Floats, unit: Fraction) -> NDArray[np.uint64]:
    """Return the lowest key above key - reach, for keys in units: at least key - ceil(reach / unit) + 1."""
    if unit == 1:
        wholes = np.ceil(reaches)
        beyond = wholes >= 2.0**64
        steps = np.where(beyond, 0.0, wholes).astype(np.uint64)
    else:
        different, which = np.unique(reaches, return_inverse=True)
        which = which.reshape(reaches.shape)
        exact = [2**64 if math.isinf(reach) else math.ceil(Fraction(reach) / unit) for reach in different.tolist()]
        beyond = np.array([count >= 2**64 for count in exact], bool)[which]
        steps = np.array([min(count, 2**64 - 1) for count in exact], np.uint64)[which]
    return np.where(beyond | (steps > keys), np.uint64(0), keys - steps + np.uint64(1))


def reach_thresholds(scores: NDArray[Any], reaches: Floats) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return floats of the scores' width at which those above score - reach begin, and True for inclusive ones."""
    # bar + error is score - reach exactly (Knuth's two-sum), and no float lies between bar and bar + error.
    score = scores.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        bar = score - reaches
        part = bar - score
        error = (score - (bar - part)) - (reaches + part)
        # If the nearest float of the scores' own width is above the bar, so are all floats from it on.
        near = bar.astype(scores.dtype)
    return near, (near > bar) | ((near == bar) & (error < 0.0))


def to_float(value: Fraction) -> float:
    """Return the nearest float to a non-negative rational; inf beyond the floats."""
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf
