"""Where cells and levels around nested classes begin before anything is known of their masses: k and m alone decide.

What is planned is kept, and lists of many lengths share most of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet.exact.arrays import Floats, Ranks, freeze, sorted_distinct
from discreet.exact.nested import Cells, Levels, Places
from discreet.exact.sizes import Sums, log_sizes

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
