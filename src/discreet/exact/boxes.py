"""Cuts a grid of cells into few boxes whose corners bound the mass inside.

A cell (h, t) has mass exp(gain(h, t) + size(h, t)). The gain grows with h and falls with t, the size falls with h and
grows with t, so a box [h1, h2] x [t1, t2] has gain at most gain(h2, t1) and size at most size(h1, t2) in every cell.
The gain is a function of two heights, one of h and one of t, so that each is looked up once a side, not once a corner.
Boxes are cut in pieces while the sum of their upper bounds exceeds that of their lower bounds by more than a share.
Floats choose the boxes; any choice is valid, and only the bounds that `Boxes` holds at the end must be sound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from discreet.exact.arrays import Floats, Mask, Ranks, sorted_distinct
from discreet.exact.ball import bound_above
from discreet.exact.entropy import Entropy

# Where boxes around a grid begin, before anything is known of what is in it.
#
# That depends on the extent of the grid alone, so that it is kept: the lists of many groups have one extent.

Sizes = Callable[[Ranks, Ranks], Floats]
"""The size of some cells; two that are equal give the same."""


@dataclass(frozen=True, eq=False, repr=False)
class Layout:
    """Boxes that begin at every line across h and every line across t.

    Attributes
    ----------
    lines
        The lines across h and those across t.
    ends_h, ends_t
        The first and the last h, or t, between two lines each.
    row, column
        Between which lines each box is.
    corners
        Of each box: h1, h2, t1, t2.
    h, t
        The four corners of all boxes: those of the most gain, of the least, and the two others.
    """

    lines: tuple[Ranks, Ranks]
    ends_h: Ranks
    ends_t: Ranks
    row: Ranks
    column: Ranks
    corners: Ranks
    h: Ranks
    t: Ranks

    @classmethod
    def between(cls, lines_h: Ranks, lines_t: Ranks, h2: int, t2: int) -> Layout:
        """Boxes up to h2 and t2."""
        ends_h = np.array([lines_h, np.append(lines_h[1:] - 1, h2)])
        ends_t = np.array([lines_t, np.append(lines_t[1:] - 1, t2)])
        row, column = all_pairs(len(lines_h), len(lines_t))
        corners = np.concatenate([ends_h[:, row], ends_t[:, column]])
        return cls((lines_h, lines_t), ends_h, ends_t, row, column, corners, *box_corners(corners))


def lay_out(h1: int, h2: int, t1: int, t2: int) -> Layout:
    """Boxes around a whole grid. Mass often is at the largest h and the smallest t: from there the lines double."""
    lines = h2 + 1 - doubling_steps(h2 - h1)[:0:-1], t1 + doubling_steps(t2 - t1)[:-1]
    return Layout.between(*lines, h2, t2)


@lru_cache(maxsize=256)
def lay_out_once(sizes: Sizes, h1: int, h2: int, t1: int, t2: int) -> tuple[Layout, Floats]:
    """The same for an extent that is public, with the sizes at all corners; kept for the next grid like it."""
    layout = lay_out(h1, h2, t1, t2)
    kept = sizes(layout.h, layout.t)
    for shared in (kept, layout.corners):
        shared.flags.writeable = False
    return layout, kept


def box_corners(corners: Ranks) -> tuple[Ranks, Ranks]:
    """The h and the t of the four corners of all boxes: of the most gain, of the least, and the two others."""
    h1, h2, t1, t2 = corners
    return np.concatenate([h2, h1, h2, h1]), np.concatenate([t1, t2, t2, t1])


def all_pairs(rows: int, columns: int) -> tuple[Ranks, Ranks]:
    """The row and the column of every cell of a table."""
    return np.repeat(np.arange(rows), columns), np.tile(np.arange(columns), rows)


def doubling_steps(last: int) -> Ranks:
    """0, 1, 3, 7, ... up to last + 1, where the steps end."""
    steps = [2**i - 1 for i in range((last + 1).bit_length()) if 2**i - 1 <= last]
    return np.array([*steps, last + 1], np.int64)


# A grid of cells with masses, seen in floats, and where its heaviest cells are: there boxes have to be small.


class Landscape(Protocol):
    """The float side of a grid of cells: monotone as `boxes.py` says, right to a relative (or absolute) 2^-41."""

    @property
    def corners(self) -> tuple[int, int, int, int]:
        """The whole grid: smallest and largest h, smallest and largest t."""

    def heights(self, h: Ranks, t: Ranks) -> tuple[Floats, Floats]:
        """The heights of some h and of some t, at once because a look-up may cost as much for one as for many."""

    def gain(self, height_h: Floats, height_t: Floats, h: Ranks, t: Ranks) -> Floats: ...

    @property
    def size(self) -> Sizes:
        """The size of some cells, which depends on the extent of the grid alone."""


def add_lines_towards_peak(landscape: Landscape, h: Ranks, t: Ranks, t2: int) -> tuple[Ranks, Ranks]:
    """More lines across h and across t, around the heaviest cell found, until its neighbours are about as heavy."""
    lines_h, lines_t = [h], [t]
    t = np.append(t, t2)
    for _ in range(_ROUNDS):
        mass = _masses(landscape, h, t)
        i, j = divmod(int(mass.argmax()), len(t))
        mass = mass.reshape(len(h), len(t))
        steep_h, steep_t = _is_steep(mass[:, j], h, i), _is_steep(mass[i], t, j)
        if not (steep_h or steep_t):
            break
        h = _lines_around(h, i) if steep_h else h[i : i + 1]
        t = _lines_around(t, j) if steep_t else t[j : j + 1]
        lines_h.append(h)
        lines_t.append(t)
    return sorted_distinct(np.concatenate(lines_h)), sorted_distinct(np.concatenate(lines_t))


_ROUNDS = 20
"""How often lines are added at most: each time they are several times closer."""

_STEEP = 1.0
"""How much the log mass must fall between two lines for others to be put between them."""

_LINES = 6
"""Into how many parts the surroundings of a peak are cut at once."""


def _masses(landscape: Landscape, h: Ranks, t: Ranks) -> Floats:
    """The log mass of the cells where some h and some t meet."""
    i, j = all_pairs(len(h), len(t))
    height_h, height_t = landscape.heights(h, t)
    return landscape.gain(height_h[i], height_t[j], h[i], t[j]) + landscape.size(h[i], t[j])


def _is_steep(mass: Floats, points: Ranks, i: int) -> bool:
    """Whether the mass falls by a factor from the highest point to a neighbour, with other points between them."""
    near = slice(max(0, i - 1), i + 2)
    fallen = mass[i] - mass[near] > _STEEP
    return bool((fallen & (np.abs(points[near] - points[i]) > 1)).any())


def _lines_around(points: Ranks, i: int) -> Ranks:
    """Points between the two neighbours of a point."""
    low, high = int(points[max(0, i - 1)]), int(points[min(i + 1, len(points) - 1)])
    parts = min(_LINES, high - low)
    return low + (high - low) // parts * np.arange(parts + 1) + (high - low) % parts * np.arange(parts + 1) // parts


WASTE = 1.0
"""Boxes are good enough when their upper bounds add up to at most (1 + WASTE) times their lower bounds."""


PIECES = 8
"""Into how many pieces a box is cut at once."""


@dataclass(frozen=True, eq=False, repr=False)
class Boxes:
    """A partition of the grid with sound bounds.

    Attributes
    ----------
    h1, h2, t1, t2
        The corners, inclusive.
    gain, size
        At least the gain, and at least the size, of every cell of the box.
    """

    h1: Ranks
    h2: Ranks
    t1: Ranks
    t2: Ranks
    gain: Floats
    size: Floats

    def cells(self, j: int) -> int:
        """How many cells box j has."""
        return (int(self.h2[j]) - int(self.h1[j]) + 1) * (int(self.t2[j]) - int(self.t1[j]) + 1)

    def cell(self, j: int, entropy: Entropy) -> tuple[int, int]:
        """Returns a uniform cell of box j."""
        h1, t1 = int(self.h1[j]), int(self.t1[j])
        return h1 + entropy.upto(int(self.h2[j]) - h1), t1 + entropy.upto(int(self.t2[j]) - t1)

    def log_cells(self) -> Floats:
        """The logarithm of the number of cells, rounded."""
        return _log_cells(self.h1, self.h2, self.t1, self.t2)

    def log_mass(self) -> Floats:
        """At least the logarithm of the mass of the whole box, were all its cells as heavy as its bounds.

        Each term was raised by far more than what adding them up can lose.
        """
        return self.gain + self.size + bound_above(self.log_cells())


@dataclass(frozen=True, eq=False, repr=False)
class _Grid:
    """Boxes being refined: corners h1, h2, t1, t2 as rows, and gain and size at the four corners of each box.

    The rows of gain and size are: the corner of the most gain, that of the least, and the two others.
    """

    corners: Ranks
    gain: Floats
    size: Floats

    @classmethod
    def of(cls, landscape: Landscape, corners: Ranks) -> _Grid:
        h1, h2, t1, t2 = corners
        sides = landscape.heights(np.concatenate([h1, h2]), np.concatenate([t1, t2]))
        h, t = box_corners(corners)
        return cls._at(landscape, corners, np.concatenate(sides).reshape(4, -1), h, t, landscape.size(h, t))

    @classmethod
    def on(cls, landscape: Landscape, layout: Layout, size: Floats | None = None) -> _Grid:
        """The boxes of a layout, with the sizes at their corners where these are known."""
        heights_h, heights_t = landscape.heights(layout.ends_h.ravel(), layout.ends_t.ravel())
        heights_h = heights_h.reshape(layout.ends_h.shape)[:, layout.row]
        heights_t = heights_t.reshape(layout.ends_t.shape)[:, layout.column]
        heights = np.concatenate([heights_h, heights_t])
        known = landscape.size(layout.h, layout.t) if size is None else size
        return cls._at(landscape, layout.corners, heights, layout.h, layout.t, known)

    @classmethod
    def _at(cls, landscape: Landscape, corners: Ranks, heights: Floats, h: Ranks, t: Ranks, size: Floats) -> _Grid:
        low_h, high_h, low_t, high_t = heights
        gain = landscape.gain(
            np.concatenate([high_h, low_h, high_h, low_h]), np.concatenate([low_t, high_t, high_t, low_t]), h, t
        )
        shape = (4, corners.shape[1])
        return cls(corners, gain.reshape(shape), size.reshape(shape))

    def __getitem__(self, chosen: Mask) -> _Grid:
        return _Grid(self.corners[:, chosen], self.gain[:, chosen], self.size[:, chosen])

    def plus(self, other: _Grid) -> _Grid:
        return _Grid(
            np.concatenate([self.corners, other.corners], axis=1),
            np.concatenate([self.gain, other.gain], axis=1),
            np.concatenate([self.size, other.size], axis=1),
        )

    def log_bounds(self) -> tuple[Floats, Floats]:
        """Upper and lower bounds on the log mass of each box, but for rounding."""
        cells = _log_cells(*self.corners)
        return self.gain[0] + self.size[1] + cells, self.gain[1] + self.size[0] + cells

    def loose_boxes(self, outside: float, waste: float) -> Mask:
        h1, h2, t1, t2 = self.corners
        upper, lower = self.log_bounds()
        # The corners are cells too: a box weighs no less than its heaviest corner, which finds the peak early.
        lower = np.maximum(lower, (self.gain + self.size).max(axis=0))
        return choose_loose(upper, lower, (h2 > h1) | (t2 > t1), outside, waste)

    def boxes(self) -> Boxes:
        """The boxes with sound bounds."""
        h1, h2, t1, t2 = self.corners
        return Boxes(h1, h2, t1, t2, bound_above(self.gain[0]), bound_above(self.size[1]))

    def pieces(self, flat: Floats | float = -1.0) -> Ranks:
        """The corners of the pieces of each box, cut across the side along which its bounds vary more.

        One whose gain varies by at most `flat` along t is cut across h, where it has more than one.
        """
        h1, h2, t1, t2 = self.corners
        along_t = (self.gain[0] - self.gain[2]) + (self.size[1] - self.size[3])
        along_h = (self.gain[0] - self.gain[3]) + (self.size[1] - self.size[2])
        level = self.gain[0] - self.gain[2] <= flat
        by_t = (t2 > t1) & ((h2 == h1) | (~level & (along_t >= along_h)))
        low, last = np.where(by_t, t1, h1), np.where(by_t, t2 - t1, h2 - h1)
        # Where the pieces begin, without passing 2^63.
        i = np.arange(PIECES + 1)[:, None]
        cuts = low + last // PIECES * i + (last % PIECES + 1) * i // PIECES
        start, end = cuts[:-1], cuts[1:] - 1
        pieces = np.array(
            [np.where(by_t, h1, start), np.where(by_t, h2, end), np.where(by_t, start, t1), np.where(by_t, end, t2)]
        )
        kept: Ranks = pieces[:, start <= end]
        return kept


def enclose(landscape: Landscape, outside: float, waste: float = WASTE) -> Boxes:
    """Boxes that cover the landscape tightly.

    Parameters
    ----------
    landscape
        The grid and its two monotone functions.
    outside
        The logarithm of a mass that competes with the grid and needs no box.
    waste
        How much of the total the bounds may exceed it by.
    """
    return _refine(landscape, outside, waste).boxes()


def find_mass(
    landscape: Landscape, outside: float, few: int, spared: float, flat: float | None = None
) -> tuple[Ranks, float]:
    """Boxes of few cells each that hold all of the mass but a share, and what that share is at most.

    Parameters
    ----------
    landscape
        The grid and its two monotone functions.
    outside
        The logarithm of a mass that competes with the grid and needs no box.
    few
        How many cells a box has at most: their corners are rows h1, h2, t1, t2.
    spared
        The share of the mass that may be left out.
    flat
        A larger box is left whole where it has one h and its gain varies by no more than this, or by more where it
        has so little of the mass that this does not matter; None to leave no larger box.
    """
    grid, left_out = _Grid.of(landscape, np.array(landscape.corners, np.int64)[:, None]), 0.0
    while True:
        upper, lower = grid.log_bounds()
        total = float(np.logaddexp.reduce(lower, initial=outside))
        order = np.argsort(upper)
        lost = np.cumsum(np.exp(np.minimum(upper[order] - total, 0.0)))
        dropped = int(np.searchsorted(lost, spared - left_out))
        left_out += float(lost[dropped - 1]) if dropped else 0.0
        kept = np.ones(len(upper), bool)
        kept[order[:dropped]] = False
        grid = grid[kept]
        large = _log_cells(*grid.corners) > np.log(few) + 1e-9
        may_vary = np.full(len(large), -1.0)
        if flat is not None:
            may_vary = flat * np.maximum(1.0, np.exp(np.minimum(total - upper[kept], 600.0)) / _ROWS)
            large &= (grid.corners[1] > grid.corners[0]) | (grid.gain[0] - grid.gain[1] > may_vary)
        if not large.any():
            return grid.corners, left_out
        grid = grid[~large].plus(_Grid.of(landscape, grid[large].pieces(may_vary[large])))


_ROWS = 1000
"""About how many boxes are left whole: each may be off by so small a part of what all may be."""


def _refine(landscape: Landscape, outside: float, waste: float) -> _Grid:
    """Return boxes around the whole landscape, cut until they waste little."""
    h1, h2, t1, t2 = landscape.corners
    layout, size = lay_out_once(landscape.size, h1, h2, t1, t2)
    grid = _Grid.on(landscape, layout, size)
    if (chosen := grid.loose_boxes(outside, waste)).any():
        grid = _Grid.on(landscape, Layout.between(*add_lines_towards_peak(landscape, *layout.lines, t2), h2, t2))
        chosen = grid.loose_boxes(outside, waste)
    while chosen.any():
        grid = grid[~chosen].plus(_Grid.of(landscape, grid[chosen].pieces()))
        # Where boxes are many, to draw some more of them in vain costs less than to cut them all.
        chosen = grid.loose_boxes(outside, waste * max(1.0, grid.corners.shape[1] / _MANY))
    return grid


_MANY = 2000
"""From how many boxes on they may waste more."""


def choose_loose(upper: Floats, lower: Floats, divisible: Mask, outside: float, waste: float) -> Mask:
    """Which parts to cut: those that waste most, until what the others waste is little; none when all is well.

    Parameters
    ----------
    upper, lower
        Bounds on the log mass of each part.
    divisible
        Which parts can be cut.
    outside
        The logarithm of a mass that needs no part.
    waste
        The share of the total by which the upper bounds may exceed it.
    """
    top = max(outside, float(lower.max()))
    total = np.exp(outside - top) + np.exp(lower - top).sum()
    with np.errstate(over="ignore"):
        excess = np.minimum(np.exp(upper - top) - np.exp(lower - top), 1e300 / len(upper)) / total
    excess[~divisible] = 0.0
    return choose_wasteful(excess, waste) & divisible


def choose_wasteful(excess: Floats, waste: float) -> Mask:
    """The largest of some excesses, until the others are little; none where all together are at most `waste`."""
    chosen = np.zeros(len(excess), bool)
    if excess.sum() > waste:
        order = np.argsort(excess)
        chosen[order[int(np.searchsorted(np.cumsum(excess[order]), waste / 4.0)) :]] = True
    return chosen


def _log_cells(h1: Ranks, h2: Ranks, t1: Ranks, t2: Ranks) -> Floats:
    return np.log((h2 - h1 + 1).astype(np.float64)) + np.log((t2 - t1).astype(np.float64) + 1.0)
