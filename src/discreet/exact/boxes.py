"""Cuts a grid of cells into few boxes whose corners bound the mass inside.

A cell (h, t) has mass exp(gain(h, t) + size(h, t)). The gain grows with h and falls with t, the size falls with h and
grows with t, so a box [h1, h2] x [t1, t2] has gain at most gain(h2, t1) and size at most size(h1, t2) in every cell.
Boxes are halved while the sum of their upper bounds exceeds that of their lower bounds by more than a share of it.
Floats choose the boxes; any choice is valid, and only the bounds that `Boxes` holds at the end must be sound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

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

    def gain(self, h: Ranks, t: Ranks) -> Floats: ...

    def size(self, h: Ranks, t: Ranks) -> Floats: ...


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class _Grid:
    """Boxes being refined: corners h1, h2, t1, t2 as rows, and gain and size at the four corners of each box."""

    corners: Ranks
    gain: Floats
    size: Floats

    @classmethod
    def of(cls, landscape: Landscape, corners: Ranks) -> _Grid:
        h1, h2, t1, t2 = corners
        # The best corner for the gain, the worst one, and the two others.
        h, t = np.concatenate([h2, h1, h2, h1]), np.concatenate([t1, t2, t2, t1])
        shape = (4, corners.shape[1])
        return cls(corners, landscape.gain(h, t).reshape(shape), landscape.size(h, t).reshape(shape))

    def __getitem__(self, chosen: Mask) -> _Grid:
        return _Grid(self.corners[:, chosen], self.gain[:, chosen], self.size[:, chosen])

    def plus(self, other: _Grid) -> _Grid:
        pairs = ((self.corners, other.corners), (self.gain, other.gain), (self.size, other.size))
        return _Grid(*(np.concatenate(pair, axis=1) for pair in pairs))

    def loose(self, outside: float, waste: float) -> Mask:
        h1, h2, t1, t2 = self.corners
        cells = _log_cells(h1, h2, t1, t2)
        upper, lower = self.gain[0] + self.size[1] + cells, self.gain[1] + self.size[0] + cells
        return loose(upper, lower, (h2 > h1) | (t2 > t1), outside, waste)

    def halves(self) -> Ranks:
        """The corners of both halves of each box, cut across the side along which its bounds vary more."""
        h1, h2, t1, t2 = self.corners
        along_t = (self.gain[0] - self.gain[2]) + (self.size[1] - self.size[3])
        along_h = (self.gain[0] - self.gain[3]) + (self.size[1] - self.size[2])
        by_t = (t2 > t1) & ((h2 == h1) | (along_t >= along_h))
        middle_h, middle_t = h1 + (h2 - h1) // 2, t1 + (t2 - t1) // 2
        one = np.array([h1, np.where(by_t, h2, middle_h), t1, np.where(by_t, middle_t, t2)])
        other = np.array([np.where(by_t, h1, middle_h + 1), h2, np.where(by_t, middle_t + 1, t1), t2])
        return np.concatenate([one, other], axis=1)


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
    grid = _Grid.of(landscape, _first_cut(*landscape.corners))
    while (chosen := grid.loose(outside, waste)).any():
        grid = grid[~chosen].plus(_Grid.of(landscape, grid[chosen].halves()))
    return Boxes(*grid.corners, above(grid.gain[0]), above(grid.size[1]))


def _first_cut(h1: int, h2: int, t1: int, t2: int) -> Ranks:
    """The corners of boxes that double in width away from the largest h and the smallest t, where mass often is."""
    lengths_h, lengths_t = _doubling(h2 - h1), _doubling(t2 - t1)
    high_h, low_h = h2 - lengths_h[:-1], h2 - lengths_h[1:] + 1
    low_t, high_t = t1 + lengths_t[:-1], t1 + (lengths_t[1:] - 1)
    shape = len(high_h), len(low_t)
    rows = (low_h[:, None], high_h[:, None], low_t[None, :], high_t[None, :])
    return np.array([np.broadcast_to(row, shape).ravel() for row in rows])


def _doubling(last: int) -> Ranks:
    """0, 1, 3, 7, ... up to last + 1, where the steps end."""
    steps = [2**i - 1 for i in range((last + 1).bit_length()) if 2**i - 1 <= last]
    return np.array([*steps, last + 1], np.int64)


def loose(upper: Floats, lower: Floats, divisible: Mask, outside: float, waste: float) -> Mask:
    """Which parts to halve: those that waste most, until what the others waste is little; none when all is well.

    Parameters
    ----------
    upper, lower
        Bounds on the log mass of each part.
    divisible
        Which parts can be halved.
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
