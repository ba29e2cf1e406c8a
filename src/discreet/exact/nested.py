"""Bounds on nested classes: classes (a, b) of mass u(a) v(b) C(a+b, a), for 1 <= a <= k and 0 <= b <= m.

Cells of neighbouring a, and of neighbouring b, have masses that are known at once. With U the mass of a cell of a and
a' its last member, let R(b) be the sum of U C(a'+b, a') over all cells: at least the sum of u(a) C(a+b, a). It is a
polynomial in b + 1 without negative coefficients, so that log R is convex in log(b + 1), and a chord between two levels
of b is an upper bound between them. A cell of b has at most its own mass times that bound at its last member. Floats
choose cells and levels, and any choice is valid: they are cut while the bounds exceed what they likely bound by much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from discreet.exact.arrays import Floats, Mask, Ranks, count_up, freeze
from discreet.exact.ball import LARGEST, EnvelopeError, log_binomial_float, log_factorial_float

# How many subsets nested classes have, log C(a+b, a), and sums of these over all a: what k and d alone decide is kept.
#
# Sums of many exponentials are products of a matrix that is kept with a vector: the a are put into blocks, in each of
# which sizes differ by so little that no float is lost.

_TABLED = 1 << 16
"""Logarithms of the factorials of smaller numbers are kept."""

_WIDEST = 128
"""How many a there are in a block at most."""

_RISE = 500.0
"""By how much log sizes may differ in a block: their exponentials are no less than 10^-218 of the largest."""

_LOWEST = -700.0
"""What logarithms beside the largest of a block are taken for where they are less, which is below 2^-280 of the block:
NumPy takes many times as long for an exponential that is too small for a float."""


def log_sizes(a: Ranks, b: Ranks, most: int | None = None) -> Floats:
    """Log C(a + b, a), right to a relative 2^-43 or, where a table has it, to 2^-21; no a + b is above `most`."""
    if most is None:
        most = int(a.max(initial=0)) + int(b.max(initial=0))
    if most >= _TABLED:
        return log_binomial_float(a, b)
    # Each of three is right to a relative 2^-43 of less than 2^20.
    logs = _log_factorials(1 << most.bit_length())
    sizes: Floats = logs.take(a + b) - logs.take(a) - logs.take(b)
    return sizes


@lru_cache(maxsize=17)
def _log_factorials(count: int) -> Floats:
    logs = log_factorial_float(np.arange(count))
    freeze(logs)
    return logs


@dataclass(frozen=True, eq=False, repr=False)
class Sums:
    """What sums of log sizes over all a are made of, at some levels of b.

    Attributes
    ----------
    count
        How many a there are.
    heights
        The log size of the last a of each block, by block and level.
    factors
        The sizes of all a of a block beside that, by block, level and a.
    """

    count: int
    heights: Floats
    factors: Floats

    @classmethod
    def over(cls, sizes: Floats) -> Sums:
        """Sums of exponentials of log sizes, a row for each level; they grow with a, and most at the last level."""
        count = sizes.shape[1]
        width = min(_WIDEST, count)
        while width > 1 and _largest_rise(sizes[-1], width) > _RISE:
            width //= 2
        # The last block is filled up with what has no mass.
        filled = np.pad(sizes, ((0, 0), (0, -count % width)), mode="edge")
        blocks = filled.reshape(len(sizes), -1, width).transpose(1, 0, 2)
        heights = np.ascontiguousarray(blocks[..., -1])
        factors = np.exp(blocks - heights[..., None])
        freeze(heights, factors)
        return cls(count, heights, factors)

    def log_sums(self, log_mass: Floats) -> Floats:
        """Return the logarithm of the sum of masses times sizes at each level.

        It is right to an absolute 2^-40, or a relative 2^-40 of the largest log size.
        """
        count, _, width = self.factors.shape
        if missing := count * width - self.count:
            log_mass = np.append(log_mass, np.full(missing, -np.inf))
        blocks = log_mass.reshape(count, width)
        top = np.maximum.reduce(blocks, axis=-1, keepdims=True, initial=-LARGEST)
        shares = blocks - top
        np.maximum(shares, _LOWEST, out=shares)
        np.exp(shares, out=shares)
        parts = (self.factors @ shares[..., None])[..., 0]
        np.log(parts, out=parts)
        parts += top
        parts += self.heights
        sums: Floats = parts[0] if count == 1 else log_sum_exp(parts, axis=0)
        return sums


def _largest_rise(sizes: Floats, width: int) -> float:
    """By how much sizes rise at most within a block of one width."""
    last = np.append(np.arange(width - 1, len(sizes) - 1, width), len(sizes) - 1)
    return float((sizes[last] - sizes[::width]).max())


def log_sum_exp(rows: Floats, axis: int = -1) -> Floats:
    """The logarithm of the sum of exponentials along an axis, a term below 2^-115 of the largest taken for that."""
    top = np.maximum.reduce(rows, axis=axis, keepdims=True)
    terms = rows - top
    np.maximum(terms, -80.0, out=terms)
    logs: Floats = np.log(np.exp(terms, out=terms).sum(axis=axis)) + np.squeeze(top, axis)
    return logs


class Side(Protocol):
    """The masses on one axis."""

    @property
    def last(self) -> int:
        """The last index."""

    def is_last_above(self, log_mass: float) -> bool:
        """Return True if the last index alone has more than this log mass."""

    def log_masses(self, first: Ranks, last: Ranks) -> Floats:
        """The log masses of cells, right to a relative 2^-41, and -inf only where there is none."""

    def log_masses_in_a_row(self, first: Ranks) -> Floats:
        """The same for cells that end where the next begins: the first begins with all indices, the last ends there."""


@dataclass(frozen=True, eq=False, repr=False)
class Cells:
    """Ranges of indices, with or without those that have no mass.

    Attributes
    ----------
    first, last
        The first and the last index of each.
    log_mass
        The log mass of each, -inf where there is none.
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
        """Return cells that each begin after the last index of the one before; empty ones are kept, with -inf."""
        return cls(first, last, side.log_masses_in_a_row(first))

    def __getitem__(self, chosen: Mask) -> Cells:
        return Cells(self.first[chosen], self.last[chosen], self.log_mass[chosen])

    def cut(self, side: Side, pieces: Ranks) -> Cells:
        """The same with each in so many pieces of about one length."""
        whole, width = pieces <= 1, self.last - self.first + 1
        number, count = count_up(pieces[~whole]), np.repeat(pieces[~whole], pieces[~whole])
        begin, length = np.repeat(self.first[~whole], pieces[~whole]), np.repeat(width[~whole], pieces[~whole])
        # Without passing 2^63.
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
    """Where some b are among levels: after which level and before which, and how far on the way between them."""

    level: Ranks
    next: Ranks
    way: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Levels:
    """Some b, from 0 to m or beyond, with R at each.

    Attributes
    ----------
    b
        The levels.
    log_r
        Log R at each.
    """

    b: Ranks
    log_r: Floats

    @classmethod
    def at(cls, b: Ranks, a: Cells) -> Levels:
        return cls(b, log_sum_exp(a.log_mass + log_sizes(a.last, b[:, None])))

    @cached_property
    def width(self) -> Floats:
        """How far log(b + 1) is from each level to the next."""
        return log_ratio(self.b[:-1], self.b[1:])

    def place(self, b: Ranks) -> Places:
        level = np.maximum(self.b.searchsorted(b) - 1, 0)
        return Places(level, level + 1, log_ratio(self.b[level], b) / self.width[level])

    def bound(self, at: Places) -> Floats:
        """The chord at some places: at least log R but for rounding."""
        low = self.log_r.take(at.level)
        bounds: Floats = self.log_r.take(at.next)
        bounds -= low
        bounds *= at.way
        bounds += low
        return bounds

    @cached_property
    def sags(self) -> Floats:
        """About how far log R is below the middle of each chord: a quarter of what the slopes beside it allow for."""
        slope = (self.log_r[1:] - self.log_r[:-1]) / self.width
        rises = np.maximum(slope[1:] - slope[:-1], 0.0) + 2.0**-40
        before, after = np.append(max(0.0, slope[0]), rises), np.append(rises, 1e9)
        sags: Floats = 0.25 * self.width * (before * after / (before + after))
        return sags


@dataclass(frozen=True, eq=False, repr=False)
class Enclosure:
    """Cells of a, cells of b and levels, with what all of them bound.

    Attributes
    ----------
    a, b
        The cells.
    levels
        What bounds R.
    log_masses
        At least the log mass of each cell of b over all a, but for what `log_slack` is for.
    """

    a: Cells
    b: Cells
    levels: Levels
    log_masses: Floats

    @classmethod
    def of(cls, a: Cells, b: Cells, levels: Levels) -> Enclosure:
        return cls(a, b, levels, b.log_mass + levels.bound(levels.place(b.last)))

    def row(self, b: int, most: int | None = None) -> Floats:
        """The logarithm of each term of R at some b; `most` is at least what the largest a and b come to."""
        return self.a.log_mass + log_sizes(self.a.last, np.array([b]), most)

    def drop_empty(self) -> Enclosure:
        """The same without cells that have no mass."""
        a, b = self.a.log_mass > -np.inf, self.b.log_mass > -np.inf
        return Enclosure(self.a[a], self.b[b], self.levels, self.log_masses[b])


def check_bounds(cells: Enclosure, slack: float) -> None:
    """Raise EnvelopeError if the cells do not hold all mass once, or a bound is below what it is made of.

    The masses of each side telescope to 1. Cells that overlap or leave a gap, which no acceptance would show, do not
    add up to it. With one cell of a, the mass of every cell of b is known. With more, bounds are compared with the
    chords, and the levels beside the heaviest cell with their sums. The rest is checked when a class is accepted.
    """
    for side in (cells.a, cells.b):
        if not abs(float(np.exp(side.log_mass).sum()) - 1.0) < _MASS_ERROR:
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


_MASS_ERROR = 2.0**-24
"""The largest distance of a sum of masses from 1: up to 3,000 cells are each right to a relative 2^-38."""


def log_slack(k: int, m: int, cells: int, bits: int) -> float:
    """What the chord must be raised by to be above the sum of integer weights that a row of a gets.

    All masses together are at least 1. So a log mass that matters is not far below minus the largest log size, and it,
    log sizes, sums of exponentials and chords are right to a relative 2^-40 of that or to 2^-21; what is lost in
    rounding is a share below 2^-40 of all. Integer weights of so many bits are raised by a relative 2^-20 and one unit
    each.
    """
    return 2.0**-17 + 2.0**-36 * (_largest_log_size(k, m) + 64.0) + math.log1p(cells * 2.0 ** (1 - bits))


@lru_cache(maxsize=256)
def _largest_log_size(k: int, m: int) -> float:
    # By what is public alone: how many cells there are may depend on the scores, and is kept nowhere.
    return float(log_sizes(np.array([k]), np.array([m]))[0])


def log_ratio(low: Ranks, high: Ranks) -> Floats:
    """Log((high + 1) / (low + 1))."""
    return np.log1p((high - low) / (low + 1.0))
