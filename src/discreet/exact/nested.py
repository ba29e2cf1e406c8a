"""Upper bounds on the mass of nested classes (a, b), u(a) v(b) C(a+b, a) for 1 <= a <= k and 0 <= b <= m.

The indices a and b are grouped in cells. With U the mass of a cell of a and a' its last index, R(b) = sum of
U C(a'+b, a') over all cells is at least the sum of u(a) C(a+b, a) over all a. It is a polynomial in b + 1 with
non-negative coefficients, so log R is convex in log(b + 1), and a chord between two levels of b is an upper bound in
between. A cell of b has at most its own mass times that bound at its last index (docs/proofs.md, section 9.3).

`begin` takes cells and levels from a plan that depends on k and m alone, and `tighten` refines them while the bounds
exceed the likely masses by too much. Floats choose the cells, and every choice is valid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from discreet.exact.arrays import Floats, Mask, Ranks, count_up, freeze, sorted_distinct
from discreet.exact.ball import LARGEST, EnvelopeError, log_binomial_float, log_factorial_float
from discreet.exact.boxes import choose_wasteful

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

RISE = 0.6
"""The target rise of the log bound, in nats, within a cell that matters."""

SAG = 0.3
"""The target distance, in nats, of a planned chord above log C(k+b, k)."""

MAX_SINGLE_CELLS = 1024
"""Up to this many a each is a cell of its own at first."""

FEW, SOME, MANY = 128, 512, 1024
"""Numbers of planned cells of b: twice as many as needed up to FEW, as many up to SOME, half as many up to MANY, and
SOME where that does not suffice, because the heavy ones are cut later."""

WASTE = 0.6
"""The share of the total mass by which bounds may exceed it for each of three reasons: wide cells of a, wide cells of
b, and distant levels."""

MAX_EASY_MASS = 3.0
"""Cells need no refinement if their bounds add up to at most this; the top-k alone has the mass 1."""

FLAT_LOG_SHARE = 1.0
"""All a form one cell if the largest has more than exp(-FLAT_LOG_SHARE) of their mass: bounds that put all mass there
are then at most e times too high."""

MAX_PIECES = 32
"""The most pieces that a cell is cut into at a time."""

TARGET_CELLS = 2048
"""The target number of cells of b after the first cut of the heavy ones."""

_LIGHT = 8.0
"""Cells whose bound is more than this many nats below the heaviest cell are not cut at first."""

_MAX_REFINEMENTS = 64
"""The most rounds of refinement; each makes cells several times smaller."""


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


def check_bounds(cells: Enclosure, k: int, m: int, bits: int) -> float:
    """Return the slack of the bounds on 1 <= a <= k and 0 <= b <= m, for integer weights of `bits` bits.

    Raise EnvelopeError if the cells do not hold all mass once, or if a bound is below the value that it bounds.

    The masses of each side telescope to 1, which cells that overlap or leave a gap would not add up to; no acceptance
    probability would show that. With one cell of a, the mass of every cell of b is known. With more, bounds are
    compared with the chords, and the two levels around the heaviest cell with their sums. All other bounds are checked
    when a class is accepted.
    """
    slack = log_slack(k, m, len(cells.a.first), bits)
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
    return slack


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


@dataclass(frozen=True, eq=False, repr=False)
class Line:
    """The part of a plan that all m up to some power of two share, for one k.

    Attributes
    ----------
    a
        The first and last indices of the cells of a.
    b
        The first indices of the cells of b.
    pieces
        The number of pieces that a heavy cell of b is cut into.
    largest
        The levels, with R for all mass at the largest a.
    sums
        The sums over a at each level.
    """

    a: tuple[Ranks, Ranks]
    b: Ranks
    pieces: int
    largest: Levels
    sums: Sums


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """The planned cells and levels for one k and m.

    Attributes
    ----------
    line
        The part shared with other m.
    b
        The first and last indices of the cells of b, and log C(k+b, k) at the last index of each.
    at_last
        The positions of these last indices among the levels.
    every_a
        All a as one cell, of mass 1.
    """

    line: Line
    b: tuple[Ranks, Ranks, Floats]
    at_last: Places
    every_a: Cells


def begin(top: Side, bottom: Side) -> Enclosure:
    """Return the planned cells around all classes; their bounds are close to the masses for nearly all scores."""
    plan = make_plan(top.last, bottom.last)
    first, last, bounds = plan.b
    b = Cells.in_a_row(bottom, first, last)
    a, levels = plan.every_a, plan.line.largest
    if not (_are_easy(b.log_mass + bounds) or is_flat(top)):
        a = Cells.in_a_row(top, *plan.line.a)
        levels = Levels(levels.b, plan.line.sums.log_sums(a.log_mass))
        bounds = levels.bound(plan.at_last)
        # Equal scores leave many cells without mass.
        if 2 * np.count_nonzero(has_mass := a.log_mass > -np.inf) <= len(has_mass):
            a = a[has_mass]
    log_masses = b.log_mass + bounds
    if plan.line.pieces == 1 or _are_easy(log_masses):
        return Enclosure(a, b, levels, log_masses)
    heavy = _find_heavy(log_masses, _heaviest(b, bounds))
    return Enclosure.of(a, _cut_in_a_row(b, *heavy, plan.line.pieces, bottom), levels)


def _find_heavy(log_masses: Floats, heaviest: float) -> tuple[int, int]:
    """Return the half-open range of cells whose upper bound is within `_LIGHT` nats of the heaviest cell."""
    found = (log_masses > min(heaviest, float(log_masses[log_masses.argmax()])) - _LIGHT).nonzero()[0]
    return int(found[0]), int(found[-1]) + 1


def _heaviest(b: Cells, bounds: Floats) -> float:
    """Return an estimate of the largest log mass of a cell of b, by the bound at the end of the cell before it.

    The first cell is the top-k alone.
    """
    return max(float(b.log_mass[0]), float((b.log_mass[1:] + bounds[:-1]).max(initial=-np.inf)))


def _cut_in_a_row(b: Cells, begin: int, end: int, pieces: int, bottom: Side) -> Cells:
    """Return the cells of b with those in a range cut into `pieces`, or fewer to keep about TARGET_CELLS cells."""
    count = min(pieces, max(2, TARGET_CELLS // (end - begin)))
    first, number = b.first[begin:end, None], np.arange(count)
    width = b.last[begin:end, None] - first + 1
    # first + width i / count, without overflow beyond 2^63.
    starts = (first + width // count * number + width % count * number // count).ravel()
    # A cell of fewer indices than pieces gives empty pieces, which begin where the next one does.
    starts = np.concatenate([b.first[:begin], starts[:-1][starts[1:] > starts[:-1]], starts[-1:], b.first[end:]])
    return Cells.in_a_row(bottom, starts, np.append(starts[1:] - 1, bottom.last))


def tighten(found: Enclosure, top: Side, bottom: Side, waste: float = WASTE) -> Enclosure:
    """Return an enclosure whose bounds exceed the masses by at most about three times `waste` of the total.

    R is computed anew, because planned levels may assume all mass at the largest a.
    """
    if _are_easy(found.log_masses):
        return found
    found = found.drop_empty()
    found = Enclosure.of(found.a, found.b, Levels.at(found.levels.b, found.a))
    keeps_a = waste == WASTE and is_flat(top)
    for _ in range(_MAX_REFINEMENTS):
        found, is_fine = _refine(found, top, bottom, waste, keeps_a)
        if is_fine:
            break
    return found


def _refine(found: Enclosure, top: Side, bottom: Side, waste: float, keeps_a: bool) -> tuple[Enclosure, bool]:
    """Return the enclosure refined where it wastes most, and True if it is then tight; `keeps_a` leaves cells of a."""
    a, b, levels = found.a, found.b, found.levels
    upper, at_last = found.log_masses, levels.place(b.last)
    level, way = at_last.level, at_last.way
    rise = upper - (b.log_mass + levels.bound(levels.place(b.first)))
    sag = 4.0 * way * (1.0 - way) * levels.sags[level]
    total = max(0.0, float(log_sum_exp((upper - rise - sag)[None])[0]))
    share = np.exp(np.minimum(upper - total, 600.0))
    is_narrow = keeps_a or bool((a.last == a.first).all())
    if is_narrow and float(share.sum()) <= 1.0 + 2.0 * waste:
        return found, True
    wide = choose_wasteful(share * -np.expm1(-rise), waste)
    far = _add_up(level, share * -np.expm1(-sag), len(levels.sags))
    far = np.where(choose_wasteful(far, waste), np.ceil(np.sqrt(levels.sags / 0.15)).clip(2, 8), 1.0)
    pieces = None if is_narrow else _pieces_of_a(a, levels, _add_up(level, share, len(levels.sags)), waste)
    is_fine = pieces is None
    if pieces is not None:
        a = a.cut(top, pieces)
        levels = Levels.at(levels.b, a)
    if (far > 1.0).any():
        levels, is_fine = _add_levels(a, levels, far), False
    if wide.any():
        parts = np.ceil(rise / RISE)
        is_fine &= float(parts[wide].max()) <= MAX_PIECES
        b = b.cut(bottom, np.where(wide, parts.clip(2, MAX_PIECES), 1).astype(np.int64))
    return Enclosure.of(a, b, levels), is_fine


def _pieces_of_a(a: Cells, levels: Levels, in_block: Floats, waste: float) -> Ranks | None:
    """Return the number of pieces to cut each cell of a into, or None if the wide ones waste little."""
    wide = np.flatnonzero(a.last > a.first)
    near = np.flatnonzero(in_block > 2.0**-20 * in_block.sum())
    b = levels.b[near + 1, None]
    sizes = log_sizes(a.last[wide], b)
    row, rises = a.log_mass[wide] + sizes, sizes - log_sizes(a.first[wide], b)
    masses, wasted = np.exp(row - levels.log_r[near + 1, None]), -np.expm1(-np.maximum(rises, 0.0))
    # Relative to a lower bound on the mass: the bound of one wide cell may be far above all others, which count too.
    at_least = np.maximum(1.0 - (masses * wasted).sum(axis=1), (masses * (1.0 - wasted)).sum(axis=1)) + 1e-200
    excess = np.zeros(len(a.last))
    excess[wide] = (in_block[near] / (in_block[near].sum() * at_least)) @ (masses * wasted)
    chosen = choose_wasteful(excess, waste)
    if not chosen.any():
        return None
    pieces = np.ones(len(a.last), np.int64)
    pieces[wide] = np.ceil(rises.max(axis=0) / RISE).clip(2, MAX_PIECES)
    return np.where(chosen, pieces, 1)


def _add_levels(a: Cells, levels: Levels, pieces: Floats) -> Levels:
    """Return the levels with each interval between them divided into `pieces`."""
    whole: Ranks = np.minimum(pieces, np.diff(levels.b)).astype(np.int64)
    number, count = count_up(whole), np.repeat(whole, whole)
    low, width = np.repeat(levels.b[:-1], whole), np.repeat(levels.width, whole)
    between = low + ((low + 1.0) * np.expm1(width * number / count)).astype(np.int64)
    # A new level differs from the one before it, so that every round makes progress.
    between = np.maximum(between, low + number)
    new = sorted_distinct(between)
    new = new[levels.b[levels.b.searchsorted(new)] != new]
    b, log_r = np.append(levels.b, new), np.append(levels.log_r, Levels.at(new, a).log_r)
    order = np.argsort(b)
    return Levels(b[order], log_r[order])


def _add_up(block: Ranks, share: Floats, count: int) -> Floats:
    """Return the sum of the shares in each block."""
    return np.bincount(block, share, count).astype(np.float64)


def is_flat(top: Side) -> bool:
    """Return True if there are few a and the largest has so much of their mass that all may form one cell."""
    return top.last <= MAX_SINGLE_CELLS and top.is_last_above(-FLAT_LOG_SHARE)


def _are_easy(log_masses: Floats) -> bool:
    """Return True if the bounds add up to at most MAX_EASY_MASS; the top-k alone has the mass 1."""
    # A log mass above MAX_EASY_MASS is enough to decide, and its exponential may overflow.
    if log_masses.item(log_masses.argmax()) > MAX_EASY_MASS:
        return False
    return float(np.exp(np.maximum(log_masses, -80.0)).sum()) <= MAX_EASY_MASS


@lru_cache(maxsize=256)
def make_plan(k: int, m: int) -> Plan:
    """Return the plan for 1 <= a <= k and 0 <= b <= m."""
    # Many m share the line for the next power of two. Where levels are far apart, the last one has to be m, because the
    # largest classes are there.
    line = lay_out(k, max(1, (1 << m.bit_length()) - 1 if k <= MAX_SINGLE_CELLS else m))
    first = line.b[: line.b.searchsorted(m, side="right")]
    last = np.append(first[1:] - 1, m)
    every_a = Cells(np.ones(1, np.int64), np.array([k]), np.zeros(1))
    sizes = log_sizes(every_a.last, last)
    places = line.largest.place(last)
    freeze(last, sizes, every_a.first, every_a.last, every_a.log_mass, places.level, places.next, places.way)
    return Plan(line, (first, last, sizes), places, every_a)


@lru_cache(maxsize=64)
def lay_out(k: int, m: int) -> Line:
    """Return the cells of a, the cells of b and the levels for 1 <= a <= k and 0 <= b <= m."""
    first = np.arange(1, k + 1) if k <= MAX_SINGLE_CELLS else _towards_both_ends(k)
    last = np.append(first[1:] - 1, k)
    starts, pieces = _even_rises(k, m)
    b, levels = sorted_distinct(starts), sorted_distinct(_even_sags(k, m))
    sizes = log_sizes(last, levels[:, None])
    largest = sizes[:, -1].copy()
    found, sums = Levels(levels, largest), Sums.over(sizes)
    freeze(first, last, b, levels, largest, found.width, sums.heights, sums.factors)
    return Line((first, last), b, pieces, found, sums)


def _even_rises(k: int, m: int) -> tuple[Ranks, int]:
    """Return first indices of cells of b at equal steps of log C(k+b, k), and the pieces to cut each cell into.

    Small cells may share a first index.
    """
    points = _spread(m, 200)
    height = log_sizes(np.array([k]), points)
    wanted = int(np.ceil(height[-1] / RISE))
    half = (wanted + 1) // 2
    count = max(min(2 * wanted, FEW), min(wanted, SOME), half if half <= MANY else 0)
    at = np.interp(np.arange(1, count) * (height[-1] / count), height, points).astype(np.int64)
    return np.append(0, 1 + at), -(-wanted // count) if wanted > 2 * count else 1


def _even_sags(k: int, m: int) -> Ranks:
    """Return levels at most a factor of e apart, between which chords exceed log C(k+b, k) by about SAG.

    Small levels may repeat.
    """
    if k > MAX_SINGLE_CELLS:
        return _spread(m, int(1.5 * np.log1p(m)) + 2)
    points = _spread(m, 200)
    at = np.log1p(points.astype(np.float64))
    # The slope in log(b+1) is about (b+1) log(1 + k/(b+1/2)); a chord of width w sags by (second derivative) w^2 / 8.
    slope = (points + 1.0) * np.log1p(k / (points + 0.5))
    bends = np.maximum(np.diff(slope) / np.diff(at), 0.0)
    steps = np.append(0.0, np.cumsum(np.diff(at) * (np.sqrt(bends / (8.0 * SAG)) + 1.0)))
    chosen = np.interp(np.linspace(0.0, steps[-1], int(steps[-1]) + 2), steps, at)
    levels: Ranks = np.append(np.expm1(chosen[:-1]).astype(np.int64), m)
    return levels


def _towards_both_ends(k: int) -> Ranks:
    """Return some of 1..k, close together at both ends."""
    steps = _spread(k - 1, 100)
    return sorted_distinct(np.concatenate([1 + steps, k - steps]))


def _spread(last: int, count: int) -> Ranks:
    """Return about `count` whole numbers from 0 to `last`, evenly spaced in log(b + 1)."""
    points = np.expm1(np.linspace(0.0, np.log1p(float(last)), count)[:-1]).astype(np.int64)
    return sorted_distinct(np.append(points, last))


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
    logs.setflags(write=False)
    return logs
