"""Floats in order by buckets: a pass over the array says how many are in each, and only those looked at are sorted.

A mechanism asks for the scores at some hundred ranks, however many there are. The bucket of a score is its share of the
range, rounded, which never falls from one score to a larger one. So the score at a position is in a known bucket, at a
known place in its order, and is looked up as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.columns import FloatColumn
from discreet.errors import InvalidValueError
from discreet.exact.arrays import Floats, Mask, Ranks
from discreet.sources.arrays.blocks import BLOCK, FINITE, iterate_blocks, sort_scores, take_sample

MANY = 1 << 16
"""From how many scores on buckets pay."""

_MOST = 16
"""How many bits a bucket has at most."""

_SHARE = 256
"""A bucket may have one in so many of the scores, as a sample says."""


def fill_buckets(scores: NDArray[Any]) -> BucketColumn | None:
    """The column of some finite floats, or None where they are not spread over their range."""
    low, high = _find_range(scores)
    bits = min(_MOST, max(1, len(scores).bit_length() - 2))
    width, limits = float(high) - float(low), np.finfo(scores.dtype)
    # Neither what scores are above the lowest nor what that is multiplied by may leave the floats of their type.
    if not (2**bits / float(limits.max) < width <= float(limits.max) / 2.0):
        return None
    factor = scores.dtype.type((2**bits - 1) / width)

    def find(some: NDArray[Any]) -> NDArray[np.uint16]:
        found: NDArray[np.uint16] = ((some - low) * factor).astype(np.uint16)
        return found

    sample = find(take_sample(scores))
    if _SHARE * int(np.bincount(sample).max()) > len(sample):
        return None
    keys, counts = np.empty(len(scores), np.uint16), np.zeros(2**bits, np.int64)
    for start, block in iterate_blocks(scores):
        keys[start : start + len(block)] = find(block)
    for start in range(0, len(keys), 8 * BLOCK):
        counts += np.bincount(keys[start : start + 8 * BLOCK], minlength=2**bits)
    return BucketColumn(scores, keys, np.append(0, counts.cumsum()))


def _find_range(scores: NDArray[Any]) -> tuple[Any, Any]:
    """The lowest and the highest score; raises where one is not finite."""
    ends = [(block[block.argmin()], block[block.argmax()]) for _, block in iterate_blocks(scores)]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    # A NaN is the first of its block in either way, and is neither below nor above others.
    if not all(np.isfinite(low) and np.isfinite(high) for low, high in ends):
        raise InvalidValueError(FINITE)
    return low, high


@dataclass(frozen=True, eq=False, repr=False)
class _Sorted:
    """The scores of some buckets in ascending order: which buckets, where each begins, and all of them."""

    has: Mask
    begins: Ranks
    values: NDArray[Any]


@dataclass(eq=False, repr=False)
class BucketColumn:
    """Finite scores of float32 or float64.

    Attributes
    ----------
    scores
        All of them, in any order.
    keys
        The bucket of each.
    begins
        The first position of each bucket in ascending order, and how many scores there are.
    """

    scores: NDArray[np.floating[Any]]
    keys: NDArray[np.uint16]
    begins: Ranks
    unit: ClassVar[Fraction] = Fraction(1)
    _known: _Sorted = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.begins) - 1
        self._known = _Sorted(np.zeros(count, np.bool_), np.zeros(count, np.int64), self.scores[:0])

    def __len__(self) -> int:
        return len(self.scores)

    def number(self, position: int) -> float:
        return float(self.raw(np.array([position]))[0])

    def raw(self, positions: Ranks) -> NDArray[Any]:
        buckets = self.begins.searchsorted(positions, side="right") - 1
        # Another thread may add buckets at any time, and takes none away.
        known = self._known
        if not known.has.take(buckets).all():
            if (more := self._sort_more(known, buckets)) is None:
                return self._whole.raw(positions)
            self._known = known = more
        return known.values.take(known.begins.take(buckets) + positions - self.begins.take(buckets))

    def differences(self, larger: Ranks, smaller: Ranks) -> Floats:
        return self._whole.differences(larger, smaller)

    def within(self, positions: Ranks, reaches: Floats) -> Ranks:
        return self._whole.within(positions, reaches)

    def run(self, positions: Ranks) -> Ranks:
        return self._whole.run(positions)

    def _sort_more(self, known: _Sorted, buckets: Ranks) -> _Sorted | None:
        """What is known, and some buckets more; None where that is no small part of all."""
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
        values = np.concatenate([known.values, *found])
        values.sort()
        return _Sorted(has, ends - sizes, values)

    @cached_property
    def _whole(self) -> FloatColumn:
        """All scores in order."""
        return FloatColumn(sort_scores(self.scores))
