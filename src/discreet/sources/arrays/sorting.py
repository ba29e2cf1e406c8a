"""An array of numbers as a tally.

Small whole numbers, which is what most counts are, are counted value by value in one pass. Other large arrays are put
into `buckets` if a sample of the scores shows that these will be small, and are sorted otherwise. The sample changes
the cost alone; every answer is exact.
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

# Arrays of numbers looked at in pieces, sampled, and sorted, in as few passes as their size and type allow.

FINITE = "scores must be finite numbers, and one of them is not; drop or replace it before the call"

BLOCK = 1 << 16
"""How many scores are looked at at a time, so that they stay in the cache."""

SAMPLE = 1 << 14
"""About how many scores a sample has."""


def iterate_blocks(scores: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """The scores in pieces, each with its first position; the pages of a mapped file are let go on the way."""
    mapped = _find_mapping(scores)
    for start in range(0, len(scores), BLOCK):
        yield start, scores[start : start + BLOCK]
        if mapped is not None and start % (256 * BLOCK) == 0:
            mapped.madvise(mmap.MADV_DONTNEED)


def _find_mapping(scores: NDArray[Any]) -> mmap.mmap | None:
    """The mapping of a file that scores are read from, if it is mapped only to be read and its pages can be let go."""
    owner: Any = scores
    while owner is not None and not isinstance(owner, np.memmap):
        owner = getattr(owner, "base", None)
    # A mapping that may be written to could hold what is not in the file.
    if owner is None or owner.mode != "r" or not hasattr(mmap, "MADV_DONTNEED"):
        return None
    return owner.base if isinstance(owner.base, mmap.mmap) else None


def take_sample(scores: NDArray[Any]) -> NDArray[Any]:
    """Some of the scores, evenly spread over the positions."""
    return scores[:: max(1, len(scores) // SAMPLE)]


BY_DIGITS = range(1 << 9, 1 << 18)
"""For how many scores at a time sorting them by digits is faster than comparing them."""


def sort_scores(scores: NDArray[Any]) -> NDArray[Any]:
    """A copy of some numbers in ascending order."""
    if len(scores) in BY_DIGITS[1 << 11 :] and _find_mapping(scores) is None:
        with np.errstate(all="ignore"):
            keys = _scale_to_16_bits(scores)
        order = _order_nearly(scores) if keys is None else np.argsort(keys, kind="stable")
        ordered: NDArray[Any] = scores.take(order)
        if not (ordered[1:] >= ordered[:-1]).all():
            # Takes advantage of what is in order already, and puts right what is not.
            ordered.sort(kind="stable")
        return ordered
    ordered = _copy_scores(scores)
    ordered.sort()
    return ordered


def _scale_to_16_bits(scores: NDArray[Any]) -> NDArray[np.uint16] | None:
    """Keys in about the order of the scores; None where many would share a key, as a sample of them says.

    The caller has NumPy ignore what overflows and what is no number.
    """
    sample = np.sort(scores[:: len(scores) // 64])
    # How wide the range may be for an eighth of the scores, or four to a key, to have a 64th of it.
    crowd = min(8, (1 << 18) // len(scores))
    widest = 64.0 * float((sample[crowd:] - sample[:-crowd]).min())
    if not widest > float(sample[-1]) - float(sample[0]):
        return None
    low = scores[scores.argmin()]
    width = float(scores[scores.argmax()]) - float(low)
    return ((scores - low) * (65535.0 / width)).astype(np.uint16) if widest > width else None


def _order_nearly(scores: NDArray[Any]) -> Ranks:
    """The positions of some numbers in about ascending order, by the leading 32 bits of what they differ in."""
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
    """The bits of floats as whole numbers that are in their order; `signed` says whether some may be negative."""
    bits = scores.view(f"i{scores.itemsize}")
    # Read as whole numbers they are but for the negative ones, which are reversed.
    return bits ^ (bits >> (8 * bits.itemsize - 1) & np.iinfo(bits.dtype).max) if signed else bits


def as_bits(whole: NDArray[Any]) -> NDArray[np.uint64]:
    """Whole numbers modulo 2^64; a view where they have 64 bits."""
    return whole.astype(np.uint64 if whole.dtype.kind == "u" else np.int64, copy=False).view(np.uint64)


def _copy_scores(scores: NDArray[Any]) -> NDArray[Any]:
    if _find_mapping(scores) is None:
        return np.array(scores)
    copy = np.empty(len(scores), scores.dtype)
    for start, block in iterate_blocks(scores):
        copy[start : start + len(block)] = block
    return copy


# Numbers in order by buckets: one pass counts how many are in each, and only the buckets asked for are sorted.
#
# A mechanism asks for the scores at some hundred ranks, however many there are. Buckets are parts of the range, of
# equal
# width or finer towards 0, and no score is in a lower bucket than a smaller score. So the score at a position is in a
# known bucket, at a known place in its order. Whole numbers choose their bucket as the nearest float, which keeps their
# order, and are looked up as they are.

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
