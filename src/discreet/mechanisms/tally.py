"""Columns: scores in ascending order by position, as a tally reads them, for each way of holding them.

Nothing is rounded but the differences that leave this module as floats, and those only once. Nothing here prints its
scores.
"""

from __future__ import annotations

import math
import sys
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

# What a draw selects, before anybody knows which items that is: ranks, and some of a range of ranks.

CORE, OTHERWISE = "core", "otherwise"
"""What the candidates of a mechanism that chooses between several are called."""


@dataclass(frozen=True, eq=False, repr=False)
class UniformSubset:
    """A uniform subset of `count` of the ranks first..last, still to be drawn."""

    count: int
    first: int
    last: int
    entropy: Entropy

    def draw(self) -> Ranks:
        """Returns a uniform subset of the range, in ascending order."""
        return self.first + self.entropy.subset(self.count, self.last - self.first)


class NoisyValues(Protocol):
    """The noisy scores of some ranks, as exactly as anybody asks."""

    def to_steps(self, grid: Fraction) -> list[int]:
        """Each in whole steps of a grid, the nearest: floor(value / grid + 1/2)."""


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """Ranks one by one, all ranks below `head`, and a uniform subset of a range.

    Where the ranks have an order that is released, they are all given one by one, with their values where a mechanism
    releases those. Where a mechanism chose between candidates, `chosen` says which: that is public. `cuts_no_run` says
    that ranks are given by `head` and the range alone, and that neither begins or ends inside a run of equal scores.
    """

    ranks: Ranks
    head: int = 0
    subset: UniformSubset | None = None
    values: NoisyValues | None = None
    chosen: str | None = None
    cuts_no_run: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing is selected."""
        return self.is_listed and not len(self.ranks)

    @property
    def is_listed(self) -> bool:
        """Whether all ranks are given one by one."""
        return not self.head and self.subset is None

    def draw_ranks(self) -> Ranks:
        """Returns all ranks; those still to be drawn are drawn now."""
        if self.is_listed:
            return self.ranks
        subset = np.empty(0, np.int64) if self.subset is None else self.subset.draw()
        return np.concatenate([np.arange(self.head), subset, self.ranks])


class Column(Protocol):
    """Scores in ascending order, by position."""

    @property
    def unit(self) -> Fraction:
        """What one step of `differences` is worth."""

    def __len__(self) -> int: ...

    def number(self, position: int) -> int | float | Fraction:
        """The score at a position in units, exactly."""

    def differences(self, larger: Ranks, smaller: Ranks) -> Floats:
        """(score[larger] - score[smaller]) / unit where positive, else 0: correctly rounded, inf beyond all floats."""

    def within(self, positions: Ranks, reaches: Floats) -> Ranks:
        """The first position whose score is above score[position] - reach, for each; reaches are positive.

        The two are broadcast against each other.
        """

    def run(self, positions: Ranks) -> Ranks:
        """The first position that has the score at each position."""

    def raw(self, positions: Ranks) -> NDArray[Any]:
        """The scores as they are held: whole numbers of units modulo 2^64, floats, or rationals."""


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


def lowest_keys(keys: NDArray[np.uint64], reaches: Floats, unit: Fraction) -> NDArray[np.uint64]:
    """The lowest key above each key less a reach, for keys that count units: at least key - ceil(reach / unit) + 1."""
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


def float_differences(larger: NDArray[Any], smaller: NDArray[Any]) -> Floats:
    """How far each float of a column's width is above another, where it is; inf beyond all floats."""
    with np.errstate(over="ignore", under="ignore"):
        return np.maximum(_subtract(larger, smaller), 0.0)


def _subtract(larger: NDArray[Any], smaller: NDArray[Any]) -> Floats:
    differences: Floats = larger.astype(np.float64, copy=False) - smaller.astype(np.float64, copy=False)
    return differences


TINY = 2.0**-1000
"""The least that a gap between two different scores is taken for."""


def scaled_gaps(larger: NDArray[Any], smaller: NDArray[Any], scale: Fraction) -> Floats:
    """Scale times how far some scores are above others, which none is below, from what `Column.raw` holds.

    Right to a relative 2^-50 where it is above TINY, which stands for all that is less, and up to the largest float,
    which stands for all beyond; 0 only where two scores are equal or the scale is 0. The caller has NumPy ignore that
    floats overflow and underflow.
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
    if gaps.size and not gaps.item(gaps.argmax()) <= sys.float_info.max:
        return _scale_gaps_exactly(larger, smaller, scale)
    if gaps.size and gaps.item(gaps.argmin()) < TINY:
        gaps = np.maximum(gaps, TINY * (larger != smaller))
    return gaps


def _scale_gaps_exactly(larger: NDArray[Any], smaller: NDArray[Any], scale: Fraction) -> Floats:
    """The same by rationals."""
    if scale == 0:
        return np.zeros(np.broadcast(larger, smaller).shape)
    shape = np.broadcast(larger, smaller).shape
    if larger.dtype == np.uint64:
        gaps = [Fraction(each) for each in (larger - smaller).ravel().tolist()]
    else:
        # Narrower floats than Python's are no fractions to Python.
        wide = [each if each.dtype == object else each.astype(np.float64) for each in (larger, smaller)]
        gaps = [Fraction(one) - Fraction(other) for one, other in np.broadcast(*wide)]
    rounded = [min(max(to_float(scale * gap), TINY), sys.float_info.max) if gap else 0.0 for gap in gaps]
    return np.array(rounded, np.float64).reshape(shape)


def reach_thresholds(scores: NDArray[Any], reaches: Floats) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Where the floats above score - reach begin, as a float of the scores' width: from it on, or after it."""
    # bar + error is score - reach exactly (Knuth's two-sum), and no float lies between the two.
    score = scores.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        bar = score - reaches
        part = bar - score
        error = (score - (bar - part)) - (reaches + part)
        # Where the nearest float of the scores' own width is above the bar, so is all from it on.
        near = bar.astype(scores.dtype)
    return near, (near > bar) | ((near == bar) & (error < 0.0))


def to_float(value: Fraction) -> float:
    """The nearest float to a non-negative rational, inf where it is beyond all floats."""
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf


# Tally: scores in descending order, run-length encoded, as a mechanism reads them.
#
# Ranks count from 0, so that the last rank of a domain of 2^63 items is still an int64: rank r here is rank r + 1 in
# the
# paper. Nothing is rounded: a score is the exact rational that it denotes, and a float that leaves this module is the
# difference of two scores times a scale, right to a relative 2^-50. Nothing here prints its scores.

__all__ = ["LARGEST", "ExactColumn", "FloatColumn", "IntegerColumn", "Remaining", "Tally", "common_unit", "to_float"]


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """Scores by descending rank.

    Parameters
    ----------
    column
        The scores in ascending order, or the distinct ones where `last` is given.
    last
        The last rank of each run of equal scores, in descending order of score; None when every run is one item.
    """

    column: Column
    last: Ranks | None = None

    @classmethod
    def of_runs(cls, values: Sequence[Any], counts: Sequence[int], unit: Fraction | None = None) -> Tally:
        """A tally from distinct scores in descending order and how many items have each, up to 2^63 items in all.

        Parameters
        ----------
        values
            The scores, or whole numbers of units where there is one; those fit 64 bits and a sign.
        counts
            How many items have each score.
        unit
            What one step of `values` is worth.
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
        return cls(_column_of([Fraction(value) for value in reversed(values)]), last)

    @property
    def d(self) -> int:
        """How many items there are."""
        return len(self.column) if self.last is None else int(self.last[-1]) + 1

    def last_of_run(self, ranks: Ranks) -> Ranks:
        """The last rank that has the same score, for each rank."""
        positions = self._positions(ranks)
        if self.last is not None:
            return self.last[len(self.column) - 1 - positions]
        return len(self.column) - 1 - self.column.run(positions)

    def raw(self, ranks: Ranks) -> NDArray[Any]:
        """The scores at some ranks as their column holds them."""
        return self.column.raw(self._positions(ranks))

    def exact(self, rank: int) -> Fraction:
        """The score at a rank."""
        return self.column.unit * Fraction(self.number(rank))

    def number(self, rank: int) -> int | float | Fraction:
        """The score at a rank in units of its column, exactly."""
        run = rank if self.last is None else int(self.last.searchsorted(rank))
        return self.column.number(len(self.column) - 1 - run)

    def gap(self, upper: int, lower: int) -> Fraction:
        """How far the score at rank `lower` is below the one at rank `upper`."""
        return self.exact(upper) - self.exact(lower)

    def gaps(self, upper: Ranks, lower: Ranks, scale: Fraction) -> Floats:
        """Scale times the gap between two ranks each, 0 where it is negative.

        Right to a relative 2^-50 or an absolute 2^-1000; at most the largest float, which stands for all beyond.
        """
        larger, smaller = self._positions(upper), self._positions(lower)
        factor = to_float(scale * self.column.unit)
        differences = self.column.differences(larger, smaller)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            gaps = factor * differences
            # Neither inf nor NaN is below it.
            if 2.0**-900 < factor < 2.0**900 and gaps.max(initial=0.0) < LARGEST:
                return gaps
            if 2.0**-900 < factor < 2.0**900 and not np.isinf(differences).any():
                return np.minimum(gaps, LARGEST)
        pairs = zip(upper.tolist(), lower.tolist(), strict=True)
        exact = [scale * max(self.gap(i, j), Fraction(0)) for i, j in pairs]
        return np.minimum(np.array([to_float(value) for value in exact], np.float64), LARGEST)

    def within(self, ranks: Ranks, reaches: Floats) -> Ranks:
        """The last rank whose score is less than `reach` below that of each rank; reaches are positive."""
        runs = len(self.column) - 1 - self.column.within(self._positions(ranks), reaches)
        return runs if self.last is None else self.last[runs]

    def without(self, ranks: Ranks) -> Remaining:
        """The same scores less those at some ranks, which must be ascending."""
        return Remaining(self, ranks)

    def largest_gap(self, upper: Ranks, lower: Ranks) -> Fraction:
        """The largest of the gaps between two ranks each, or 0 if none is positive, exactly.

        Rounding keeps the order, so the largest gap is among those that round to the largest float.
        """
        rounded = self.gaps(upper, lower, Fraction(1))
        highest = rounded.max()
        # Only rationals have gaps so small that they round to nothing.
        if highest == 0.0 and not isinstance(self.column, ExactColumn):
            return Fraction(0)
        ties = np.flatnonzero(rounded == highest)
        pairs = zip(upper[ties].tolist(), lower[ties].tolist(), strict=True)
        return max(Fraction(0), *(self.gap(i, j) for i, j in pairs))

    def scale_by(self, factor: Fraction) -> Tally:
        """The same tally with every score multiplied by a positive rational."""
        numbers = map(self.column.number, range(len(self.column)))
        return Tally(ExactColumn([factor * self.column.unit * Fraction(number) for number in numbers]), self.last)

    def _positions(self, ranks: Ranks) -> Ranks:
        runs = ranks if self.last is None else np.searchsorted(self.last, ranks, side="left")
        return len(self.column) - 1 - runs


@dataclass(frozen=True, eq=False, repr=False)
class Remaining:
    """A tally of which some ranks are gone; ranks count what is left."""

    tally: Tally
    gone: Ranks

    @property
    def d(self) -> int:
        return self.tally.d - len(self.gone)

    def original(self, ranks: Ranks) -> Ranks:
        """Ranks of the full tally: each passes the ranks gone before it."""
        return ranks + np.searchsorted(self.gone - np.arange(len(self.gone)), ranks, side="right")

    def gap(self, upper: int, lower: int) -> Fraction:
        both = self.original(np.array([upper, lower])).tolist()
        return self.tally.gap(both[0], both[1])

    def gaps(self, upper: Ranks, lower: Ranks, scale: Fraction) -> Floats:
        return self.tally.gaps(self.original(upper), self.original(lower), scale)

    def within(self, ranks: Ranks, reaches: Floats) -> Ranks:
        last = self.tally.within(self.original(ranks), reaches)
        return last - np.searchsorted(self.gone, last, side="right")


def _column_of(ascending: Sequence[Fraction]) -> Column:
    """The column of some rationals: of 64-bit keys where they are multiples of one unit, close enough together."""
    unit = common_unit(ascending)
    if unit is None:
        return ExactColumn(ascending)
    return _integer_column([int(value / unit) for value in ascending], unit)


def _integer_column(ascending: Sequence[int], unit: Fraction) -> IntegerColumn:
    """The column of some whole numbers of units."""
    low = int(ascending[0])
    return IntegerColumn(np.array([int(value) - low for value in ascending], np.uint64), low, unit)


def common_unit(values: Sequence[Fraction]) -> Fraction | None:
    """A unit of which all values are whole multiples that fit 64 bits and a sign, or None."""
    bottom = 1
    for value in values:
        bottom = math.lcm(bottom, value.denominator)
        if bottom >= 2**63:
            return None
    fits = min(values) * bottom > -(2**63) and max(values) * bottom < 2**63
    return Fraction(1, bottom) if fits else None
