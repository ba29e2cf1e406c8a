"""An array of numbers as a tally.

Small whole numbers, which is what most counts are, are counted value by value in one pass. Other large arrays are put
into `buckets` if a sample of the scores shows that these will be small, and are sorted otherwise. The sample changes
the cost alone; every answer is exact.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.columns import Column, ExactColumn, FloatColumn, IntegerColumn
from discreet.errors import InvalidValueError
from discreet.exact.arrays import Ranks
from discreet.sources.arrays.blocks import BLOCK, BY_DIGITS, FINITE, as_bits, sort_scores, take_sample
from discreet.sources.arrays.buckets import MANY, fill_buckets
from discreet.tally import Tally

LARGE = 1 << 17
"""From how many whole numbers on counting or bucketing them is faster than sorting."""

_SMALL = 1 << 16
"""Whole numbers from 0 to here are counted, and not sorted."""


def tally_of_array(scores: NDArray[Any], unit: Fraction) -> Tally:
    """Return the tally of an array of whole numbers (in multiples of a unit), of finite floats, or of Fractions."""
    if scores.dtype == object:
        return Tally(ExactColumn(sorted(scores.tolist())))
    is_whole = scores.dtype.kind != "f"
    if is_whole and len(scores) >= LARGE and np.mean(_is_small(take_sample(scores))) > 7 / 8:
        counted = _count_values(scores, unit)
        if counted is not None:
            return counted
    if len(scores) >= (LARGE if is_whole else MANY):
        with np.errstate(all="ignore"):
            buckets = fill_buckets(scores, unit, lambda: _sort_column(scores, unit))
        if buckets is not None:
            return Tally(buckets)
    return Tally(_sort_column(scores, unit))


def _sort_column(scores: NDArray[Any], unit: Fraction) -> Column:
    """All scores in order."""
    if scores.dtype.kind != "f":
        return IntegerColumn(*_sort_above(scores), unit)
    ordered = sort_scores(scores)
    if not (np.isfinite(ordered[0]) and np.isfinite(ordered[-1])):
        raise InvalidValueError(FINITE)
    return FloatColumn(ordered)


def _sort_above(scores: NDArray[Any]) -> tuple[NDArray[np.uint64], int]:
    """Whole numbers in order, as what they are above the lowest, and that."""
    if len(scores) not in BY_DIGITS:
        return _subtract_lowest(sort_scores(scores))
    low = scores[scores.argmin()]
    # Right modulo what the type holds, and so as it is where that has no sign.
    above = (scores - low).view(f"u{scores.itemsize}")
    is_large = above >= _SMALL
    count = int(np.count_nonzero(is_large))
    if 8 * count > len(scores):
        return sort_scores(above).astype(np.uint64, copy=False), int(low)
    # NumPy sorts numbers of 16 bits by their digits.
    small = (above[~is_large] if count else above).astype(np.uint16)
    small.sort(kind="stable")
    keys = small.astype(np.uint64)
    return (np.concatenate([keys, np.sort(above[is_large])]) if count else keys), int(low)


def _subtract_lowest(ordered: NDArray[Any]) -> tuple[NDArray[np.uint64], int]:
    """What ascending whole numbers are above the lowest, and that: unsigned subtraction in place wraps to it."""
    low = int(ordered[0])
    keys = as_bits(ordered)
    keys -= np.uint64(low % 2**64)
    return keys, low


def _is_small(scores: NDArray[Any]) -> NDArray[np.bool_]:
    return (scores >= 0) & (scores < _SMALL)


def _count_values(scores: NDArray[Any], unit: Fraction) -> Tally | None:
    """The tally of whole numbers most of which are small: these are counted, the others sorted. None where many are."""
    counts, others = np.zeros(_SMALL + 1, np.int64), []
    # Fewer and larger blocks, because each adds a whole table of counts.
    for start in range(0, len(scores), 8 * BLOCK):
        block = scores[start : start + 8 * BLOCK]
        # Read as unsigned, negative numbers are large too.
        clamped = np.minimum(as_bits(block), np.uint64(_SMALL)).view(np.int64)
        found = np.bincount(clamped, minlength=_SMALL + 1)
        counts += found
        if found[_SMALL]:
            others.append(block[clamped == _SMALL])
        if 4 * counts[_SMALL] > len(scores):
            return None
    rest = np.sort(np.concatenate(others)) if others else scores[:0]
    return _tally_counts(counts[:_SMALL], rest, unit)


def _tally_counts(counts: NDArray[np.int64], rest: NDArray[Any], unit: Fraction) -> Tally:
    """The tally of small numbers by their counts and of the others in ascending order."""
    small = np.flatnonzero(counts)
    begins = np.flatnonzero(np.append(True, rest[1:] != rest[:-1])[: len(rest)])
    values, sizes = rest[begins], np.diff(np.append(begins, len(rest)))
    below = int(np.searchsorted(values, 0))
    kind = rest.dtype if rest.dtype.itemsize > 4 else np.dtype(np.int64)
    ascending = np.concatenate([values[:below].astype(kind), small.astype(kind), values[below:].astype(kind)])
    ascending_sizes = np.concatenate([sizes[:below], counts[small], sizes[below:]])
    last: Ranks = np.cumsum(ascending_sizes[::-1]) - 1
    return Tally(IntegerColumn(*_subtract_lowest(ascending), unit), last)
