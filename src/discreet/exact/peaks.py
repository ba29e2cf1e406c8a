"""A grid of cells with masses, seen in floats, and where its heaviest cells are: there boxes have to be small."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from discreet.exact.arrays import Floats, Ranks, sorted_distinct
from discreet.exact.layout import Sizes, all_pairs


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
