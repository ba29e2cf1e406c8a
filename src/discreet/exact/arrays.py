"""The arrays that pass between modules, by what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Reals as NumPy has them: proposals, and bounds."""

Ranks = NDArray[np.int64]
"""Places in the descending order of scores, from 0; or other whole numbers."""

Words = NDArray[np.uint64]
"""Random bits, so many at a time."""

Mask = NDArray[np.bool_]
"""Which of some things are meant."""


def freeze(*shared: NDArray[Any]) -> None:
    """Makes arrays that are kept for others read-only."""
    for each in shared:
        each.setflags(write=False)


def sorted_distinct(values: Ranks) -> Ranks:
    """The different values, in ascending order."""
    ordered = np.sort(values)
    kept: Ranks = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return kept


def count_up(counts: Ranks) -> Ranks:
    """0, 1, ... up to before each of some counts."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
