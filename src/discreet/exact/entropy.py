"""Exact uniform draws from random bits: whole numbers, subsets, sequences, and reals revealed word by word.

All randomness of the package comes from one primitive, `getrandbits`, served by the operating system unless a caller
passes a generator. Nothing is kept between calls, so forks, threads and copies are safe. Whole numbers are drawn by
rejection, and by the multiplication of Lemire (Fast Random Integer Generation in an Interval, 2019) where many are.
"""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Sequence
from random import Random
from typing import Any, Protocol

import numpy as np
from flint import arb, fmpz

from discreet.errors import InvalidTypeError, quote
from discreet.exact.arrays import Mask, Ranks, Words, sorted_distinct

_WORD = 64
"""Bits per request, unless a test asks for fewer."""

_SMALL_SUBSET = 32
"""Subsets of up to this size are drawn in Python; NumPy calls cost more."""

_MARK_RATIO = 64
"""A subset is drawn in a bitmap if the range is less than this many times its size."""

_MAX_MARKS = 1 << 24
"""The longest bitmap, one byte per number, for a subset of at most half of its range."""

_BLOCK_WORDS = 1 << 16
"""Words drawn at a time by `upto_all`, which bounds its temporary arrays."""

_MULTIPLY_BELOW = 1 << 28
"""Ranges up to this are drawn by multiplication, larger ones by rejection of their own number of bits."""


class Bits(Protocol):
    """A source of random bits: the operating system, `random.Random(seed)`, or a script in a test."""

    def getrandbits(self, k: int, /) -> int: ...


def as_entropy(rng: Any) -> Entropy:
    """Return the draws from `rng`: a `random.Random`, a NumPy Generator, or None for the operating system."""
    if rng is None:
        return Entropy()
    if isinstance(rng, Entropy):
        return rng
    if callable(getattr(rng, "getrandbits", None)):
        return Entropy(rng)
    if isinstance(rng, np.random.Generator):
        return Entropy(_GeneratorBits(rng))
    raise InvalidTypeError(
        f"rng must be None (the operating system), a random.Random or a NumPy Generator, not {quote(rng)}"
    )


class Entropy:
    """Exact draws from a source of bits.

    Parameters
    ----------
    bits
        The source; the operating system by default.
    word
        The number of bits per request, at most 64. The distribution of every draw is the same for every value; a test
        that enumerates all bit strings sets a small one.
    """

    def __init__(self, bits: Bits | None = None, word: int = _WORD) -> None:
        self._bits = SystemBits() if bits is None else bits
        self.word = word

    def uniform(self) -> Uniform:
        """Draw a uniform real in [0, 1) and reveal its first word."""
        return Uniform(self)

    def position(self, cumulative: Ranks) -> int:
        """Draw j with probability exactly (cumulative[j] - cumulative[j-1]) / cumulative[-1].

        `cumulative` are ascending whole numbers, the running sums of weights.
        """
        uniform, total = Uniform(self), int(cumulative[-1])
        while True:
            # floor(U * total) is at least `low` and at most `high`.
            low = uniform.numerator * total >> uniform.bits
            high = ((uniform.numerator + 1) * total - 1) >> uniform.bits
            first = int(cumulative.searchsorted(low, side="right"))
            if high < cumulative[first]:
                return first
            uniform.extend()

    def subset(self, size: int, last: int) -> Ranks:
        """Draw a uniform subset of `size` of the whole numbers 0..last, in ascending order."""
        # The distinct values among uniform draws, until there are enough: every subset is equally likely.
        few = min(size, last + 1 - size)
        if few < size or (size > _SMALL_SUBSET and last < min(_MARK_RATIO * size, _MAX_MARKS)):
            marked = self._mark_subset(few, last)
            return (marked if few == size else ~marked).nonzero()[0]
        if size <= _SMALL_SUBSET:
            return np.array(sorted(self._small_subset(size, last)), np.int64)
        chosen = np.empty(0, np.int64)
        while (missing := few - len(chosen)) > 0:
            chosen = sorted_distinct(np.concatenate([chosen, self.upto_all(missing, last)]))
        return chosen

    def _mark_subset(self, size: int, last: int) -> Mask:
        """Draw a uniform subset of `size` of 0..last as a bitmap."""
        marked, missing = np.zeros(last + 1, np.bool_), size
        if size <= _SMALL_SUBSET:
            marked[list(self._small_subset(size, last))] = True
            return marked
        while missing > 0:
            # The expected number of draws for `missing` new values, and a margin: a second round costs more.
            likely = (last + 1) * math.log1p(missing / (last + 1 - size)) + 2.0 * math.sqrt(missing)
            drawn = self.upto_all(max(missing, int(likely)), last)
            while 0 < missing <= len(drawn):
                marked[drawn[:missing]] = True
                drawn = drawn[missing:]
                missing = size - int(np.count_nonzero(marked))
        return marked

    def _small_subset(self, size: int, last: int) -> set[int]:
        """Draw a uniform subset of `size` of 0..last in Python."""
        chosen: set[int] = set()
        while (missing := size - len(chosen)) > 0:
            chosen.update(self._upto_few(missing, last))
        return chosen

    def arrangement(self, largest: Sequence[int]) -> list[int]:
        """Draw a uniform sequence of distinct whole numbers with entry i in 0..largest[i].

        The bounds must not decrease, and largest[i] >= i. This is a Fisher-Yates shuffle: step i swaps place i with a
        uniform place in i..largest[i]. Places up to largest[i] hold a permutation of themselves at every step, so each
        of the largest[i] - i + 1 unused numbers is equally likely. Places that were never swapped are not stored.
        """
        moved: dict[int, int] = {}
        steps = self.upto_each(np.array([bound - i for i, bound in enumerate(largest)], np.int64))
        result = []
        for i, step in enumerate(steps.tolist()):
            place = i + step
            result.append(moved.get(place, place))
            moved[place] = moved.get(i, i)
        return result

    def upto_each(self, largest: Ranks) -> Ranks:
        """Draw one uniform whole number in 0..largest[i] for each i, independently."""
        if len(largest) <= 32:
            return np.array([self.upto(bound) for bound in largest.tolist()], np.int64)
        values = np.empty(len(largest), np.int64)
        waiting = np.arange(len(largest))
        while len(waiting):
            bounds = largest[waiting].astype(np.uint64)
            # A draw of w bits for a bound below 2^w; w may be one more than needed where the float rounds up.
            widths = np.frexp(bounds.astype(np.float64))[1].astype(np.uint64)
            drawn = self._fields(len(waiting), 64) >> (np.uint64(64) - np.maximum(widths, np.uint64(1)))
            fits = drawn <= bounds
            values[waiting[fits]] = drawn[fits].astype(np.int64)
            waiting = waiting[~fits]
        return values

    def upto_all(self, count: int, last: int) -> Ranks:
        """Draw `count` independent uniform whole numbers in 0..last."""
        if self._is_bitwise or last >= _MULTIPLY_BELOW:
            # Rejection of as many bits as `last` has.
            bits, kept = last.bit_length(), np.empty(0, np.int64)
            while (missing := count - len(kept)) > 0:
                # The expected number of proposals, and a few more.
                likely = (missing << bits) // (last + 1) + missing // 16 + 8
                # A generator serves at most as many bits at a time as a C int can count.
                proposals = self._fields(missing if self._is_bitwise else min(likely, 1 << 24), bits)
                kept = np.concatenate([kept, proposals[proposals <= np.uint64(last)].astype(np.int64)[:missing]])
            return kept
        # For a uniform word W of w bits, the upper half of W (last + 1) takes every value equally often once words are
        # rejected whose lower half is below 2^w mod (last + 1) (Lemire, 2019).
        width, size, parts = 16 if last < 1 << 14 else 32, last + 1, []
        spare, lower = (1 << width) % size, (1 << width) - 1
        while count > 0:
            likely = (count << width) // ((1 << width) - spare) + (count >> 5) + 4
            products = self._fields(min(likely, _BLOCK_WORDS), width) * size
            drawn = products[(products & lower) >= spare] >> width
            parts.append(drawn[:count].view(np.int64))
            count -= len(parts[-1])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _upto_few(self, count: int, last: int) -> list[int]:
        """Draw `count` independent uniform whole numbers in 0..last, and drop those that are rejected."""
        if self._is_bitwise or last >= _MULTIPLY_BELOW:
            return [self.upto(last) for _ in range(count)]
        # As in `upto_all`, in Python.
        size, spare = last + 1, (1 << 32) % (last + 1)
        products = [word * size for word in struct.unpack(f"<{count}I", self._bytes(4 * count))]
        return [product >> 32 for product in products if product & 0xFFFFFFFF >= spare]

    def upto(self, largest: int) -> int:
        """Draw a uniform whole number in 0..largest."""
        width = largest.bit_length()
        while (value := self.bits(width)) > largest:
            pass
        return value

    def words(self, count: int) -> Words:
        """Draw `count` independent uniform whole numbers in [0, 2^word)."""
        return self._fields(count, self.word)

    def _fields(self, count: int, width: int) -> Words:
        """Draw `count` independent uniform whole numbers in [0, 2^width)."""
        if width == 0:
            return np.zeros(count, np.uint64)
        if width * count <= 64:
            return np.array([self.bits(width) for _ in range(count)], np.uint64)
        size = 2 if width <= 16 else 4 if width <= 32 else 8
        words = np.frombuffer(self._bytes(size * count), f"<u{size}").astype(np.uint64)
        return words if width == 8 * size else words >> np.uint64(8 * size - width)

    def _bytes(self, count: int) -> bytes:
        """Draw `count` bytes, without a detour over whole numbers where the source serves bytes."""
        # Subclasses may override `getrandbits` alone.
        if type(self._bits) is SystemBits or type(self._bits) is Random:
            return self._bits.randbytes(count)
        return self.bits(8 * count).to_bytes(count, "little")

    def bits(self, count: int) -> int:
        """Draw a whole number of `count` independent fair bits."""
        return self._bits.getrandbits(count) if count else 0

    @property
    def _is_bitwise(self) -> bool:
        """True if a test asks for so few bits at a time that none may be wasted."""
        return self.word < _WORD


class Uniform:
    """A uniform real in [0, 1), of which only the bits needed so far have been drawn.

    It lies in [numerator / 2^bits, (numerator + 1) / 2^bits]. Revealing more bits does not change the known ones.
    """

    __slots__ = ("_entropy", "bits", "numerator")

    def __init__(self, entropy: Entropy, numerator: int | None = None) -> None:
        self._entropy = entropy
        self.bits = entropy.word
        self.numerator = entropy.bits(entropy.word) if numerator is None else numerator

    def ball(self) -> arb:
        """Return a ball that contains the number."""
        return arb((fmpz(2 * self.numerator + 1), -self.bits - 1), (fmpz(1), -self.bits - 1))

    def reveal(self, words: int) -> int:
        """Extend the number to at least `words` words and return the number of bits in `words` words."""
        bits = words * self._entropy.word
        while self.bits < bits:
            self.extend()
        return bits

    def extend(self) -> None:
        """Reveal one more word."""
        word = self._entropy.word
        self.numerator = self.numerator << word | self._entropy.bits(word)
        self.bits += word


class SystemBits:
    """Random bits of the operating system."""

    def getrandbits(self, k: int, /) -> int:
        if k <= 8:
            # Most draws take a few bits, and an index is faster than a conversion.
            return os.urandom(1)[0] >> (8 - k)
        size = (k + 7) // 8
        return int.from_bytes(os.urandom(size), "little") >> (8 * size - k)

    def randbytes(self, n: int, /) -> bytes:
        return os.urandom(n)


class _GeneratorBits:
    """Random bits of a NumPy Generator."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def getrandbits(self, k: int, /) -> int:
        size = (k + 7) // 8
        return int.from_bytes(self._generator.bytes(size), "little") >> (8 * size - k)
