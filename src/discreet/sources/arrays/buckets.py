"""Numbers in order by buckets: one pass counts how many are in each, and only the buckets asked for are sorted.

A mechanism asks for the scores at some hundred ranks, however many there are. Buckets are parts of the range, of equal
width or finer towards 0, and no score is in a lower bucket than a smaller score. So the score at a position is in a
known bucket, at a known place in its order. Whole numbers choose their bucket as the nearest float, which keeps their
order, and are looked up as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.columns import Column, float_differences
from discreet.errors import InternalError, InvalidValueError
from discreet.exact.arrays import Floats, Mask, Ranks
from discreet.sources.arrays.blocks import BLOCK, FINITE, as_bits, iterate_blocks, order_bits, take_sample

MANY = 1 << 16
"""From how many scores on buckets pay."""

_MOST = 16
"""How many bits a bucket has at most."""

_SHARE = 256
"""A bucket may have one in so many of the scores, as a sample says."""

_LOOKS = 16
"""How often buckets are looked for before all is sorted: so many passes take as long."""


def fill_buckets(scores: NDArray[Any], unit: Fraction, whole: Callable[[], Column]) -> BucketColumn | None:
    """Return the column of some finite numbers, or None where many of them would share a bucket.

    `unit` is what one step of whole numbers is worth, and `whole` sorts all scores.
    """
    (low, high), sample = _find_range(scores), _as_floats(take_sample(scores))
    bits = min(_MOST, max(1, len(scores).bit_length() - 2))
    for make in (_find_by_share, _find_by_bits):
        find = make(low, high, bits)
        if find is not None and _SHARE * int(np.bincount(find(sample)).max()) <= len(sample):
            return _fill(scores, find, 2**bits, unit, whole)
    return None


def _as_floats(scores: NDArray[Any]) -> NDArray[Any]:
    """Return floats as they are, and whole numbers as the nearest floats."""
    return scores if scores.dtype.kind == "f" else scores.astype(np.float64)


Find = Callable[[NDArray[Any]], NDArray[np.uint16]]
"""The buckets of some scores: never a lower one for a higher score."""


def _fill(scores: NDArray[Any], find: Find, count: int, unit: Fraction, whole: Callable[[], Column]) -> BucketColumn:
    """Return the column of some scores in so many buckets."""
    keys, sizes = np.empty(len(scores), np.uint16), np.zeros(count, np.int64)
    for start, block in iterate_blocks(scores):
        keys[start : start + len(block)] = find(_as_floats(block))
    for start in range(0, len(keys), 8 * BLOCK):
        sizes += np.bincount(keys[start : start + 8 * BLOCK], minlength=count)
    return BucketColumn(scores, keys, np.append(0, sizes.cumsum()), unit, whole)


def _find_by_share(low: Any, high: Any, bits: int) -> Find | None:
    """Buckets of equal width between two ends; None where floats of their type do not do for that."""
    width, limit = float(high) - float(low), float(np.finfo(low.dtype).max)
    # Neither what scores are above the lowest nor what that is multiplied by may be beyond them.
    if not 2**bits / limit < width <= limit / 2.0:
        return None
    factor = low.dtype.type((2**bits - 1) / width)

    def find(some: NDArray[Any]) -> NDArray[np.uint16]:
        # Each step rounds, and so none turns an order round.
        found: NDArray[np.uint16] = ((some - low) * factor).astype(np.uint16)
        return found

    return find


def _find_by_bits(low: Any, high: Any, bits: int) -> Find:
    """Buckets by the leading bits of floats, which count octaves and parts of them: finer towards 0."""
    signed = bool(low < 0)

    def number(some: NDArray[Any]) -> NDArray[Any]:
        # Of the two zeros only one is left, whose bits are 0.
        return order_bits(some + 0.0, signed)

    first, last = number(np.array([low, high]))
    shift = max(0, (int(last) - int(first)).bit_length() - bits)

    def find(some: NDArray[Any]) -> NDArray[np.uint16]:
        # The difference is right modulo what the type holds, and so as it is where that has no sign.
        above = (number(some) - first).view(f"u{some.itemsize}")
        found: NDArray[np.uint16] = (above >> shift).astype(np.uint16)
        return found

    return find


def _find_range(scores: NDArray[Any]) -> tuple[Any, Any]:
    """The lowest and the highest score; raises where one is not finite."""
    ends = [_as_floats(block[[block.argmin(), block.argmax()]]) for _, block in iterate_blocks(scores)]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    # A NaN is the first of its block in either way, and is neither below nor above others.
    if not all(np.isfinite(low) and np.isfinite(high) for low, high in ends):
        raise InvalidValueError(FINITE)
    return low, high


@dataclass(frozen=True, eq=False, repr=False)
class _Sorted:
    """The scores of some buckets in ascending order.

    Attributes
    ----------
    has
        Which buckets.
    begins
        Where each of them begins.
    values
        All of their scores.
    looks
        How often the array was looked through for them.
    """

    has: Mask
    begins: Ranks
    values: NDArray[Any]
    looks: int = 0


@dataclass(eq=False, repr=False)
class BucketColumn:
    """Finite scores, of which the buckets that were asked for are in order.

    Attributes
    ----------
    scores
        All of them, in any order. They must not change as long as the column is used.
    keys
        The bucket of each.
    begins
        The first position of each bucket in ascending order, and how many scores there are.
    unit
        What one step of `differences` is worth.
    sort_all
        Makes a column of all scores.
    """

    scores: NDArray[Any]
    keys: NDArray[np.uint16]
    begins: Ranks
    unit: Fraction
    sort_all: Callable[[], Column]
    _known: _Sorted = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.begins) - 1
        self._known = _Sorted(np.zeros(count, np.bool_), np.zeros(count, np.int64), self.scores[:0])

    def __len__(self) -> int:
        return len(self.scores)

    def number(self, position: int) -> int | float | Fraction:
        found = self._look_up(np.array([position]))
        return self._whole.number(position) if found is None else found.item()

    def raw(self, positions: Ranks) -> NDArray[Any]:
        found = self._look_up(positions)
        if found is None:
            return self._whole.raw(positions)
        return found if found.dtype.kind == "f" else as_bits(found)

    def differences(self, larger: Ranks, smaller: Ranks) -> Floats:
        both = self.raw(np.concatenate([larger, smaller]))
        one, other = both[: len(larger)], both[len(larger) :]
        if one.dtype.kind == "f":
            return float_differences(one, other)
        # The order of positions is that of the scores, whatever their bits are.
        return np.where(larger > smaller, one - other, np.uint64(0)).astype(np.float64)

    def within(self, positions: Ranks, reaches: Floats) -> Ranks:
        return self._whole.within(positions, reaches)

    def run(self, positions: Ranks) -> Ranks:
        return self._whole.run(positions)

    def _look_up(self, positions: Ranks) -> NDArray[Any] | None:
        """Return the scores at some positions as the array holds them, or None where all are better sorted."""
        buckets = self.begins.searchsorted(positions, side="right") - 1
        # Another thread may add buckets at any time, and takes none away.
        known = self._known
        if not known.has.take(buckets).all():
            if (more := self._sort_more(known, buckets)) is None:
                return None
            self._known = known = more
        return known.values.take(known.begins.take(buckets) + positions - self.begins.take(buckets))

    def _sort_more(self, known: _Sorted, buckets: Ranks) -> _Sorted | None:
        """What is known, and some buckets more; None where all should be sorted, or are."""
        if known.looks >= _LOOKS or "_whole" in vars(self):
            return None
        has = known.has.copy()
        has[buckets] = True
        # The highest score is always asked for.
        has[-2:] = True
        sizes = (self.begins[1:] - self.begins[:-1]) * has
        ends = sizes.cumsum()
        if 4 * int(ends[-1]) > len(self):
            return None
        new = has & ~known.has
        found = [block[new.take(self.keys[start : start + len(block)])] for start, block in iterate_blocks(self.scores)]
        values = np.concatenate([known.values, np.sort(np.concatenate(found))])
        # Two pieces that are in order, which are merged.
        values.sort(kind="stable")
        # Scores that changed meanwhile would be looked up at the wrong places.
        if len(values) != int(ends[-1]):
            raise InternalError
        return _Sorted(has, ends - sizes, values, known.looks + 1)

    @cached_property
    def _whole(self) -> Column:
        """All scores in order."""
        return self.sort_all()
