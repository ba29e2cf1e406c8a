"""Where cells and levels around nested classes are: few, and such that their bounds waste little.

They begin where k and m alone say, and are cut while the bounds exceed what they likely bound by much. Floats choose,
and any choice is valid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet.exact.arrays import Floats, Ranks, sorted_distinct
from discreet.exact.ball import log_binomial_upper
from discreet.exact.boxes import choose_wasteful
from discreet.exact.nested import Cells, Enclosure, Levels, Places, Side, count_up, log_sum_exp

WASTE = 0.6
"""By which share of all the bounds may exceed it for each of three reasons: wide cells of a or of b, and far levels."""

RISE = 0.6
"""About how much the bound may rise inside a cell that matters."""

PIECES = 32
"""Into how many pieces a cell is cut at most at once."""

ALL = 1024
"""Up to how many a each is a cell of its own at first."""

MANY = 1000
"""How many cells of b there are at first, at most."""

EASY = 3.0
"""Up to which bound on the mass of all classes, where the top-k alone weighs 1, cells need not be cut."""


def begin(top: Side, bottom: Side) -> Enclosure:
    """Planned cells around all classes, whose bounds are little above them for nearly all masses.

    Those of many sides at once are all alike.
    """
    plan = _plan(top.last, bottom.last)
    found = _begin_below(plan, bottom)
    if _are_easy(found.log_masses):
        return found
    a, sizes = Cells.in_a_row(top, plan.a, plan.a_last), plan.sizes
    # One side has few masses where scores are equal; many sides have them at different places.
    if a.log_mass.ndim == 1 and not (has_mass := a.log_mass > -np.inf).all():
        a, sizes = a[has_mass], sizes[:, has_mass]
    levels = Levels(plan.levels, a.log_mass[..., None, :] + sizes)
    return Enclosure.at(a, found.b, levels, found.at_first, found.at_last)


def _begin_below(plan: _Plan, bottom: Side) -> Enclosure:
    """The planned cells of b, with all a in one cell; what is not known of the bottom is one cell too."""
    if bottom.known_last < 1:
        bottom.sort_all()
    known = bottom.known_last
    if known == bottom.last:
        b = Cells.in_a_row(bottom, plan.b, plan.b_last)
        return Enclosure.at(plan.every_a, b, plan.largest, plan.at_first, plan.at_last)
    first = np.append(plan.b[plan.b < known], known)
    return Enclosure.of(
        plan.every_a, Cells.in_a_row(bottom, first, np.append(first[1:] - 1, bottom.last)), plan.largest
    )


def tighten(found: Enclosure, top: Side, bottom: Side) -> Enclosure:
    """The same with bounds that are little above the classes, whatever their masses."""
    if _are_easy(found.log_masses):
        return found
    found = found.drop_empty()
    for _ in range(_ROUNDS):
        found, is_fine = _refine(found, top, bottom)
        if is_fine:
            break
    return found


def _are_easy(log_masses: Floats) -> bool:
    """Whether all bounds are little above the mass of the top-k alone, which is 1."""
    masses = np.exp(np.minimum(np.maximum(log_masses, -80.0), 600.0))
    return bool((masses.sum(axis=-1) <= EASY).all())


_ROUNDS = 64
"""How often cells are cut at most: each time they are several times smaller."""


def _refine(found: Enclosure, top: Side, bottom: Side) -> tuple[Enclosure, bool]:
    """The same, cut where most is wasted, and whether little is by then."""
    a, b, levels = found.a, found.b, found.levels
    upper, level, way = found.log_masses, found.at_last.level, found.at_last.way
    rise = upper - (b.log_mass + levels.bound(found.at_first))
    sag = 4.0 * way * (1.0 - way) * levels.sags[level]
    total = max(0.0, float(log_sum_exp((upper - rise - sag)[None])[0]))
    share = np.exp(np.minimum(upper - total, 600.0))
    if (hidden := _find_hidden(b, bottom)) is not None:
        if share[hidden] <= _NEGLIGIBLE:
            share[hidden] = 0.0
        else:
            bottom.sort_all()
    is_narrow = bool((a.last == a.first).all())
    if is_narrow and float(share.sum()) <= 1.0 + 2.0 * WASTE:
        return found, True
    wide = choose_wasteful(share * -np.expm1(-rise), WASTE)
    far = _add_up(level, share * -np.expm1(-sag), len(levels.sags))
    far = np.where(choose_wasteful(far, WASTE), np.ceil(np.sqrt(levels.sags / 0.15)).clip(2, 8), 1.0)
    pieces = None if is_narrow else _pieces_of_a(a, levels, _add_up(level, share, len(levels.sags)))
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


def _find_hidden(b: Cells, bottom: Side) -> int | None:
    """Which cell goes on beyond the last index that is known, if one does."""
    if bottom.known_last == bottom.last:
        return None
    beyond = np.flatnonzero(b.last > bottom.known_last)
    return int(beyond[0]) if len(beyond) else None


_NEGLIGIBLE = 1e-4
"""What is beyond the known scores may stay in one cell where it has at most this share of all."""


def _pieces_of_a(a: Cells, levels: Levels, in_block: Floats) -> Ranks | None:
    """Into how many pieces to cut cells of a, some of which are wide, or None where they waste little."""
    wide = np.flatnonzero(a.last > a.first)
    near = np.flatnonzero(in_block > 2.0**-20 * in_block.sum())
    row = levels.rows[near + 1][:, wide]
    rises = row - Levels.at(levels.b[near + 1], Cells(a.first[wide], a.first[wide], a.log_mass[wide])).rows
    masses, wasted = np.exp(row - levels.log_r[near + 1, None]), -np.expm1(-np.maximum(rises, 0.0))
    # Beside what cells weigh at least: the bound of a wide one may be far above all others, which count all the same.
    at_least = np.maximum(1.0 - (masses * wasted).sum(axis=1), (masses * (1.0 - wasted)).sum(axis=1)) + 1e-200
    excess = np.zeros(len(a.last))
    excess[wide] = (in_block[near] / (in_block[near].sum() * at_least)) @ (masses * wasted)
    chosen = choose_wasteful(excess, WASTE)
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
    b, rows = np.append(levels.b, new), np.concatenate([levels.rows, Levels.at(new, a).rows])
    order = np.argsort(b)
    return Levels(b[order], rows[order])


@dataclass(frozen=True, eq=False, repr=False)
class _Plan:
    """Where cells and levels begin before anything is known of the masses: it depends on k and m alone, and is kept.

    Attributes
    ----------
    a, a_last, b, b_last
        Where cells begin and end.
    levels, sizes
        Levels, and log C(a+b, a) at each of them and the last of each cell of a, raised to be above.
    every_a, largest
        All a as one cell, which has a mass of 1, and the levels for it.
    at_first, at_last
        Where the first and the last of each cell of b are among the levels.
    """

    a: Ranks
    a_last: Ranks
    b: Ranks
    b_last: Ranks
    levels: Ranks
    sizes: Floats
    every_a: Cells
    largest: Levels
    at_first: Places
    at_last: Places


@lru_cache(maxsize=256)
def _plan(k: int, m: int) -> _Plan:
    # Lists of many lengths share what is laid out for the next power of two.
    a, starts, line = _lay_out(k, (1 << m.bit_length()) - 1)
    b, inner = starts[: starts.searchsorted(m, side="right")], int(line.b.searchsorted(m))
    a_last, b_last = np.append(a[1:] - 1, k), np.append(b[1:] - 1, m)
    end = Levels.at(np.array([m]), Cells(a, a_last, np.zeros(len(a))))
    levels = Levels(np.append(line.b[:inner], m), np.concatenate([line.rows[:inner], end.rows]))
    every_a = Cells(np.ones(1, np.int64), np.array([k]), np.zeros(1))
    for shared in (a_last, b_last, levels.b, levels.rows, every_a.log_mass):
        shared.setflags(write=False)
    largest = Levels(levels.b, levels.rows[:, -1:])
    places = levels.place(b), levels.place(b_last)
    return _Plan(a, a_last, b, b_last, levels.b, levels.rows, every_a, largest, *places)


@lru_cache(maxsize=64)
def _lay_out(k: int, m: int) -> tuple[Ranks, Ranks, Levels]:
    """Where cells of a and of b begin, and levels."""
    a = np.arange(1, k + 1) if k <= ALL else _towards_both_ends(k)
    rows = Cells(a, np.append(a[1:] - 1, k), np.zeros(len(a)))
    b, line = _even_rises(k, m), Levels.at(_spread(m, int(1.5 * np.log1p(m)) + 2), rows)
    for shared in (a, b, line.b, line.rows):
        shared.setflags(write=False)
    return a, b, line


def _spread(last: int, count: int) -> Ranks:
    """About so many whole numbers from 0 to the last, evenly spread by their logarithm."""
    points = np.expm1(np.linspace(0.0, np.log1p(float(last)), count)[:-1]).astype(np.int64)
    return sorted_distinct(np.append(points, last))


def _towards_both_ends(k: int) -> Ranks:
    """Some of 1..k, close together at both ends."""
    steps = 1 + _spread(k - 1, 100)
    return sorted_distinct(np.concatenate([steps, k + 1 - steps]))


def _even_rises(k: int, m: int) -> Ranks:
    """Where cells of b begin: after equal steps of log C(k+b, k)."""
    points = _spread(m, 200)
    height = log_binomial_upper(np.array([k]), points)
    count = int(min(MANY, np.ceil(height[-1] / RISE)))
    at = np.interp(np.arange(1, count) * (height[-1] / count), height, points).astype(np.int64)
    return sorted_distinct(np.append(0, 1 + at))


def _add_up(block: Ranks, share: Floats, count: int) -> Floats:
    """The shares in each block."""
    return np.bincount(block, share, count).astype(np.float64)
