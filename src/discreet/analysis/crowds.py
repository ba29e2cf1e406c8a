"""How many of many noisy values are above w: laws of sums of independent coins, at many w at once.

The number of values above w is a sum of coins with the chances p_i = 1 - F(w - v_i). Its law is read off its generating
function, the product of 1 + p_i (z - 1), at few points z = exp(i angle) of the unit circle: it is nothing far from its
mean, so that a short circle serves, and the function is nothing away from z = 1 where the variance is large. Values
far below w enter by power sums: log(1 + p (z - 1)) is a power series in x = exp(v - w), whose coefficients depend on z
alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import exp, log

import numpy as np

from discreet.analysis.spectra import FINE, TERMS, FarLevels, Fineness, NearLevels, Spectrum, tail_series
from discreet.exact.arrays import Floats, Mask
from discreet.noise import Distribution

_NEAR = 3.0

_TILTS = (0.02, 0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 16.0)
_FEW = 200
"""So few levels are all taken one by one."""

_FAR_BELOW = 300.0
"""Further below the centre than this, sums that are counted from there are lost in what floats hold."""


@dataclass(frozen=True, eq=False)
class Crowd:
    """Values before noise, by level: the different values in descending order, and how many have each.

    Attributes
    ----------
    distribution
        The noise.
    levels, counts
        The different values, and how many there are of each.
    marked
        How many of each are marked.
    centre
        A value about which the number of values above w is not certain.
    """

    distribution: Distribution
    levels: Floats
    counts: Floats
    marked: Floats
    centre: float
    fineness: Fineness = FINE

    @classmethod
    def of(
        cls,
        distribution: Distribution,
        values: Floats,
        rank: int,
        marks: Mask | None = None,
        fineness: Fineness = FINE,
    ) -> Crowd:
        """Values in descending order, all marked or some, of which about `rank` are above the w of interest."""
        starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
        counts = np.diff(np.append(starts, len(values))).astype(np.float64)
        marked = counts if marks is None else np.add.reduceat(marks.astype(np.float64), starts)
        centre = float(values[min(rank, len(values) - 1)])
        return cls(distribution, values[starts], counts, marked, centre, fineness)

    @cached_property
    def _depth(self) -> float:
        return self.fineness.depth + log(self.counts.sum())

    @cached_property
    def marked_from(self) -> int:
        """The place of the first level that has a marked one."""
        return int(np.argmax(self.marked > 0.0)) if self.marked.any() else len(self.levels)

    @cached_property
    def _marks_all_from_there(self) -> bool:
        part = slice(self.marked_from, None)
        return bool((self.marked[part] == self.counts[part]).all())

    def log_few(self, w: float, most: int) -> float:
        """At least the log chance that at most so many are above w (Chernoff); grows with w."""
        certain, chances, counts, far = self._around(w)
        tilts = -np.array(_TILTS)
        exponent = counts @ np.log1p(chances[:, None] * np.expm1(tilts)) + 0.5 * far * np.expm1(tilts)
        return min(0.0, float((exponent + tilts * (certain - most)).min()))

    def log_many(self, w: float, least: int) -> float:
        """At least the log chance that so many or more are above w (Chernoff); falls with w."""
        certain, chances, counts, far = self._around(w)
        tilts = np.array(_TILTS)
        exponent = counts @ np.log1p(chances[:, None] * np.expm1(tilts)) + 2.0 * far * np.expm1(tilts)
        return min(0.0, float((exponent + tilts * (certain - least)).min()))

    def log_marked(self, w: float) -> float:
        """At least the log of how many marked ones are expected above w; falls with w."""
        near = max(self._first_below(w - _NEAR), self.marked_from)
        part = slice(self.marked_from, near)
        _, above, _ = self.distribution.evaluate(w - self.levels[part])
        expected = float(above @ self.marked[part]) + 2.0 * self._slope * self._tail_sum(near, w)
        return log(expected) if expected > 0.0 else -np.inf

    def expect_marked(self, w: float) -> float:
        """How many marked ones are expected above w."""
        _, above, _ = self.distribution.evaluate(w - self.levels[self.marked_from :])
        return float(above @ self.marked[self.marked_from :])

    def _around(self, w: float) -> tuple[float, Floats, Floats, float]:
        """How many are certainly above w, the chances of levels about it, how many have each, and about how many more.

        No level is far above w that is not above it for certain.
        """
        certain, near = self._first_below(w + self._depth), self._first_below(w - _NEAR)
        _, above, _ = self.distribution.evaluate(w - self.levels[certain:near])
        far = self._slope * self._tail_sum(near, w)
        return float(self.counts[:certain].sum()), above, self.counts[certain:near], far

    def _first_below(self, w: float) -> int:
        return int(np.searchsorted(-self.levels, -w, side="right"))

    @cached_property
    def _tails(self) -> Floats:
        """Sums of exp(value - centre) from each level on."""
        weights = self.counts * np.exp(np.clip(self.levels - self.centre, -700.0, _FAR_BELOW))
        return np.append(np.cumsum(weights[::-1])[::-1], 0.0)

    def _tail_sum(self, place: int, w: float) -> float:
        """The sum of exp(value - w) from a level on that is below w."""
        if self.centre - w > _FAR_BELOW:
            return float(self.counts[place:] @ np.exp(self.levels[place:] - w))
        return float(self._tails[place]) * exp(self.centre - w)

    @cached_property
    def _slope(self) -> float:
        """1 - F(w) is about this times exp(-w)."""
        return float(tail_series(self.distribution)[1])

    def spectrum(self, nodes: Floats) -> Spectrum:
        """The law of the number of values above each node; nodes ascend."""
        low, high = float(nodes[0]), float(nodes[-1])
        certain, near = self._first_below(high + self._depth), self._first_below(low - _NEAR)
        if len(self.levels) < _FEW:
            near = self._first_below(low - _NEAR - self._depth)
        part = slice(certain, near)
        inside = NearLevels(
            self.distribution, nodes, self.levels[part], self.counts[part], self.marked[part],
            max(self.marked_from - certain, 0),
        )  # fmt: skip
        far = self._far(near, low, nodes) if len(self.levels) >= _FEW else None
        return Spectrum.of(inside, far, int(self.counts[:certain].sum()), self.fineness)

    def _far(self, near: int, low: float, nodes: Floats) -> FarLevels:
        """The terms of the series of all that are far below: their power sums, brought to each node."""
        edge = low - _NEAR
        part = slice(near, self._first_below(edge - self._depth))
        ratio, power = np.exp(self.levels[part] - edge), self.counts[part].copy()
        sums, marked = np.zeros(TERMS + 1), np.zeros(TERMS + 1)
        all_marked = self.marked_from <= near and self._marks_all_from_there
        share = None if all_marked else self.marked[part] / self.counts[part]
        for a in range(1, TERMS + 1):
            power *= ratio
            sums[a] = power.sum()
            marked[a] = sums[a] if share is None else power @ share
        powers = np.exp(edge - nodes)[:, None] ** np.arange(TERMS + 1)
        return FarLevels(self.distribution, powers * sums, powers * marked * np.arange(TERMS + 1))
