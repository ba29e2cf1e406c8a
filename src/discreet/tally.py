"""Tally: scores in descending order, run-length encoded, as a mechanism reads them.

Ranks count from 0, so that the last rank of a domain of 2^63 items is still an int64: rank r here is rank r + 1 in the
paper. Nothing is rounded: a score is the exact rational that it denotes, and a float that leaves this module is the
difference of two scores times a scale, right to a relative 2^-50. Nothing here prints its scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.columns import Column, ExactColumn, FloatColumn, IntegerColumn, to_float
from discreet.errors import InvalidValueError
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.ball import LARGEST

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
