"""Sort an array of numbers into a tally, in as few passes as its size and type allow.

Small whole numbers are counted value by value in one pass. Other large arrays are put into buckets: a mechanism reads
the scores at some hundred ranks, so one pass counts the scores in each bucket, and only buckets that are read are
sorted. Buckets are ranges of equal width, or finer towards 0, and never put a higher score into a lower bucket. A
sample chooses between buckets and a full sort; it changes the cost alone, and every answer is exact.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InternalError, InvalidValueError
from discreet.exact.arrays import Floats, Mask, Ranks
from discreet.mechanisms.tally import Column, ExactColumn, FloatColumn, IntegerColumn, Tally, float_differences

FINITE = "scores must be finite numbers, and one of them is not; drop or replace it before the call"

BLOCK = 1 << 16
"""The number of scores in a block, so that a block stays in the cache."""

SAMPLE = 1 << 14
"""The approximate size of a sample: enough to see a bucket that one in 256 scores share."""

LARGE = 1 << 17
"""From this many whole numbers on, counting or buckets are faster than a sort."""

_SMALL = 1 << 16
"""Whole numbers from 0 to below this are counted: a table of counts of this size stays in the cache."""

BY_DIGITS = range(1 << 9, 1 << 18)
"""The numbers of scores at which radix sort is faster than comparisons."""

MANY = 1 << 16
"""From this many scores on, buckets are faster than a sort."""

_MOST = 16
"""The largest number of bits of a bucket's number, so that it fits 16 bits."""

_SHARE = 256
"""A bucket may hold one in this many scores of a sample; larger buckets take too long to sort."""

_LOOKS = 16
"""The number of passes in search of buckets after which all scores are sorted; so many passes take as long."""

Find = Callable[[NDArray[Any]], NDArray[np.uint16]]
"""A function from scores to their buckets: never a lower bucket for a higher score."""


@dataclass(frozen=True, eq=False, repr=False)
class _Sorted:
    """The scores of some buckets in ascending order.

    Attributes
    ----------
    has
        The mask of these buckets.
    begins
        The first index of each bucket in `values`.
    values
        All scores of these buckets.
    looks
        The number of passes over the array so far.
    """

    has: Mask
    begins: Ranks
    values: NDArray[Any]
    looks: int = 0


@dataclass(eq=False, repr=False)
class BucketColumn:
    """Finite scores in buckets, of which those that were read are sorted.

    Attributes
    ----------
    scores
        All scores, in any order. They must not change while the column is in use.
    keys
        The bucket of each score.
    begins
        The first position of each bucket in ascending order, and the number of scores.
    unit
        The value of one step of `differences`.
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
        # Positions are in the order of the scores, whatever the bits of the scores are.
        return np.where(larger > smaller, one - other, np.uint64(0)).astype(np.float64)

    def within(self, positions: Ranks, reaches: Floats) -> Ranks:
        return self._whole.within(positions, reaches)

    def run(self, positions: Ranks) -> Ranks:
        return self._whole.run(positions)

    def _look_up(self, positions: Ranks) -> NDArray[Any] | None:
        """Return the scores at some positions in the type of the array, or None if all should be sorted."""
        buckets = self.begins.searchsorted(positions, side="right") - 1
        # Another thread may add buckets at any time, but never removes one.
        known = self._known
        if not known.has.take(buckets).all():
            if (more := self._sort_more(known, buckets)) is None:
                return None
            self._known = known = more
        return known.values.take(known.begins.take(buckets) + positions - self.begins.take(buckets))

    def _sort_more(self, known: _Sorted, buckets: Ranks) -> _Sorted | None:
        """Return the known buckets and some more; None if all scores should be sorted, or are."""
        if known.looks >= _LOOKS or "_whole" in vars(self):
            return None
        has = known.has.copy()
        has[buckets] = True
        # Every mechanism reads the highest score.
        has[-2:] = True
        sizes = (self.begins[1:] - self.begins[:-1]) * has
        ends = sizes.cumsum()
        if 4 * int(ends[-1]) > len(self):
            return None
        new = has & ~known.has
        found = [block[new.take(self.keys[start : start + len(block)])] for start, block in iterate_blocks(self.scores)]
        values = np.concatenate([known.values, np.sort(np.concatenate(found))])
        # A stable sort merges two sorted pieces.
        values.sort(kind="stable")
        # Scores that changed since the buckets were counted would be read at the wrong places.
        if len(values) != int(ends[-1]):
            raise InternalError
        return _Sorted(has, ends - sizes, values, known.looks + 1)

    @cached_property
    def _whole(self) -> Column:
        """The column of all scores in order."""
        return self.sort_all()


def tally_of_array(scores: NDArray[Any], unit: Fraction) -> Tally:
    """Return the tally of an array of whole numbers (in multiples of a unit), of finite floats, or of Fractions."""
    if scores.dtype == object:
        return Tally(ExactColumn(sorted(scores.tolist())))
    is_whole = scores.dtype.kind != "f"
    if is_whole and len(scores) >= LARGE:
        sample = take_sample(scores)
        counted = _count_values(scores, unit) if np.mean((sample >= 0) & (sample < _SMALL)) > 7 / 8 else None
        if counted is not None:
            return counted
    if len(scores) >= (LARGE if is_whole else MANY):
        with np.errstate(all="ignore"):
            buckets = fill_buckets(scores, unit, lambda: _sort_column(scores, unit))
        if buckets is not None:
            return Tally(buckets)
    return Tally(_sort_column(scores, unit))


def _sort_column(scores: NDArray[Any], unit: Fraction) -> Column:
    """Return the column of all scores in order."""
    if scores.dtype.kind != "f":
        return IntegerColumn(*_sort_above(scores), unit)
    ordered = sort_scores(scores)
    if not (np.isfinite(ordered[0]) and np.isfinite(ordered[-1])):
        raise InvalidValueError(FINITE)
    return FloatColumn(ordered)


def _sort_above(scores: NDArray[Any]) -> tuple[NDArray[np.uint64], int]:
    """Return whole numbers in order as differences to the lowest, and the lowest."""
    if len(scores) not in BY_DIGITS:
        return _subtract_lowest(sort_scores(scores))
    low = scores[scores.argmin()]
    # The difference wraps, and is right as an unsigned number.
    above = (scores - low).view(f"u{scores.itemsize}")
    is_large = above >= _SMALL
    count = int(np.count_nonzero(is_large))
    if 8 * count > len(scores):
        return sort_scores(above).astype(np.uint64, copy=False), int(low)
    # NumPy sorts 16-bit numbers by radix sort.
    small = (above[~is_large] if count else above).astype(np.uint16)
    small.sort(kind="stable")
    keys = small.astype(np.uint64)
    return (np.concatenate([keys, np.sort(above[is_large])]) if count else keys), int(low)


def _subtract_lowest(ordered: NDArray[Any]) -> tuple[NDArray[np.uint64], int]:
    """Return the differences of ascending whole numbers to the lowest, and the lowest; unsigned subtraction wraps."""
    low = int(ordered[0])
    keys = as_bits(ordered)
    keys -= np.uint64(low % 2**64)
    return keys, low


def _count_values(scores: NDArray[Any], unit: Fraction) -> Tally | None:
    """Return the tally of mostly small whole numbers, which are counted; None if many must be sorted instead."""
    counts, others = np.zeros(_SMALL + 1, np.int64), []
    # Larger blocks than elsewhere, because each adds a whole table of counts.
    for start in range(0, len(scores), 8 * BLOCK):
        block = scores[start : start + 8 * BLOCK]
        # Negative numbers are large as unsigned ones.
        clamped = np.minimum(as_bits(block), np.uint64(_SMALL)).view(np.int64)
        found = np.bincount(clamped, minlength=_SMALL + 1)
        counts += found
        if found[_SMALL]:
            others.append(block[clamped == _SMALL])
        if 4 * counts[_SMALL] > len(scores):
            return None
    rest = np.sort(np.concatenate(others)) if others else scores[:0]
    small = np.flatnonzero(counts[:_SMALL])
    begins = np.flatnonzero(np.append(True, rest[1:] != rest[:-1])[: len(rest)])
    values, sizes = rest[begins], np.diff(np.append(begins, len(rest)))
    below = int(np.searchsorted(values, 0))
    kind = rest.dtype if rest.dtype.itemsize > 4 else np.dtype(np.int64)
    ascending = np.concatenate([values[:below].astype(kind), small.astype(kind), values[below:].astype(kind)])
    ascending_sizes = np.concatenate([sizes[:below], counts[small], sizes[below:]])
    last: Ranks = np.cumsum(ascending_sizes[::-1]) - 1
    return Tally(IntegerColumn(*_subtract_lowest(ascending), unit), last)


def fill_buckets(scores: NDArray[Any], unit: Fraction, whole: Callable[[], Column]) -> BucketColumn | None:
    """Return the column of some finite numbers, or None if many of them would share a bucket.

    `unit` is the value of one step of whole numbers, and `whole` sorts all scores.
    """
    (low, high), sample = _find_range(scores), _as_floats(take_sample(scores))
    bits = min(_MOST, max(1, len(scores).bit_length() - 2))
    for make in (_find_by_share, _find_by_bits):
        find = make(low, high, bits)
        if find is not None and _SHARE * int(np.bincount(find(sample)).max()) <= len(sample):
            break
    else:
        return None
    keys, sizes = np.empty(len(scores), np.uint16), np.zeros(2**bits, np.int64)
    for start, block in iterate_blocks(scores):
        keys[start : start + len(block)] = find(_as_floats(block))
    for start in range(0, len(keys), 8 * BLOCK):
        sizes += np.bincount(keys[start : start + 8 * BLOCK], minlength=2**bits)
    return BucketColumn(scores, keys, np.append(0, sizes.cumsum()), unit, whole)


def _as_floats(scores: NDArray[Any]) -> NDArray[Any]:
    """Return floats unchanged, and whole numbers as the nearest floats, which keeps their order."""
    return scores if scores.dtype.kind == "f" else scores.astype(np.float64)


def _find_by_share(low: Any, high: Any, bits: int) -> Find | None:
    """Return buckets of equal width between two ends; None if floats of their type cannot express them."""
    width, limit = float(high) - float(low), float(np.finfo(low.dtype).max)
    # Neither the difference to the lowest score nor the factor may overflow the type.
    if not 2**bits / limit < width <= limit / 2.0:
        return None
    factor = low.dtype.type((2**bits - 1) / width)

    def find(some: NDArray[Any]) -> NDArray[np.uint16]:
        # Rounding is monotone, so that no step reverses an order.
        found: NDArray[np.uint16] = ((some - low) * factor).astype(np.uint16)
        return found

    return find


def _find_by_bits(low: Any, high: Any, bits: int) -> Find:
    """Return buckets by the leading bits of floats, which count octaves and parts of them: finer towards 0."""
    signed = bool(low < 0)

    def number(some: NDArray[Any]) -> NDArray[Any]:
        # Adding 0.0 turns -0.0 into 0.0, whose bits are 0.
        return order_bits(some + 0.0, signed)

    first, last = number(np.array([low, high]))
    shift = max(0, (int(last) - int(first)).bit_length() - bits)

    def find(some: NDArray[Any]) -> NDArray[np.uint16]:
        # The difference wraps, and is right as an unsigned number.
        above = (number(some) - first).view(f"u{some.itemsize}")
        found: NDArray[np.uint16] = (above >> shift).astype(np.uint16)
        return found

    return find


def _find_range(scores: NDArray[Any]) -> tuple[Any, Any]:
    """Return the lowest and the highest score; raise if a score is not finite."""
    ends = [_as_floats(block[[block.argmin(), block.argmax()]]) for _, block in iterate_blocks(scores)]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    # argmin and argmax both return the first NaN of a block, so each block is checked.
    if not all(np.isfinite(low) and np.isfinite(high) for low, high in ends):
        raise InvalidValueError(FINITE)
    return low, high


def sort_scores(scores: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of some numbers in ascending order."""
    if len(scores) in BY_DIGITS[1 << 11 :] and _find_mapping(scores) is None:
        with np.errstate(all="ignore"):
            keys = _scale_to_16_bits(scores)
        order = _order_nearly(scores) if keys is None else np.argsort(keys, kind="stable")
        ordered: NDArray[Any] = scores.take(order)
        if not (ordered[1:] >= ordered[:-1]).all():
            # A stable sort is fast on nearly sorted scores.
            ordered.sort(kind="stable")
        return ordered
    if _find_mapping(scores) is None:
        ordered = np.array(scores)
    else:
        ordered = np.empty(len(scores), scores.dtype)
        for start, block in iterate_blocks(scores):
            ordered[start : start + len(block)] = block
    ordered.sort()
    return ordered


def _scale_to_16_bits(scores: NDArray[Any]) -> NDArray[np.uint16] | None:
    """Return keys in approximately the order of the scores; None if many would share a key, judged by a sample.

    The caller makes NumPy ignore overflow and invalid values.
    """
    sample = np.sort(scores[:: len(scores) // 64])
    # The widest range in which no 64th part holds more than an eighth of the scores, or four scores to a key.
    crowd = min(8, (1 << 18) // len(scores))
    widest = 64.0 * float((sample[crowd:] - sample[:-crowd]).min())
    if not widest > float(sample[-1]) - float(sample[0]):
        return None
    low = scores[scores.argmin()]
    width = float(scores[scores.argmax()]) - float(low)
    return ((scores - low) * (65535.0 / width)).astype(np.uint16) if widest > width else None


def _order_nearly(scores: NDArray[Any]) -> Ranks:
    """Return the positions of numbers in approximately ascending order, by the leading 32 bits in which they differ."""
    bits = scores if scores.dtype.kind != "f" else scores.view(f"i{scores.itemsize}")
    low = bits[bits.argmin()]
    if scores.dtype.kind == "f" and low < 0:
        bits = order_bits(scores)
        low = bits[bits.argmin()]
    above = (bits - low).view(f"u{bits.itemsize}") if low else bits
    keys = (above >> max(0, int(above[above.argmax()]).bit_length() - 32)).astype(np.uint32, copy=False)
    order: Ranks = np.argsort(keys.astype(np.uint16), kind="stable")
    return order.take(np.argsort((keys >> 16).astype(np.uint16).take(order), kind="stable"))


def order_bits(scores: NDArray[Any], signed: bool = True) -> NDArray[Any]:
    """Return the bits of floats as whole numbers in the order of the floats; `signed` is False if none is negative."""
    bits = scores.view(f"i{scores.itemsize}")
    # The bits of floats are in order except those of negative floats, which are reversed.
    return bits ^ (bits >> (8 * bits.itemsize - 1) & np.iinfo(bits.dtype).max) if signed else bits


def as_bits(whole: NDArray[Any]) -> NDArray[np.uint64]:
    """Return whole numbers modulo 2^64, as a view if they have 64 bits."""
    return whole.astype(np.uint64 if whole.dtype.kind == "u" else np.int64, copy=False).view(np.uint64)


def iterate_blocks(scores: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield the scores in blocks, each with its first position, and release the pages of a mapped file on the way."""
    mapped = _find_mapping(scores)
    for start in range(0, len(scores), BLOCK):
        yield start, scores[start : start + BLOCK]
        if mapped is not None and start % (256 * BLOCK) == 0:
            mapped.madvise(mmap.MADV_DONTNEED)


def _find_mapping(scores: NDArray[Any]) -> mmap.mmap | None:
    """Return the read-only mapping of the file behind the scores, or None if there is no page to release."""
    owner: Any = scores
    while owner is not None and not isinstance(owner, np.memmap):
        owner = getattr(owner, "base", None)
    # A writable mapping could hold scores that are not in the file.
    if owner is None or owner.mode != "r" or not hasattr(mmap, "MADV_DONTNEED"):
        return None
    return owner.base if isinstance(owner.base, mmap.mmap) else None


def take_sample(scores: NDArray[Any]) -> NDArray[Any]:
    """Return some of the scores, evenly spread over the positions."""
    return scores[:: max(1, len(scores) // SAMPLE)]
