"""The curve of scores by rank from a few points of it: made to fall, and filled in between.

All of it works on what is public already, in whole steps of a grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from discreet.exact.arrays import Floats, Ranks
from discreet.tally import Tally

_FINE = 2**17
"""Up to this rank every rank has a score of its own; those behind come in runs, longer and longer."""

_RUNS_PER_RANGE = 2**10
"""The runs behind grow by one part in so many."""


def fit_falling(values: Sequence[int]) -> list[Fraction]:
    """The numbers in descending order that are nearest to these, in squares: neighbours out of order are averaged.

    Examples
    --------
    >>> [str(value) for value in fit_falling([9, 4, 5, 5, 1])]
    ['9', '14/3', '14/3', '14/3', '1']
    """
    blocks: list[tuple[int, int]] = []
    for value in values:
        total, size = value, 1
        # A block whose mean is below that of the next one is one block with it.
        while blocks and blocks[-1][0] * size < total * blocks[-1][1]:
            more, longer = blocks.pop()
            total, size = total + more, size + longer
        blocks.append((total, size))
    return [Fraction(total, size) for total, size in blocks for _ in range(size)]


def fill_in(ranks: Sequence[int], steps: Sequence[int], d: int, grid: Fraction) -> Tally:
    """A tally of d scores that has these at some ranks, which count from 1, and between them a smooth curve.

    Between two scores above zero it is a power of the rank, otherwise straight in the logarithm of the rank; before the
    first rank and behind the last one it is level. Scores are whole steps of the grid.
    """
    starts = _list_run_starts(ranks, d)
    values = _interpolate(np.asarray(ranks, np.float64), np.asarray(steps, np.float64), starts.astype(np.float64) + 1.0)
    whole = np.floor(values + 0.5).astype(np.int64)
    # Floats hold whole numbers up to 2^53: what is known is kept exactly.
    whole[np.searchsorted(starts, np.array([rank - 1 for rank in ranks]))] = steps
    whole = np.minimum.accumulate(whole)
    first = np.flatnonzero(np.append(True, whole[1:] < whole[:-1]))
    counts = np.diff(starts[first], append=np.int64(d - 1))
    sizes = [*counts[:-1].tolist(), int(counts[-1]) + 1]
    return Tally.of_runs(whole[first].tolist(), sizes, grid)


def _list_run_starts(ranks: Sequence[int], d: int) -> Ranks:
    """The first rank of every run, from 0; every given rank is the first of one."""
    starts = {rank - 1 for rank in ranks}
    place = _FINE
    while place < d:
        starts.add(place)
        place += place // _RUNS_PER_RANGE
    far = np.array(sorted(starts), np.int64)
    return np.union1d(np.arange(min(d, _FINE), dtype=np.int64), far)


def _interpolate(ranks: Floats, scores: Floats, at: Floats) -> Floats:
    """The curve through some points, at some ranks."""
    here = np.log(np.clip(at, ranks[0], ranks[-1]))
    straight = np.interp(here, np.log(ranks), scores)
    above = scores > 0.0
    if not above.any():
        return straight
    powers = np.exp(np.interp(here, np.log(ranks[above]), np.log(scores[above])))
    # Scores fall, so that those above zero come first.
    return np.where(here <= np.log(ranks[above][-1]), powers, straight)
