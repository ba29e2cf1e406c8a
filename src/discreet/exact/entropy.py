"""Random bits and the exact draws made of them: whole numbers, subsets, and uniform numbers revealed bit by bit.

Everything random in the package comes from one primitive, `getrandbits`, which the operating system serves unless a
caller passes a generator of its own. There is no state between calls, so that forks, threads and copies are safe.
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

_CLOSE = 64
"""Up to how many numbers there may be for each that is drawn, if the drawn ones are marked among all of them."""

_MARKS = 1 << 24
"""How many marks there are at most where the drawn ones are few, a byte each."""

_FEW = 32
"""Up to how many numbers of a subset are drawn by Python."""

_BLOCK = 1 << 16
"""How many numbers are drawn at a time where many are."""

_LARGE = 1 << 28
"""From which largest number on as many bits are drawn as it has."""

_WORD = 64
"""How many bits are asked for at a time, unless somebody counts them."""


class Bits(Protocol):
    """Whatever can serve random bits: the operating system, `random.Random(seed)`, a script in a test."""

    def getrandbits(self, k: int, /) -> int: ...


class SystemBits:
    """Bits of the operating system, asked for anew each time."""

    def getrandbits(self, k: int, /) -> int:
        size = (k + 7) // 8
        return int.from_bytes(os.urandom(size), "little") >> (8 * size - k)

    def randbytes(self, n: int, /) -> bytes:
        return os.urandom(n)


class Entropy:
    """Exact draws from a source of bits.

    Parameters
    ----------
    bits
        The source; the operating system by default.
    word
        How many bits to ask for at a time, at most 64. The distribution of every draw is the same for every value;
        a test that walks through all bit strings asks for few.
    """

    def __init__(self, bits: Bits | None = None, word: int = _WORD) -> None:
        self._bits = SystemBits() if bits is None else bits
        self.word = word

    def bits(self, count: int) -> int:
        """Returns a whole number of `count` independent fair bits."""
        return self._bits.getrandbits(count) if count else 0

    def words(self, count: int) -> Words:
        """Returns independent uniform whole numbers in [0, 2^word)."""
        return self._fields(count, self.word)

    def upto(self, largest: int) -> int:
        """Returns a uniform whole number in 0..largest."""
        width = largest.bit_length()
        while (value := self.bits(width)) > largest:
            pass
        return value

    def upto_each(self, largest: Ranks) -> Ranks:
        """Returns one uniform whole number in 0..largest for every entry of `largest`, independently."""
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

    def subset(self, size: int, last: int) -> Ranks:
        """Returns a uniform subset of `size` of the whole numbers 0..last, in ascending order."""
        # The distinct values among uniform draws, until there are enough: every subset is equally likely.
        few = min(size, last + 1 - size)
        if few < size or (size > _FEW and last < min(_CLOSE * size, _MARKS)):
            marked = self._mark(few, last)
            return (marked if few == size else ~marked).nonzero()[0]
        if size <= _FEW:
            return np.array(sorted(self._draw_few(size, last)), np.int64)
        chosen = np.empty(0, np.int64)
        while (missing := few - len(chosen)) > 0:
            chosen = sorted_distinct(np.concatenate([chosen, self.upto_all(missing, last)]))
        return chosen

    def _draw_few(self, size: int, last: int) -> set[int]:
        """Returns a uniform subset of so many of 0..last."""
        chosen: set[int] = set()
        while (missing := size - len(chosen)) > 0:
            chosen.update(self._upto_few(missing, last))
        return chosen

    def _mark(self, few: int, last: int) -> Mask:
        """Returns marks at a uniform subset of so many of 0..last."""
        marked, missing = np.zeros(last + 1, np.bool_), few
        if few <= _FEW:
            marked[list(self._draw_few(few, last))] = True
            return marked
        while missing > 0:
            # About as many as it takes until so many more are different, and some more: a second round takes longer.
            likely = (last + 1) * math.log1p(missing / (last + 1 - few)) + 2.0 * math.sqrt(missing)
            drawn = self.upto_all(max(missing, int(likely)), last)
            while 0 < missing <= len(drawn):
                marked[drawn[:missing]] = True
                drawn = drawn[missing:]
                missing = few - int(np.count_nonzero(marked))
        return marked

    def arrangement(self, largest: Sequence[int]) -> list[int]:
        """Returns a uniform sequence of distinct numbers with entry i in 0..largest[i].

        The bounds must not decrease, and largest[i] >= i. Step i of a shuffle swaps place i with a uniform place in
        i..largest[i]; places up to largest[i] hold a permutation of themselves at every step, so each of the
        largest[i] - i + 1 numbers still free is equally likely. Places that nobody touched are not stored.
        """
        moved: dict[int, int] = {}
        steps = self.upto_each(np.array([bound - i for i, bound in enumerate(largest)], np.int64))
        result = []
        for i, step in enumerate(steps.tolist()):
            place = i + step
            result.append(moved.get(place, place))
            moved[place] = moved.get(i, i)
        return result

    def uniform(self) -> Uniform:
        """Returns a uniform number in [0, 1) of which the first word is known."""
        return Uniform(self)

    def upto_all(self, count: int, last: int) -> Ranks:
        """Returns so many independent uniform whole numbers in 0..last."""
        if self._is_bitwise or last >= _LARGE:
            return self._upto_all_by_bits(count, last)
        # Of all words, as many have each number in the upper half of word * (last + 1), but for some with the least in
        # the lower half; those are dropped (Lemire 2019). In blocks, so that what is between is not large.
        width, size, parts = 16 if last < 1 << 14 else 32, last + 1, []
        spare, lower = (1 << width) % size, (1 << width) - 1
        while count > 0:
            likely = (count << width) // ((1 << width) - spare) + (count >> 5) + 4
            products = self._fields(min(likely, _BLOCK), width) * size
            drawn = products[(products & lower) >= spare] >> width
            parts.append(drawn[:count].view(np.int64))
            count -= len(parts[-1])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _upto_few(self, count: int, last: int) -> list[int]:
        """Returns independent uniform whole numbers in 0..last: so many, but for those that are dropped on the way."""
        if self._is_bitwise or last >= _LARGE:
            return [self.upto(last) for _ in range(count)]
        # As in `upto_all`, number by number.
        size, spare = last + 1, (1 << 32) % (last + 1)
        products = [word * size for word in struct.unpack(f"<{count}I", self._bytes(4 * count))]
        return [product >> 32 for product in products if product & 0xFFFFFFFF >= spare]

    @property
    def _is_bitwise(self) -> bool:
        """Whether so few bits are asked for at a time that none may be wasted."""
        return self.word < _WORD

    def _upto_all_by_bits(self, count: int, last: int) -> Ranks:
        """The same by as many bits as the largest has, dropping what is beyond it."""
        width = last.bit_length()
        kept = np.empty(0, np.int64)
        while (missing := count - len(kept)) > 0:
            # As many as are likely to leave enough after those beyond `last` are dropped.
            likely = (missing << width) // (last + 1) + missing // 16 + 8
            # A generator may not have more bits than a C int can count at a time.
            drawn = self._fields(missing if self._is_bitwise else min(likely, 1 << 24), width)
            kept = np.concatenate([kept, drawn[drawn <= np.uint64(last)].astype(np.int64)[:missing]])
        return kept

    def _fields(self, count: int, width: int) -> Words:
        """Returns independent uniform whole numbers in [0, 2^width), `width` random bits each."""
        if width == 0:
            return np.zeros(count, np.uint64)
        if width * count <= 64:
            return np.array([self.bits(width) for _ in range(count)], np.uint64)
        size = 2 if width <= 16 else 4 if width <= 32 else 8
        words = np.frombuffer(self._bytes(size * count), f"<u{size}").astype(np.uint64)
        return words if width == 8 * size else words >> np.uint64(8 * size - width)

    def _bytes(self, count: int) -> bytes:
        """The same as so many bytes of bits: directly where the source has them as bytes, which is faster."""
        # Not of their subclasses, which may have bits of their own.
        if type(self._bits) is SystemBits or type(self._bits) is Random:
            return self._bits.randbytes(count)
        return self.bits(8 * count).to_bytes(count, "little")


class Uniform:
    """A number drawn uniformly from [0, 1), known to as many bits as anybody has needed so far.

    It lies in [numerator / 2^bits, (numerator + 1) / 2^bits]. Asking for more bits never changes those it has.
    """

    __slots__ = ("_entropy", "bits", "numerator")

    def __init__(self, entropy: Entropy, numerator: int | None = None) -> None:
        self._entropy = entropy
        self.bits = entropy.word
        self.numerator = entropy.bits(entropy.word) if numerator is None else numerator

    def extend(self) -> None:
        """Reveals one more word."""
        word = self._entropy.word
        self.numerator = self.numerator << word | self._entropy.bits(word)
        self.bits += word

    def reveal(self, words: int) -> int:
        """Extend the number to so many words, where it has fewer, and return how many bits that is."""
        bits = words * self._entropy.word
        while self.bits < bits:
            self.extend()
        return bits

    def ball(self) -> arb:
        """An interval that holds the number."""
        return arb((fmpz(2 * self.numerator + 1), -self.bits - 1), (fmpz(1), -self.bits - 1))

    def position(self, cumulative: Ranks) -> int:
        """The part of a line cut at `cumulative` (ascending, integers) in which this share of its length falls.

        Returns j with probability exactly (cumulative[j] - cumulative[j-1]) / cumulative[-1].
        """
        total = int(cumulative[-1])
        while True:
            # floor(U * total) is at least `low` and at most `high`.
            low = self.numerator * total >> self.bits
            high = ((self.numerator + 1) * total - 1) >> self.bits
            first = int(cumulative.searchsorted(low, side="right"))
            if high < cumulative[first]:
                return first
            self.extend()


def as_entropy(rng: Any) -> Entropy:
    """The draws made of a caller's generator: a `random.Random`, a NumPy Generator, or None for the system's."""
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


class _GeneratorBits:
    """A NumPy Generator as a source of bits."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def getrandbits(self, k: int, /) -> int:
        size = (k + 7) // 8
        return int.from_bytes(self._generator.bytes(size), "little") >> (8 * size - k)
