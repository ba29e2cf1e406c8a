"""Partitions of a grid of weighted cells into few boxes whose corners bound the mass inside.

A cell (h, t) has the mass exp(gain(h, t) + size(h, t)). The gain increases in h and decreases in t, the size the other
way round, so every cell of a box [h1, h2] x [t1, t2] has a gain of at most gain(h2, t1) and a size of at most
size(h1, t2). Boxes are split while their upper bounds exceed their lower bounds by too much. Floats choose the boxes;
every partition is valid, and only the bounds in `Boxes` must be sound (docs/proofs.md, section 9.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from discreet.exact.arrays import Floats, Mask, Ranks, freeze, sorted_distinct
from discreet.exact.ball import bound_above
from discreet.exact.entropy import Entropy

WASTE = 1.0
"""Boxes are tight enough if their upper bounds add up to at most (1 + WASTE) times their lower bounds."""

PIECES = 8
"""The number of pieces that a box is split into at a time."""

_MANY_BOXES = 2000
"""From this many boxes on the allowed waste grows: a few more rejections cost less than splitting all boxes."""

_UNSPLIT_ROWS = 1000
"""The expected number of rows that `find_mass` leaves whole, by which it divides the error that all may have."""

_MAX_PEAK_ROUNDS = 20
"""The most rounds of lines around a peak; each round makes them several times closer."""

_STEEP_FALL = 1.0
"""The fall of the log mass between neighbouring lines, in nats, from which on lines are added between them."""

_LINES_PER_ROUND = 6
"""The number of intervals that the neighbourhood of a peak is divided into per round."""

Sizes = Callable[[Ranks, Ranks], Floats]
"""The sizes of cells, as a hashable function of h and t; equal functions give equal sizes."""


class Landscape(Protocol):
    """The gains and sizes of a grid in floats, right to a relative (or absolute) 2^-41."""

    @property
    def corners(self) -> tuple[int, int, int, int]:
        """The whole grid: smallest and largest h, smallest and largest t."""

    def heights(self, h: Ranks, t: Ranks) -> tuple[Floats, Floats]:
        """Return the heights that gains are made of, for some h and some t in one look-up."""

    def gain(self, height_h: Floats, height_t: Floats, h: Ranks, t: Ranks) -> Floats:
        """Return the gains of cells from their heights."""

    @property
    def size(self) -> Sizes:
        """The sizes of cells, which depend on the extent of the grid alone."""


@dataclass(frozen=True, eq=False, repr=False)
class Boxes:
    """A partition of the grid with sound bounds.

    Attributes
    ----------
    h1, h2, t1, t2
        The corners, inclusive.
    gain, size
        Upper bounds on the gain and on the size of every cell of each box.
    """

    h1: Ranks
    h2: Ranks
    t1: Ranks
    t2: Ranks
    gain: Floats
    size: Floats

    def cells(self, j: int) -> int:
        """Return the number of cells of box j."""
        return (int(self.h2[j]) - int(self.h1[j]) + 1) * (int(self.t2[j]) - int(self.t1[j]) + 1)

    def cell(self, j: int, entropy: Entropy) -> tuple[int, int]:
        """Draw a uniform cell of box j."""
        h1, t1 = int(self.h1[j]), int(self.t1[j])
        return h1 + entropy.upto(int(self.h2[j]) - h1), t1 + entropy.upto(int(self.t2[j]) - t1)

    def log_cells(self) -> Floats:
        """Return the logarithm of the number of cells of each box, rounded."""
        return _log_cells(self.h1, self.h2, self.t1, self.t2)

    def log_mass(self) -> Floats:
        """Return upper bounds on the log masses of the boxes."""
        # Each term was raised by far more than the rounding of their sum.
        return self.gain + self.size + bound_above(self.log_cells())


def enclose(landscape: Landscape, outside: float, waste: float = WASTE) -> Boxes:
    """Return boxes that cover the landscape tightly.

    Parameters
    ----------
    landscape
        The grid and its two monotone functions.
    outside
        The logarithm of a mass outside of the grid that counts towards the total.
    waste
        The share of the total by which the bounds may exceed it.
    """
    h1, h2, t1, t2 = landscape.corners
    layout, size = lay_out(landscape.size, h1, h2, t1, t2)
    grid = _Grid.on(landscape, layout, size)
    if (chosen := grid.loose_boxes(outside, waste)).any():
        grid = _Grid.on(landscape, Layout.between(*add_lines_towards_peak(landscape, *layout.lines, t2), h2, t2))
        chosen = grid.loose_boxes(outside, waste)
    while chosen.any():
        grid = grid[~chosen].plus(_Grid.of(landscape, grid[chosen].pieces()))
        chosen = grid.loose_boxes(outside, waste * max(1.0, grid.corners.shape[1] / _MANY_BOXES))
    low_h, high_h, low_t, high_t = grid.corners
    return Boxes(low_h, high_h, low_t, high_t, bound_above(grid.gain[0]), bound_above(grid.size[1]))


def find_mass(
    landscape: Landscape, outside: float, few: int, spared: float, flat: float | None = None
) -> tuple[Ranks, float]:
    """Return boxes of few cells each that hold nearly all of the mass, and an upper bound on the share left out.

    Parameters
    ----------
    landscape
        The grid and its two monotone functions.
    outside
        The logarithm of a mass outside of the grid that counts towards the total.
    few
        The most cells of a box. The boxes are returned as rows h1, h2, t1, t2.
    spared
        The share of the mass that may be left out.
    flat
        A larger box is left whole if it has one h and its gain varies by at most this, or by more where the box holds
        so little of the mass that the variation does not matter; None to split every larger box.
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
            may_vary = flat * np.maximum(1.0, np.exp(np.minimum(total - upper[kept], 600.0)) / _UNSPLIT_ROWS)
            large &= (grid.corners[1] > grid.corners[0]) | (grid.gain[0] - grid.gain[1] > may_vary)
        if not large.any():
            return grid.corners, left_out
        grid = grid[~large].plus(_Grid.of(landscape, grid[large].pieces(may_vary[large])))


@dataclass(frozen=True, eq=False, repr=False)
class Layout:
    """Boxes bounded by lines across h and lines across t.

    Attributes
    ----------
    lines
        The first h after each line across h, and the first t after each line across t.
    ends_h, ends_t
        The first and the last h, or t, of each interval between lines.
    row, column
        The interval of h and the interval of t of each box.
    corners
        The rows h1, h2, t1, t2 of all boxes.
    h, t
        The four corners of all boxes, as `_box_corners` orders them.
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
        """Return the boxes between lines, up to h2 and t2."""
        ends_h = np.array([lines_h, np.append(lines_h[1:] - 1, h2)])
        ends_t = np.array([lines_t, np.append(lines_t[1:] - 1, t2)])
        row, column = _all_pairs(len(lines_h), len(lines_t))
        corners = np.concatenate([ends_h[:, row], ends_t[:, column]])
        return cls((lines_h, lines_t), ends_h, ends_t, row, column, corners, *_box_corners(corners))


@dataclass(frozen=True, eq=False, repr=False)
class _Grid:
    """Boxes being split: the rows h1, h2, t1, t2, and gain and size at the four corners that `_box_corners` returns."""

    corners: Ranks
    gain: Floats
    size: Floats

    @classmethod
    def of(cls, landscape: Landscape, corners: Ranks) -> _Grid:
        h1, h2, t1, t2 = corners
        sides = landscape.heights(np.concatenate([h1, h2]), np.concatenate([t1, t2]))
        h, t = _box_corners(corners)
        return cls._at(landscape, corners, np.concatenate(sides).reshape(4, -1), h, t, landscape.size(h, t))

    @classmethod
    def on(cls, landscape: Landscape, layout: Layout, size: Floats | None = None) -> _Grid:
        """Return the boxes of a layout, with one look-up per line; `size` holds the sizes at all corners if known."""
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
        """Return upper and lower bounds on the log mass of each box, up to rounding."""
        cells = _log_cells(*self.corners)
        return self.gain[0] + self.size[1] + cells, self.gain[1] + self.size[0] + cells

    def loose_boxes(self, outside: float, waste: float) -> Mask:
        h1, h2, t1, t2 = self.corners
        upper, lower = self.log_bounds()
        # A box weighs no less than its heaviest corner, which is a cell; this finds the peak early.
        lower = np.maximum(lower, (self.gain + self.size).max(axis=0))
        return choose_loose(upper, lower, (h2 > h1) | (t2 > t1), outside, waste)

    def pieces(self, flat: Floats | float = -1.0) -> Ranks:
        """Return the corners of the pieces of each box, split along the side on which its bounds vary more.

        A box whose gain varies by at most `flat` along t is split along h if it has more than one h.
        """
        h1, h2, t1, t2 = self.corners
        along_t = (self.gain[0] - self.gain[2]) + (self.size[1] - self.size[3])
        along_h = (self.gain[0] - self.gain[3]) + (self.size[1] - self.size[2])
        level = self.gain[0] - self.gain[2] <= flat
        by_t = (t2 > t1) & ((h2 == h1) | (~level & (along_t >= along_h)))
        low, last = np.where(by_t, t1, h1), np.where(by_t, t2 - t1, h2 - h1)
        # low + (last + 1) i / PIECES, without overflow beyond 2^63.
        i = np.arange(PIECES + 1)[:, None]
        cuts = low + last // PIECES * i + (last % PIECES + 1) * i // PIECES
        start, end = cuts[:-1], cuts[1:] - 1
        pieces = np.array(
            [np.where(by_t, h1, start), np.where(by_t, h2, end), np.where(by_t, start, t1), np.where(by_t, end, t2)]
        )
        kept: Ranks = pieces[:, start <= end]
        return kept


def choose_loose(upper: Floats, lower: Floats, divisible: Mask, outside: float, waste: float) -> Mask:
    """Return the parts to split: those that waste most, until the others waste little; none if all are tight enough.

    Parameters
    ----------
    upper, lower
        Bounds on the log mass of each part.
    divisible
        True for parts that can be split.
    outside
        The logarithm of a mass outside of all parts that counts towards the total.
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
    """Return the largest entries, until the others add up to at most waste / 4; none if the sum is at most `waste`."""
    chosen = np.zeros(len(excess), bool)
    if excess.sum() > waste:
        order = np.argsort(excess)
        chosen[order[int(np.searchsorted(np.cumsum(excess[order]), waste / 4.0)) :]] = True
    return chosen


@lru_cache(maxsize=256)
def lay_out(sizes: Sizes, h1: int, h2: int, t1: int, t2: int) -> tuple[Layout, Floats]:
    """Return boxes around a whole grid, with the sizes at all corners; cached, because many groups share an extent.

    The key is public: the extent is that of the domain. Mass often lies at the largest h and the smallest t, so the
    distances between lines double from there.
    """
    layout = Layout.between(h2 + 1 - _doubling_steps(h2 - h1)[:0:-1], t1 + _doubling_steps(t2 - t1)[:-1], h2, t2)
    corner_sizes = sizes(layout.h, layout.t)
    freeze(corner_sizes, layout.corners)
    return layout, corner_sizes


def _doubling_steps(last: int) -> Ranks:
    """Return 0, 1, 3, 7, ... up to `last`, and last + 1."""
    steps = [2**i - 1 for i in range((last + 1).bit_length()) if 2**i - 1 <= last]
    return np.array([*steps, last + 1], np.int64)


def add_lines_towards_peak(landscape: Landscape, h: Ranks, t: Ranks, t2: int) -> tuple[Ranks, Ranks]:
    """Return the lines with more of them around the heaviest cell, until its neighbours are about as heavy."""
    lines_h, lines_t = [h], [t]
    t = np.append(t, t2)
    for _ in range(_MAX_PEAK_ROUNDS):
        row, column = _all_pairs(len(h), len(t))
        height_h, height_t = landscape.heights(h, t)
        mass = landscape.gain(height_h[row], height_t[column], h[row], t[column])
        mass = mass + landscape.size(h[row], t[column])
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


def _is_steep(mass: Floats, points: Ranks, i: int) -> bool:
    """Return True if the log mass falls steeply from point i to a neighbour with other points in between."""
    near = slice(max(0, i - 1), i + 2)
    fallen = mass[i] - mass[near] > _STEEP_FALL
    return bool((fallen & (np.abs(points[near] - points[i]) > 1)).any())


def _lines_around(points: Ranks, i: int) -> Ranks:
    """Return evenly spaced points between the two neighbours of point i."""
    low, high = int(points[max(0, i - 1)]), int(points[min(i + 1, len(points) - 1)])
    parts = min(_LINES_PER_ROUND, high - low)
    return low + (high - low) // parts * np.arange(parts + 1) + (high - low) % parts * np.arange(parts + 1) // parts


def _box_corners(corners: Ranks) -> tuple[Ranks, Ranks]:
    """Return h and t of the four corners of all boxes: of the largest gain, of the smallest, and the two others."""
    h1, h2, t1, t2 = corners
    return np.concatenate([h2, h1, h2, h1]), np.concatenate([t1, t2, t2, t1])


def _all_pairs(rows: int, columns: int) -> tuple[Ranks, Ranks]:
    """Return the row and the column of every cell of a table."""
    return np.repeat(np.arange(rows), columns), np.tile(np.arange(columns), rows)


def _log_cells(h1: Ranks, h2: Ranks, t1: Ranks, t2: Ranks) -> Floats:
    """Return the logarithm of the number of cells of each box."""
    return np.log((h2 - h1 + 1).astype(np.float64)) + np.log((t2 - t1).astype(np.float64) + 1.0)
