"""Upper bounds on the mass of nested classes (a, b), u(a) v(b) C(a+b, a) for 1 <= a <= k and 0 <= b <= m.

The indices a and b are grouped in cells. With U the mass of a cell of a and a' its last index, R(b) = sum of
U C(a'+b, a') over all cells is at least the sum of u(a) C(a+b, a) over all a. It is a polynomial in b + 1 with
non-negative coefficients, so log R is convex in log(b + 1), and a chord between two levels of b is an upper bound in
between. A cell of b has at most its own mass times that bound at its last index (docs/proofs.md, section 9.3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from discreet.exact.arrays import Floats, Mask, Ranks, count_up, freeze
from discreet.exact.ball import LARGEST, EnvelopeError, log_binomial_float, log_factorial_float

_MAX_TABLE = 1 << 16
"""Log factorials of numbers below this are tabulated."""

_MAX_BLOCK = 128
"""The most indices a in a block of `Sums`."""

_MAX_BLOCK_RISE = 500.0
"""The largest difference of log sizes in a block: factors are at least 10^-218 of the largest and do not underflow."""

_MIN_LOG_SHARE = -700.0
"""Shares of a block are at least exp of this, which is below 2^-280 of the block; NumPy needs many times as long
for an exponential that underflows."""

_MIN_LOG_TERM = -80.0
"""Terms of a sum are at least exp of this, 2^-115, relative to the largest, for the same reason."""

_MAX_MASS_ERROR = 2.0**-24
"""The largest distance of a sum of masses from 1: up to 3,000 cells have a relative error of 2^-38 each."""


class Side(Protocol):
    """The masses of the indices on one axis."""

    @property
    def last(self) -> int:
        """The last index."""

    def is_last_above(self, log_mass: float) -> bool:
        """Return True if the last index alone has more than this log mass."""

    def log_masses(self, first: Ranks, last: Ranks) -> Floats:
        """Return the log masses of cells to a relative 2^-41; -inf only for a mass of 0."""

    def log_masses_in_a_row(self, first: Ranks) -> Floats:
        """Return the log masses of consecutive cells that begin at `first` and together hold all indices."""


@dataclass(frozen=True, eq=False, repr=False)
class Cells:
    """Ranges of indices with their masses; ranges without mass may be left out.

    Attributes
    ----------
    first, last
        The first and the last index of each range.
    log_mass
        The log mass of each range, -inf for a mass of 0.
    """

    first: Ranks
    last: Ranks
    log_mass: Floats

    @classmethod
    def of(cls, side: Side, first: Ranks, last: Ranks) -> Cells:
        log_mass = side.log_masses(first, last)
        found = log_mass > -np.inf
        return cls(first[found], last[found], log_mass[found])

    @classmethod
    def in_a_row(cls, side: Side, first: Ranks, last: Ranks) -> Cells:
        """Return consecutive cells; cells without mass are kept."""
        return cls(first, last, side.log_masses_in_a_row(first))

    def __getitem__(self, chosen: Mask) -> Cells:
        return Cells(self.first[chosen], self.last[chosen], self.log_mass[chosen])

    def cut(self, side: Side, pieces: Ranks) -> Cells:
        """Return the cells with each divided into `pieces` of about equal length."""
        whole, width = pieces <= 1, self.last - self.first + 1
        number, count = count_up(pieces[~whole]), np.repeat(pieces[~whole], pieces[~whole])
        begin, length = np.repeat(self.first[~whole], pieces[~whole]), np.repeat(width[~whole], pieces[~whole])
        # begin + length i / count, without overflow beyond 2^63.
        start, end = (
            begin - last + length // count * i + length % count * i // count
            for i, last in ((number, 0), (number + 1, 1))
        )
        new = Cells.of(side, start[end >= start], end[end >= start])
        return Cells(
            np.concatenate([self.first[whole], new.first]),
            np.concatenate([self.last[whole], new.last]),
            np.concatenate([self.log_mass[whole], new.log_mass]),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Places:
    """Positions of some b among levels: the level before, the next one, and the fraction of the way in log(b + 1)."""

    level: Ranks
    next: Ranks
    way: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Levels:
    """The nodes of the chords: some b, from 0 to m or beyond, with R at each.

    Attributes
    ----------
    b
        The levels, ascending.
    log_r
        Log R at each level.
    """

    b: Ranks
    log_r: Floats

    @classmethod
    def at(cls, b: Ranks, a: Cells) -> Levels:
        return cls(b, log_sum_exp(a.log_mass + log_sizes(a.last, b[:, None])))

    @cached_property
    def width(self) -> Floats:
        """The differences of log(b + 1) between neighbouring levels."""
        return log_ratio(self.b[:-1], self.b[1:])

    def place(self, b: Ranks) -> Places:
        level = np.maximum(self.b.searchsorted(b) - 1, 0)
        return Places(level, level + 1, log_ratio(self.b[level], b) / self.width[level])

    def bound(self, at: Places) -> Floats:
        """Return the chord at some places, an upper bound on log R up to rounding."""
        low = self.log_r.take(at.level)
        bounds: Floats = self.log_r.take(at.next)
        bounds -= low
        bounds *= at.way
        bounds += low
        return bounds

    @cached_property
    def sags(self) -> Floats:
        """Estimated distances of log R below the middle of each chord: a quarter of the most that slopes allow."""
        slope = (self.log_r[1:] - self.log_r[:-1]) / self.width
        rises = np.maximum(slope[1:] - slope[:-1], 0.0) + 2.0**-40
        before, after = np.append(max(0.0, slope[0]), rises), np.append(rises, 1e9)
        sags: Floats = 0.25 * self.width * (before * after / (before + after))
        return sags


@dataclass(frozen=True, eq=False, repr=False)
class Enclosure:
    """Cells of a, cells of b and levels, with the bounds that follow.

    Attributes
    ----------
    a, b
        The cells.
    levels
        The levels that bound R.
    log_masses
        Upper bounds on the log mass of each cell of b over all a, up to `log_slack`.
    """

    a: Cells
    b: Cells
    levels: Levels
    log_masses: Floats

    @classmethod
    def of(cls, a: Cells, b: Cells, levels: Levels) -> Enclosure:
        return cls(a, b, levels, b.log_mass + levels.bound(levels.place(b.last)))

    def row(self, b: int, most: int | None = None) -> Floats:
        """Return the logarithm of each term of R at b; `most` bounds the sum of the largest a and b."""
        return self.a.log_mass + log_sizes(self.a.last, np.array([b]), most)

    def drop_empty(self) -> Enclosure:
        """Return the enclosure without cells of mass 0."""
        a, b = self.a.log_mass > -np.inf, self.b.log_mass > -np.inf
        return Enclosure(self.a[a], self.b[b], self.levels, self.log_masses[b])


def check_bounds(cells: Enclosure, slack: float) -> None:
    """Raise EnvelopeError if the cells do not hold all mass once, or if a bound is below the value that it bounds.

    The masses of each side telescope to 1, which cells that overlap or leave a gap would not add up to; no acceptance
    probability would show that. With one cell of a, the mass of every cell of b is known. With more, bounds are
    compared with the chords, and the two levels around the heaviest cell with their sums. All other bounds are checked
    when a class is accepted.
    """
    for side in (cells.a, cells.b):
        if not abs(float(np.exp(side.log_mass).sum()) - 1.0) < _MAX_MASS_ERROR:
            raise EnvelopeError
    if len(cells.a.first) == 1:
        log_r = Levels.at(cells.b.last, cells.a).log_r
    else:
        at, levels = cells.levels.place(cells.b.last), cells.levels
        log_r = levels.bound(at)
        heaviest = int(cells.log_masses.argmax())
        beside = slice(int(at.level[heaviest]), int(at.next[heaviest]) + 1)
        if not (levels.log_r[beside] + slack >= Levels.at(levels.b[beside], cells.a).log_r).all():
            raise EnvelopeError
    if not (cells.log_masses + slack >= cells.b.log_mass + log_r).all():
        raise EnvelopeError


def log_slack(k: int, m: int, cells: int, bits: int) -> float:
    """Return the amount to add to a chord so that it is above the log sum of the integer weights of a row of a.

    All masses together are at least 1, so a log mass that matters is not far below minus the largest log size. Log
    masses, log sizes, sums and chords then have a relative error of 2^-40 of that size or an absolute one of 2^-21, and
    rounding loses a share below 2^-40 of the total. Integer weights of `bits` bits are raised by a relative 2^-20 and
    one unit each.
    """
    return 2.0**-17 + 2.0**-36 * (_largest_log_size(k, m) + 64.0) + math.log1p(cells * 2.0 ** (1 - bits))


@lru_cache(maxsize=256)
def _largest_log_size(k: int, m: int) -> float:
    # Cached by public numbers alone; the number of cells may depend on the scores and is no part of the key.
    return float(log_sizes(np.array([k]), np.array([m]))[0])


@dataclass(frozen=True, eq=False, repr=False)
class Sums:
    """Precomputed sizes C(a+b, a) for weighted sums over all a at some levels of b.

    A sum of exponentials is then a matrix-vector product. The a are divided into blocks within which sizes differ by so
    little that no float underflows.

    Attributes
    ----------
    count
        The number of a.
    heights
        The log size of the last a of each block, by block and level.
    factors
        The sizes of all a of a block relative to the last, by block, level and a.
    """

    count: int
    heights: Floats
    factors: Floats

    @classmethod
    def over(cls, sizes: Floats) -> Sums:
        """Return the sums for log sizes, one row per level; these increase in a, and most at the last level."""
        count = sizes.shape[1]
        width = min(_MAX_BLOCK, count)
        # Blocks are halved while the log size rises by too much within one.
        while width > 1:
            last = np.append(np.arange(width - 1, count - 1, width), count - 1)
            if (sizes[-1][last] - sizes[-1][::width]).max() <= _MAX_BLOCK_RISE:
                break
            width //= 2
        # The last block is padded; `log_sums` gives the padding no mass.
        filled = np.pad(sizes, ((0, 0), (0, -count % width)), mode="edge")
        blocks = filled.reshape(len(sizes), -1, width).transpose(1, 0, 2)
        heights = np.ascontiguousarray(blocks[..., -1])
        factors = np.exp(blocks - heights[..., None])
        freeze(heights, factors)
        return cls(count, heights, factors)

    def log_sums(self, log_mass: Floats) -> Floats:
        """Return log of the sum of exp(log_mass) C(a+b, a) over all a, at each level b.

        The error is an absolute 2^-40, or a relative 2^-40 of the largest log size.
        """
        count, _, width = self.factors.shape
        if missing := count * width - self.count:
            log_mass = np.append(log_mass, np.full(missing, -np.inf))
        blocks = log_mass.reshape(count, width)
        top = np.maximum.reduce(blocks, axis=-1, keepdims=True, initial=-LARGEST)
        shares = blocks - top
        np.maximum(shares, _MIN_LOG_SHARE, out=shares)
        np.exp(shares, out=shares)
        parts = (self.factors @ shares[..., None])[..., 0]
        np.log(parts, out=parts)
        parts += top
        parts += self.heights
        sums: Floats = parts[0] if count == 1 else log_sum_exp(parts, axis=0)
        return sums


def log_sum_exp(rows: Floats, axis: int = -1) -> Floats:
    """Return the logarithm of the sum of exponentials along an axis."""
    top = np.maximum.reduce(rows, axis=axis, keepdims=True)
    terms = rows - top
    np.maximum(terms, _MIN_LOG_TERM, out=terms)
    logs: Floats = np.log(np.exp(terms, out=terms).sum(axis=axis)) + np.squeeze(top, axis)
    return logs


def log_ratio(low: Ranks, high: Ranks) -> Floats:
    """Return log((high + 1) / (low + 1))."""
    return np.log1p((high - low) / (low + 1.0))


def log_sizes(a: Ranks, b: Ranks, most: int | None = None) -> Floats:
    """Return log C(a + b, a), to a relative 2^-43 or, from the table, to an absolute 2^-21; `most` bounds all a + b."""
    if most is None:
        most = int(a.max(initial=0)) + int(b.max(initial=0))
    if most >= _MAX_TABLE:
        return log_binomial_float(a, b)
    # Each of the three terms has a relative error of 2^-43 and is below 2^20.
    logs = _log_factorials(1 << most.bit_length())
    sizes: Floats = logs.take(a + b) - logs.take(a) - logs.take(b)
    return sizes


@lru_cache(maxsize=17)
def _log_factorials(count: int) -> Floats:
    logs = log_factorial_float(np.arange(count))
    freeze(logs)
    return logs
