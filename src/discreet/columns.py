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
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.exact.arrays import Floats, Ranks


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
