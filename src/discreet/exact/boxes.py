"""Cuts a grid of cells into few boxes whose corners bound the mass inside.

A cell (h, t) has mass exp(gain(h, t) + size(h, t)). The gain grows with h and falls with t, the size falls with h and
grows with t, so a box [h1, h2] x [t1, t2] has gain at most gain(h2, t1) and size at most size(h1, t2) in every cell.
The gain is a function of two heights, one of h and one of t, so that each is looked up once a side, not once a corner.
Boxes are cut in pieces while the sum of their upper bounds exceeds that of their lower bounds by more than a share.
Floats choose the boxes; any choice is valid, and only the bounds that `Boxes` holds at the end must be sound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.exact.ball import Floats, above
from discreet.exact.entropy import Entropy, Ranks

Mask = NDArray[np.bool_]

WASTE = 1.0
"""Boxes are good enough when their upper bounds add up to at most (1 + WASTE) times their lower bounds."""


class Landscape(Protocol):
    """The float side of a grid of cells: monotone as the module says, right to a relative (or absolute) 2^-41."""

    @property
    def corners(self) -> tuple[int, int, int, int]:
        """The whole grid: smallest and largest h, smallest and largest t."""

    def height_h(self, h: Ranks) -> Floats: ...

    def height_t(self, t: Ranks) -> Floats: ...

    def gain(self, height_h: Floats, height_t: Floats, h: Ranks, t: Ranks) -> Floats: ...

    def size(self, h: Ranks, t: Ranks) -> Floats: ...


PIECES = 4
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
        return self.gain + self.size + above(self.log_cells())


@dataclass(frozen=True, eq=False, repr=False)
class _Grid:
    """Boxes being refined: corners h1, h2, t1, t2 as rows, and gain and size at the four corners of each box.

    The rows of gain and size are: the corner of the most gain, that of the least, and the two others.
    """

    corners: Ranks
    gain: Floats
    size: Floats

    @classmethod
    def of(cls, landscape: Landscape, corners: Ranks, heights: Floats | None = None) -> _Grid:
        h1, h2, t1, t2 = corners
        if heights is None:
            sides = landscape.height_h(np.concatenate([h1, h2])), landscape.height_t(np.concatenate([t1, t2]))
            heights = np.concatenate(sides).reshape(4, -1)
        low_h, high_h, low_t, high_t = heights
        shape = (4, corners.shape[1])
        h, t = np.concatenate([h2, h1, h2, h1]), np.concatenate([t1, t2, t2, t1])
        gain = landscape.gain(
            np.concatenate([high_h, low_h, high_h, low_h]), np.concatenate([low_t, high_t, high_t, low_t]), h, t
        )
        size = landscape.size(h, t)
        return cls(corners, gain.reshape(shape), size.reshape(shape))

    @classmethod
    def first(cls, landscape: Landscape) -> _Grid:
        """Boxes that double in width away from the largest h and the smallest t, where mass often is."""
        h1, h2, t1, t2 = landscape.corners
        lengths_h, lengths_t = _doubling(h2 - h1), _doubling(t2 - t1)
        ends_h = h2 - lengths_h[1:] + 1, h2 - lengths_h[:-1]
        ends_t = t1 + lengths_t[:-1], t1 + (lengths_t[1:] - 1)
        heights_h, heights_t = [landscape.height_h(h) for h in ends_h], [landscape.height_t(t) for t in ends_t]
        return cls.of(landscape, _product(ends_h, ends_t), _product(heights_h, heights_t))

    def __getitem__(self, chosen: Mask) -> _Grid:
        return _Grid(self.corners[:, chosen], self.gain[:, chosen], self.size[:, chosen])

    def plus(self, other: _Grid) -> _Grid:
        return _Grid(
            np.concatenate([self.corners, other.corners], axis=1),
            np.concatenate([self.gain, other.gain], axis=1),
            np.concatenate([self.size, other.size], axis=1),
        )

    def loose(self, outside: float, waste: float) -> Mask:
        h1, h2, t1, t2 = self.corners
        cells = _log_cells(h1, h2, t1, t2)
        upper, lower = self.gain[0] + self.size[1] + cells, self.gain[1] + self.size[0] + cells
        return loose(upper, lower, (h2 > h1) | (t2 > t1), outside, waste)

    def pieces(self) -> Ranks:
        """The corners of the pieces of each box, cut across the side along which its bounds vary more."""
        h1, h2, t1, t2 = self.corners
        along_t = (self.gain[0] - self.gain[2]) + (self.size[1] - self.size[3])
        along_h = (self.gain[0] - self.gain[3]) + (self.size[1] - self.size[2])
        by_t = (t2 > t1) & ((h2 == h1) | (along_t >= along_h))
        low, last = np.where(by_t, t1, h1), np.where(by_t, t2 - t1, h2 - h1)
        cuts = [low + _share(last, i) for i in range(PIECES + 1)]
        parts = []
        for start, end in zip(cuts, [cut - 1 for cut in cuts[1:]], strict=False):
            corners = np.where(by_t, [h1, h2, start, end], [start, end, t1, t2])
            parts.append(corners[:, start <= end])
        return np.concatenate(parts, axis=1)


def _share(last: Ranks, i: int) -> Ranks:
    """Where the i-th of PIECES equal pieces of 0..last begins, without passing 2^63."""
    return last // PIECES * i + (last % PIECES + 1) * i // PIECES


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
    grid = _Grid.first(landscape)
    while (chosen := grid.loose(outside, waste)).any():
        grid = grid[~chosen].plus(_Grid.of(landscape, grid[chosen].pieces()))
    h1, h2, t1, t2 = grid.corners
    return Boxes(h1, h2, t1, t2, above(grid.gain[0]), above(grid.size[1]))


def _product(rows: Sequence[NDArray[Any]], columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Two quantities a row and two a column, for every pair of a row and a column."""
    shape = len(rows[0]), len(columns[0])
    spread = [row[:, None] for row in rows] + [column[None, :] for column in columns]
    return np.array([np.broadcast_to(values, shape).ravel() for values in spread])


def _doubling(last: int) -> Ranks:
    """0, 1, 3, 7, ... up to last + 1, where the steps end."""
    steps = [2**i - 1 for i in range((last + 1).bit_length()) if 2**i - 1 <= last]
    return np.array([*steps, last + 1], np.int64)


def loose(upper: Floats, lower: Floats, divisible: Mask, outside: float, waste: float) -> Mask:
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
    if excess.sum() <= waste:
        return np.zeros(len(upper), bool)
    order = np.argsort(excess)
    first = int(np.searchsorted(np.cumsum(excess[order]), waste / 4.0))
    chosen = np.zeros(len(upper), bool)
    chosen[order[first:]] = True
    return chosen & divisible


def _log_cells(h1: Ranks, h2: Ranks, t1: Ranks, t2: Ranks) -> Floats:
    return np.log((h2 - h1 + 1).astype(np.float64)) + np.log((t2 - t1).astype(np.float64) + 1.0)
