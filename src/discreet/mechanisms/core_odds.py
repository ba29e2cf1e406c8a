"""How well the data support a list of fewer items: the odds that it is good, from a public grid of boxes.

A core is the list of the k' best, for some k' <= k, drawn by canonical. A subset in its class (h, t), ranks from 0, has
on average h + [t < k] + (k'-1-h) max(min(t, k) - h - 1, 0) / (t-h-1) members among the true k. The classes are laid in
boxes that grow away from (k'-1, k'), by rank alone. All subsets of a box count with the weight of one class, the one
in its middle, and count as good or not as that class does. So the log odds of good against not good have the privacy
that the weights have (docs/proofs.md, section 4.3), and cost a look at a few hundred scores, however many there are.

Floats bound the odds from below and from above; balls have them as exactly as anybody asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb

from discreet.exact.arrays import Floats, Mask, Ranks
from discreet.exact.ball import (
    LARGEST,
    ball,
    bound_above,
    bound_below,
    log_binomial,
    log_binomial_float,
    precise,
)
from discreet.exact.layout import Layout
from discreet.mechanisms.canonical_classes import Losses
from discreet.tally import Tally

_PART_H, _PART_T = 4, 2
"""What part of its distance from the top-k' a box is long: h decides more than t whether a class is good."""

_ROUNDING = 2.0**-44
"""How far, relative to it, the logarithm of a binomial is off at most."""


@dataclass(frozen=True, eq=False, repr=False)
class Grid:
    """The boxes of one core, which depend on public numbers alone.

    Attributes
    ----------
    size
        How many items the core has.
    corners
        Of each box: h1, h2, t1, t2.
    h, t
        The class in the middle of each box, by which it counts.
    is_good
        Whether that class has enough members among the true k.
    log_count, off
        The logarithm of how many subsets a box has, and what it may be off by.
    """

    size: int
    corners: Ranks
    h: Ranks
    t: Ranks
    is_good: Mask
    log_count: Floats
    off: Floats


def lay_grid(size: int, k: int, d: int, precision: Fraction) -> Grid:
    """The boxes of a core of so many of the k best of d items, which is good where this share is among them."""
    ends = np.array([*_box_starts(size - 1, _PART_H)[1:], size])
    lines = size - ends[::-1], size + np.array(_box_starts(d - 1 - size, _PART_T))
    corners = Layout.between(*lines, size - 1, d - 1).corners
    h1, h2, t1, t2 = corners
    # The middle, without passing 2^63.
    h, t = h1 + (h2 - h1) // 2, t1 + (t2 - t1) // 2
    return Grid(size, corners, h, t, _are_good(size, k, h, t, precision), *_log_counts(size, corners))


@dataclass(frozen=True, eq=False, repr=False)
class Grids:
    """The grids of several cores, and all their boxes one after the other.

    Attributes
    ----------
    parts
        The grid of each core.
    starts, lengths
        Where the boxes of each begin, and how many they are.
    upper, lower
        The pairs of ranks whose gaps are looked up, each once: first those of h, then those of t.
    above, below
        Which of these pairs the h and the t of each box is in.
    is_good, log_count, off
        As of a grid.
    """

    parts: list[Grid]
    starts: Ranks
    lengths: Ranks
    upper: tuple[Ranks, Ranks]
    lower: tuple[Ranks, Ranks]
    above: Ranks
    below: Ranks
    is_good: Mask
    log_count: Floats
    off: Floats

    @classmethod
    def of(cls, parts: list[Grid]) -> Grids:
        """The grids of some cores."""
        lengths = np.array([len(grid.h) for grid in parts])
        edge = np.repeat([grid.size - 1 for grid in parts], lengths)
        (h, of_h, above), (t, of_t, below) = (
            _distinct_pairs(np.concatenate([getattr(grid, name) for grid in parts]), edge) for name in ("h", "t")
        )
        masses = (np.concatenate([getattr(grid, name) for grid in parts]) for name in ("is_good", "log_count", "off"))
        return cls(parts, np.cumsum(lengths) - lengths, lengths, (h, of_t), (of_h, t), above, below, *masses)


@lru_cache(maxsize=256)
def lay_grids(sizes: tuple[int, ...], k: int, d: int, precision: Fraction) -> Grids:
    """The boxes of cores of some sizes; kept, because the lists of many groups have the same."""
    return Grids.of([lay_grid(size, k, d, precision) for size in sizes])


def _distinct_pairs(ranks: Ranks, edges: Ranks) -> tuple[Ranks, Ranks, Ranks]:
    """The different pairs of a rank and an edge, and which of them each one is."""
    order = np.lexsort((edges, ranks))
    rank, edge = ranks[order], edges[order]
    is_new = np.append(True, (rank[1:] != rank[:-1]) | (edge[1:] != edge[:-1]))
    which = np.empty(len(ranks), np.int64)
    which[order] = np.cumsum(is_new) - 1
    return rank[is_new], edge[is_new], which


def _box_starts(last: int, part: int) -> list[int]:
    """How far from the top-k' boxes begin: one that begins at a distance is one rank and a part of that long."""
    starts = [0]
    while (following := starts[-1] + 1 + starts[-1] // part) <= last:
        starts.append(following)
    return starts


def _are_good(size: int, k: int, h: Ranks, t: Ranks, precision: Fraction) -> Mask:
    """Whether this share of a core is among the k best, class by class: by floats, and exactly where it is close."""
    between, right = np.maximum(t - h - 1, 1), np.maximum(np.minimum(t, k) - h - 1, 0)
    spare = h + (t < k) + (size - 1 - h) * (right / between) - float(precision * size)
    is_good = np.asarray(spare >= 0.0)
    for box in np.flatnonzero(np.abs(spare) < 2.0**-30 * size).tolist():
        is_good[box] = expect_held(size, k, int(h[box]), int(t[box])) >= precision * size
    return is_good


def expect_held(size: int, k: int, h: int, t: int) -> Fraction:
    """How many members of a subset of class (h, t) are among the k best, on average."""
    # Ranks below h, rank t, and of those strictly between each with the same chance.
    between, right = t - h - 1, max(min(t, k) - h - 1, 0)
    return h + (t < k) + (Fraction((size - 1 - h) * right, between) if between else Fraction(0))


def count_subsets(size: int, corners: Ranks) -> arb:
    """A ball around how many subsets of so many ranks one box has."""
    h1, h2, t1, t2 = (int(corner) for corner in corners)

    def count_within(h: int, t: int) -> arb:
        """How many hold all ranks below h and none beyond t: C(t-h+1, size-h)."""
        return log_binomial(t - h + 1, size - h).exp()

    upto, before = (count_within(h1, t) - count_within(h2 + 1, t) for t in (t2, t1 - 1))
    return upto - before


def _log_counts(size: int, corners: Ranks) -> tuple[Floats, Floats]:
    """The logarithms of how many subsets boxes have, and what they may be off by."""
    h1, h2, t1, t2 = corners
    upto = _subtract(*_log_count_within(size, h1, t2), *_log_count_within(size, h2 + 1, t2))
    before = _subtract(*_log_count_within(size, h1, t1 - 1), *_log_count_within(size, h2 + 1, t1 - 1))
    value, off = _subtract(*upto, *before)
    for box in np.flatnonzero(np.isinf(off)).tolist():
        with precise(int(t2[box])):
            value[box] = float(count_subsets(size, corners[:, box]).log())
        off[box] = _ROUNDING * (value[box] + 64.0)
    return value, off


def _log_count_within(size: int, h: Ranks, t: Ranks) -> tuple[Floats, Floats]:
    value = log_binomial_float(size - h, t - size + 1)
    return value, _ROUNDING * (value + 64.0)


def _subtract(log_a: Floats, off_a: Floats, log_b: Floats, off_b: Floats) -> tuple[Floats, Floats]:
    """The logarithm of a - b, of logarithms, and what it may be off by; infinitely where that might be too much."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = -np.expm1(np.where(log_b == -np.inf, -np.inf, log_b - log_a))
        value = np.where(share > 0.0, log_a + np.log(share), -np.inf)
        # d log(a - b) = (a d log a - b d log b) / (a - b)
        off = 2.0 * (off_a + np.where(log_b == -np.inf, 0.0, off_b)) / share
        # Nothing less nothing is nothing, and that is certain where both are the one subset.
        none = (share <= 0.0) & (log_a == 0.0)
    return value, np.where(none, 0.0, np.where(off < 2.0**-10, off, np.inf))


@dataclass(frozen=True, eq=False, repr=False)
class Odds:
    """The log odds of cores on a tally; `s` and `gamma` are what canonical weighs a loss by."""

    grids: Grids
    tally: Tally
    s: Fraction
    gamma: Fraction

    def bounds(self) -> tuple[Floats, Floats]:
        """Return floats below and above the log odds of each core."""
        low, high = self._log_masses()
        is_good, lines = self.grids.is_good, (self.grids.starts, self.grids.lengths)
        # The top of a core weighs 1, is good, and is in no box.
        good_low, good_high = (np.logaddexp(0.0, _log_sums(mass, is_good, *lines)) for mass in (low, high))
        bad_low, bad_high = (_log_sums(mass, ~is_good, *lines) for mass in (low, high))
        return widen(bound_below, good_low - bad_high), widen(bound_above, good_high - bad_low)

    def exactly(self, core: int) -> arb:
        """A ball around the log odds of a core; infinite where every box is good."""
        return weigh_grid(self.grids.parts[core], self.tally, self.s, self.gamma)

    def _log_masses(self) -> tuple[Floats, Floats]:
        """Return bounds on the log mass of each box."""
        grids = self.grids
        (h, edge_t), (edge_h, t) = grids.upper, grids.lower
        above = self.tally.gaps(h, edge_h, self.s * (1 - self.gamma))[grids.above]
        below = self.tally.gaps(edge_t, t, self.s * self.gamma)[grids.below]
        with np.errstate(over="ignore"):
            loss = np.minimum(above + below, LARGEST)
            value, room = grids.log_count - loss, grids.off + 2.0**-40 * (loss + 1.0)
            low, high = value - room, value + room
        # The largest float stands for all beyond.
        low[loss == LARGEST] = -np.inf
        return low, high


def weigh_grid(grid: Grid, tally: Tally, s: Fraction, gamma: Fraction) -> arb:
    """A ball around the log odds of a core: the mass of its good boxes and of the top, against that of the others."""
    losses = Losses(tally, grid.size, s, gamma)
    good, bad = arb(1), arb(0)
    for box, (h, t) in enumerate(zip(grid.h.tolist(), grid.t.tolist(), strict=True)):
        mass = count_subsets(grid.size, grid.corners[:, box]) * (-ball(losses.excess(h, t))).exp()
        good, bad = (good + mass, bad) if grid.is_good[box] else (good, bad + mass)
    return arb("inf") if grid.is_good.all() else good.log() - bad.log()


def _log_sums(logs: Floats, chosen: Mask, starts: Ranks, lengths: Ranks) -> Floats:
    """The logarithm of the sum of the chosen ones of each stretch."""
    kept = np.where(chosen, logs, -np.inf)
    largest = np.maximum.reduceat(kept, starts)
    level = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore", under="ignore"):
        return np.asarray(level + np.log(np.add.reduceat(np.exp(kept - np.repeat(level, lengths)), starts)))


def widen(bound: Callable[[Floats], Floats], values: Floats) -> Floats:
    """A bound on values, of which those that are infinite stay so."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(values), bound(values), values)
