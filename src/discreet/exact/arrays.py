"""Array types named by content, and three NumPy helpers that several modules share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Approximate reals: proposals and bounds."""

Ranks = NDArray[np.int64]
"""Ranks in descending order of score, from 0; or other whole numbers."""

Words = NDArray[np.uint64]
"""Words of random bits."""

Mask = NDArray[np.bool_]
"""A boolean index into another array."""


def freeze(*arrays: NDArray[Any]) -> None:
    """Make arrays read-only, because several callers share them."""
    for array in arrays:
        array.setflags(write=False)


def sorted_distinct(values: Ranks) -> Ranks:
    """Return the distinct values in ascending order."""
    ordered = np.sort(values)
    kept: Ranks = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return kept


def count_up(counts: Ranks) -> Ranks:
    """Return 0, 1, ..., n - 1 for each n in `counts`, concatenated."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
