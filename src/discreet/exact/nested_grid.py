"""Where cells and levels around nested classes are: few, and such that their bounds waste little.

They begin where k and m alone say, and are cut while the bounds exceed what they likely bound by much. Floats choose,
and any choice is valid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet.exact.arrays import Floats, Ranks, count_up, freeze, sorted_distinct
from discreet.exact.boxes import choose_wasteful
from discreet.exact.nested import Cells, Enclosure, Levels, Places, Side, Sums, log_sizes, log_sum_exp

# Where cells and levels around nested classes begin before anything is known of their masses: k and m alone decide.
#
# What is planned is kept, and lists of many lengths share most of it.

RISE = 0.6
"""About how much the bound may rise inside a cell that matters."""

ALL = 1024
"""Up to how many a each is a cell of its own at first."""

FEW, SOME, MANY = 128, 512, 1024
"""How many cells of b there are at first: twice as many as it takes up to the first of these, as many up to the second,
and half as many up to the last; where that is not enough, the second, because those that matter are cut anyhow."""

SAG = 0.3
"""About how far a chord may be above log R between planned levels, where R is the size of the largest a."""


@dataclass(frozen=True, eq=False, repr=False)
class Line:
    """What plans for one k and any number of items up to some share.

    Attributes
    ----------
    a
        Where cells of a begin and end.
    b
        Where cells of b begin.
    pieces
        Into how many pieces a cell of b has to be cut where it matters.
    largest
        Levels, with R where all mass is at the largest a.
    sums
        The sums over a at each of them.
    """

    a: tuple[Ranks, Ranks]
    b: Ranks
    pieces: int
    largest: Levels
    sums: Sums


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Where cells and levels begin.

    Attributes
    ----------
    line
        What other plans have too.
    b
        Where cells of b begin and end, and log C(k+b, k) at the end of each.
    at_last
        Where the last of each cell of b is among the levels.
    every_a
        All a as one cell, which has a mass of 1.
    """

    line: Line
    b: tuple[Ranks, Ranks, Floats]
    at_last: Places
    every_a: Cells


@lru_cache(maxsize=256)
def make_plan(k: int, m: int) -> Plan:
    """The plan for 1..k and 0..m."""
    # Lists of many lengths share what is laid out for the next power of two. Where levels are far apart, the last has
    # to be m, where the largest classes are.
    line = lay_out(k, max(1, (1 << m.bit_length()) - 1 if k <= ALL else m))
    first = line.b[: line.b.searchsorted(m, side="right")]
    last = np.append(first[1:] - 1, m)
    every_a = Cells(np.ones(1, np.int64), np.array([k]), np.zeros(1))
    sizes = log_sizes(every_a.last, last)
    places = line.largest.place(last)
    freeze(last, sizes, every_a.first, every_a.last, every_a.log_mass, places.level, places.next, places.way)
    return Plan(line, (first, last, sizes), places, every_a)


@lru_cache(maxsize=64)
def lay_out(k: int, m: int) -> Line:
    """Where cells of a and of b begin, and levels."""
    first = np.arange(1, k + 1) if k <= ALL else _towards_both_ends(k)
    last = np.append(first[1:] - 1, k)
    (b, pieces), levels = _even_rises(k, m), _even_sags(k, m)
    sizes = log_sizes(last, levels[:, None])
    largest = sizes[:, -1].copy()
    found = Levels(levels, largest)
    freeze(first, last, b, levels, largest, found.width)
    return Line((first, last), b, pieces, found, Sums.over(sizes))


def _even_sags(k: int, m: int) -> Ranks:
    """Levels between which chords to log C(k+b, k) are about SAG too high, and no further apart than a factor of e."""
    if k > ALL:
        return _spread(m, int(1.5 * np.log1p(m)) + 2)
    points = _spread(m, 200)
    at = np.log1p(points.astype(np.float64))
    # The slope by log(b+1) is about (b+1) log(1 + k/(b+1/2)); a chord of width w sags by its bend times w^2/8.
    slope = (points + 1.0) * np.log1p(k / (points + 0.5))
    bends = np.maximum(np.diff(slope) / np.diff(at), 0.0)
    steps = np.append(0.0, np.cumsum(np.diff(at) * (np.sqrt(bends / (8.0 * SAG)) + 1.0)))
    chosen = np.interp(np.linspace(0.0, steps[-1], int(steps[-1]) + 2), steps, at)
    return sorted_distinct(np.append(np.expm1(chosen[:-1]).astype(np.int64), m))


def _spread(last: int, count: int) -> Ranks:
    """About so many whole numbers from 0 to the last, evenly spread by their logarithm."""
    points = np.expm1(np.linspace(0.0, np.log1p(float(last)), count)[:-1]).astype(np.int64)
    return sorted_distinct(np.append(points, last))


def _towards_both_ends(k: int) -> Ranks:
    """Some of 1..k, close together at both ends."""
    steps = _spread(k - 1, 100)
    return sorted_distinct(np.concatenate([1 + steps, k - steps]))


def _even_rises(k: int, m: int) -> tuple[Ranks, int]:
    """Where cells of b begin, after equal steps of log C(k+b, k), and into how many pieces they are to be cut."""
    points = _spread(m, 200)
    height = log_sizes(np.array([k]), points)
    wanted = int(np.ceil(height[-1] / RISE))
    half = (wanted + 1) // 2
    count = max(min(2 * wanted, FEW), min(wanted, SOME), half if half <= MANY else 0)
    at = np.interp(np.arange(1, count) * (height[-1] / count), height, points).astype(np.int64)
    return sorted_distinct(np.append(0, 1 + at)), -(-wanted // count) if wanted > 2 * count else 1


WASTE = 0.6
"""By which share of all the bounds may exceed it for each of three reasons: wide cells of a or of b, and far levels."""

PIECES = 32
"""Into how many pieces a cell is cut at most at once."""

MOST = 2048
"""How many there are at most after those that matter are cut for the first time."""

EASY = 3.0
"""Up to which bound on the mass of all classes, where the top-k alone weighs 1, cells need not be cut."""

EVEN = 1.0
"""Down to which log mass of the largest a alone, beside all a together, they may be one cell: bounds with all mass at
the largest a are then at most e times too high."""


def begin(top: Side, bottom: Side) -> Enclosure:
    """Return the planned cells around all classes; their bounds are little above the masses for nearly all scores."""
    plan = make_plan(top.last, bottom.last)
    first, last, bounds = plan.b
    b = Cells.in_a_row(bottom, first, last)
    a, levels = plan.every_a, plan.line.largest
    if not (_are_easy(b.log_mass + bounds) or is_flat(top)):
        a = Cells.in_a_row(top, *plan.line.a)
        levels = Levels(levels.b, plan.line.sums.log_sums(a.log_mass))
        bounds = levels.bound(plan.at_last)
        # Equal scores leave many cells without a mass.
        if 2 * np.count_nonzero(has_mass := a.log_mass > -np.inf) <= len(has_mass):
            a = a[has_mass]
    log_masses = b.log_mass + bounds
    if plan.line.pieces == 1 or _are_easy(log_masses):
        return Enclosure(a, b, levels, log_masses)
    heavy = _find_heavy(log_masses, _heaviest(b, bounds))
    return Enclosure.of(a, _cut_in_a_row(b, *heavy, plan.line.pieces, bottom), levels)


def is_flat(top: Side) -> bool:
    """Whether the largest a has so much of the mass of all a, which are not many, that they need not be told apart."""
    return top.last <= ALL and top.is_last_above(-EVEN)


def _heaviest(b: Cells, bounds: Floats) -> float:
    """About the largest log mass of a cell of b, by what bounds it where the one before it ends.

    The first cell is the top-k alone.
    """
    return max(float(b.log_mass[0]), float((b.log_mass[1:] + bounds[:-1]).max(initial=-np.inf)))


def _find_heavy(log_masses: Floats, heaviest: float) -> tuple[int, int]:
    """From which to before which cell all are that may have a mass to speak of."""
    found = (log_masses > min(heaviest, float(log_masses[log_masses.argmax()])) - _LIGHT).nonzero()[0]
    return int(found[0]), int(found[-1]) + 1


_LIGHT = 8.0
"""By how much the bound on a cell is below what the heaviest one likely has, if it does not matter."""


def _cut_in_a_row(b: Cells, begin: int, end: int, pieces: int, bottom: Side) -> Cells:
    """Planned cells of b, a range of them in so many pieces or fewer, where there would be too many."""
    count = min(pieces, max(2, MOST // (end - begin)))
    first, number = b.first[begin:end, None], np.arange(count)
    width = b.last[begin:end, None] - first + 1
    # Without passing 2^63.
    starts = (first + width // count * number + width % count * number // count).ravel()
    # A cell of fewer indices than pieces begins where the one before it does, and is none.
    starts = np.concatenate([b.first[:begin], starts[:-1][starts[1:] > starts[:-1]], starts[-1:], b.first[end:]])
    return Cells.in_a_row(bottom, starts, np.append(starts[1:] - 1, bottom.last))


def tighten(found: Enclosure, top: Side, bottom: Side, waste: float = WASTE) -> Enclosure:
    """Return an enclosure whose bounds exceed the masses by about three times `waste` of all at most.

    The levels are computed anew, because those of a plan may stand for all mass at the largest a.
    """
    if _are_easy(found.log_masses):
        return found
    found = found.drop_empty()
    found = Enclosure.of(found.a, found.b, Levels.at(found.levels.b, found.a))
    keeps_a = waste == WASTE and is_flat(top)
    for _ in range(_ROUNDS):
        found, is_fine = _refine(found, top, bottom, waste, keeps_a)
        if is_fine:
            break
    return found


def _are_easy(log_masses: Floats) -> bool:
    """Whether all bounds are little above the mass of the top-k alone, which is 1."""
    # One that is above that as a logarithm is above it as it is, and may be beyond all floats.
    if log_masses.item(log_masses.argmax()) > EASY:
        return False
    return float(np.exp(np.maximum(log_masses, -80.0)).sum()) <= EASY


_ROUNDS = 64
"""How often cells are cut at most: each time they are several times smaller."""


def _refine(found: Enclosure, top: Side, bottom: Side, waste: float, keeps_a: bool) -> tuple[Enclosure, bool]:
    """The same, cut where most is wasted, and whether little is by then; cells of a may have to be kept."""
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
        is_fine &= float(parts[wide].max()) <= PIECES
        b = b.cut(bottom, np.where(wide, parts.clip(2, PIECES), 1).astype(np.int64))
    return Enclosure.of(a, b, levels), is_fine


def _pieces_of_a(a: Cells, levels: Levels, in_block: Floats, waste: float) -> Ranks | None:
    """Into how many pieces to cut cells of a, some of which are wide, or None where they waste little."""
    wide = np.flatnonzero(a.last > a.first)
    near = np.flatnonzero(in_block > 2.0**-20 * in_block.sum())
    b = levels.b[near + 1, None]
    sizes = log_sizes(a.last[wide], b)
    row, rises = a.log_mass[wide] + sizes, sizes - log_sizes(a.first[wide], b)
    masses, wasted = np.exp(row - levels.log_r[near + 1, None]), -np.expm1(-np.maximum(rises, 0.0))
    # Beside what cells weigh at least: the bound of a wide one may be far above all others, which count all the same.
    at_least = np.maximum(1.0 - (masses * wasted).sum(axis=1), (masses * (1.0 - wasted)).sum(axis=1)) + 1e-200
    excess = np.zeros(len(a.last))
    excess[wide] = (in_block[near] / (in_block[near].sum() * at_least)) @ (masses * wasted)
    chosen = choose_wasteful(excess, waste)
    if not chosen.any():
        return None
    pieces = np.ones(len(a.last), np.int64)
    pieces[wide] = np.ceil(rises.max(axis=0) / RISE).clip(2, PIECES)
    return np.where(chosen, pieces, 1)


def _add_levels(a: Cells, levels: Levels, pieces: Floats) -> Levels:
    """More levels, so many times as close where they are."""
    whole: Ranks = np.minimum(pieces, np.diff(levels.b)).astype(np.int64)
    number, count = count_up(whole), np.repeat(whole, whole)
    low, width = np.repeat(levels.b[:-1], whole), np.repeat(levels.width, whole)
    between = low + ((low + 1.0) * np.expm1(width * number / count)).astype(np.int64)
    # None is too close to the level before it, or the same would be asked for again.
    between = np.maximum(between, low + number)
    new = sorted_distinct(between)
    new = new[levels.b[levels.b.searchsorted(new)] != new]
    b, log_r = np.append(levels.b, new), np.append(levels.log_r, Levels.at(new, a).log_r)
    order = np.argsort(b)
    return Levels(b[order], log_r[order])


def _add_up(block: Ranks, share: Floats, count: int) -> Floats:
    """The shares in each block."""
    return np.bincount(block, share, count).astype(np.float64)
