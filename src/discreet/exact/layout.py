"""Where boxes around a grid begin, before anything is known of what is in it.

That depends on the extent of the grid alone, so that it is kept: the lists of many groups have one extent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from discreet.exact.arrays import Floats, Ranks

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
