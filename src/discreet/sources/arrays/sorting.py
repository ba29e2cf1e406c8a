"""An array of numbers as a tally, with no more put in order than is asked for.

Small whole numbers, which is what most counts are, are counted value by value in one pass. Of other large arrays only
the top is sorted at first, if a sample of the scores says that this is a small part: the whole is sorted, or put into
`buckets`, when somebody asks for a rank below. What a sample says changes the cost alone; every answer is exact.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.columns import Column, ExactColumn, FloatColumn, IntegerColumn, LazyColumn
from discreet.errors import InvalidValueError
from discreet.exact.arrays import Ranks
from discreet.sources.arrays.blocks import BLOCK, BY_DIGITS, FINITE, iterate_blocks, sort_scores, take_sample
from discreet.sources.arrays.buckets import MANY, fill_buckets
from discreet.tally import Tally

LARGE = 1 << 17
"""From how many scores on a sample pays."""

_SMALL = 1 << 16
"""Whole numbers from 0 to here are counted, and not sorted."""


def tally_of_array(scores: NDArray[Any], unit: Fraction) -> Tally:
    """The tally of an array of whole numbers (in multiples of a unit), of finite floats, or of Fractions."""
    if scores.dtype == object:
        return Tally(ExactColumn(sorted(scores.tolist())))
    if len(scores) < LARGE:
        return Tally(_order_column(scores, unit))
    whole = scores.dtype.kind != "f"
    counted = _count_values(scores, unit) if whole and np.mean(_is_small(take_sample(scores))) > 7 / 8 else None
    return Tally(_lazy_column(scores, unit)) if counted is None else counted


def _order_column(scores: NDArray[Any], unit: Fraction) -> Column:
    """All scores in order, or the way to any of them."""
    if scores.dtype.kind != "f" or len(scores) < MANY:
        return _sort_column(scores, unit)
    with np.errstate(all="ignore"):
        buckets = fill_buckets(scores)
    return _sort_column(scores, unit) if buckets is None else buckets


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


def as_bits(whole: NDArray[Any]) -> NDArray[np.uint64]:
    """Whole numbers modulo 2^64; a view where they have 64 bits."""
    return whole.astype(np.uint64 if whole.dtype.kind == "u" else np.int64, copy=False).view(np.uint64)


def _check_finite(scores: NDArray[Any]) -> None:
    # The sum of a block is finite where all of it is, unless it is very large; only then are they looked at one by one.
    with np.errstate(all="ignore"):
        for _, block in iterate_blocks(scores):
            if not np.isfinite(block.sum()) and not np.isfinite(block).all():
                raise InvalidValueError(FINITE)


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


def _lazy_column(scores: NDArray[Any], unit: Fraction) -> LazyColumn:
    def top(depth: int, reach: float) -> Column | None:
        bar = _estimate_bar(scores, depth, reach, unit)
        if bar is None:
            return None
        if scores.dtype.kind == "f":
            _check_finite(scores)
        return _sort_column(np.concatenate([block[block >= bar] for _, block in iterate_blocks(scores)]), unit)

    return LazyColumn(len(scores), lambda: _order_column(scores, unit), top, unit)


def _estimate_bar(scores: NDArray[Any], depth: int, reach: float, unit: Fraction) -> Any:
    """A score likely `reach` or more below the one that many ranks from the top, or None where many are above."""
    sample = np.sort(take_sample(scores))[::-1]
    expected = depth * len(sample) / len(scores)
    # The sample holds so many or fewer of the first ranks but for a chance of one in tens of thousands.
    enough = int(expected + 4.0 * expected**0.5 + 4.0)
    if enough >= len(sample) / 8:
        return None
    bar = _subtract_reach(sample[enough], reach, unit)
    return None if bar is None or sample[len(sample) // 8] >= bar else bar


def _subtract_reach(score: Any, reach: float, unit: Fraction) -> Any:
    """A score less a reach, or a little less than that, in the type of the scores; None where that is out of range."""
    if score.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return score.dtype.type(float(score) - reach)
    if math.isinf(reach):
        return None
    lowest = int(score) - math.ceil(Fraction(reach) / unit)
    return score.dtype.type(lowest) if lowest >= np.iinfo(score.dtype).min else None
