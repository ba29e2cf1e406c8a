"""How many of many noisy values are above w: laws of sums of independent coins, at many w at once.

The number of values above w is a sum of coins with the chances p_i = 1 - F(w - v_i). Its law is read off its generating
function, the product of 1 + p_i (z - 1), at few points z = exp(i angle) of the unit circle: it is nothing far from its
mean, so that a short circle serves, and the function is nothing away from z = 1 where the variance is large. Values
far below w enter by power sums: log(1 + p (z - 1)) is a power series in x = exp(v - w), whose coefficients depend on z
alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import exp, inf, log

import numpy as np
from numpy.typing import NDArray

from discreet.exact.arrays import Floats, Mask
from discreet.mechanisms.noise import Distribution

# The law of a number of coins, at many nodes at once, read off its generating function on part of a circle.

Complexes = NDArray[np.complex128]

_RADIUS, _CIRCLE, TERMS = 1.0 / 6.0, 64, 20
"""From 3 on, the series in exp(-w) converges like 0.3^n: 20 terms are as good as all."""

_CLOSE = 0.8

_CELLS = 1 << 19
"""How many numbers are worked on at once."""


@dataclass(frozen=True)
class Fineness:
    """What is left out of a law.

    Attributes
    ----------
    depth
        A value further than this from w is above it, or below it, for certain; and of many values further by their log.
    sigmas, more
        A number is not further from its mean than so many standard deviations and so many more.
    spread
        What is below exp(-spread) of the largest is left out of a generating function.
    """

    depth: float
    sigmas: float
    more: float
    spread: float


FINE = Fineness(depth=45.0, sigmas=9.0, more=20.0, spread=32.0)
ROUGH = Fineness(depth=16.0, sigmas=5.0, more=10.0, spread=16.0)
"""All that is left out is below 1e-5: by Bernstein's inequality a number is so far from its mean once in 200,000."""


@dataclass(frozen=True, eq=False)
class NearLevels:
    """The levels that are taken one by one, at some nodes."""

    distribution: Distribution
    nodes: Floats
    levels: Floats
    counts: Floats
    marked: Floats
    marked_from: int

    @cached_property
    def chances(self) -> Floats:
        return self.distribution.evaluate(self.nodes[:, None] - self.levels)[1]

    def product(self, z: Complexes) -> tuple[Complexes, Complexes]:
        """The product of 1 + p (z - 1) over values, and the sum of density / (1 + p (z - 1)) over those marked."""
        close = float(np.abs(z - 1.0).max())
        return self._by_powers(z, close) if close <= _CLOSE else self._by_factors(z)

    def _by_powers(self, z: Complexes, close: float) -> tuple[Complexes, Complexes]:
        """By power series in u = z - 1: log(1 + p u) for p up to 1/2, and log z + log(1 - (1-p) u / z) for others."""
        terms = int(np.ceil(log(1e-14 / max(1.0, self.counts.sum())) / log(close / 2.0))) + 1
        _, above, density = self.distribution.evaluate(self.nodes[:, None] - self.levels)
        weights, rare, marked = density * self.marked, above <= 0.5, slice(self.marked_from, None)
        logs = np.asarray(((~rare) @ self.counts)[:, None] * np.log(z), np.complex128)
        rates = np.zeros_like(logs)
        for chosen, small, unit, scale in (
            (rare, above, z - 1.0, np.ones_like(z)),
            (~rare, 1.0 - above, (1.0 - z) / z, 1.0 / z),
        ):
            base, power, turn = np.where(chosen, small, 0.0), chosen.astype(np.float64), np.ones_like(z)
            for j in range(terms):
                rates += (weights * power)[:, marked].sum(axis=1)[:, None] * turn * scale
                power, turn = power * base, turn * -unit
                logs -= (power @ self.counts)[:, None] * turn / (j + 1.0)
        return np.exp(logs), rates

    def _by_factors(self, z: Complexes) -> tuple[Complexes, Complexes]:
        shape = len(self.nodes), len(z)
        function, rates = np.empty(shape, np.complex128), np.zeros(shape, np.complex128)
        single, marked = self.counts == 1.0, slice(self.marked_from, None)
        rows = max(1, _CELLS // max(1, len(self.levels) * len(z)))
        for row in range(0, len(self.nodes), rows):
            part = slice(row, row + rows)
            _, above, density = self.distribution.evaluate(self.nodes[part, None] - self.levels)
            factors = 1.0 + above[:, :, None] * (z - 1.0)
            function[part] = factors[:, single].prod(axis=1)
            if not single.all():
                function[part] *= np.exp((np.log(factors[:, ~single]) * self.counts[~single, None]).sum(axis=1))
            rates[part] = ((density * self.marked)[:, marked, None] / factors[:, marked]).sum(axis=1)
        return function, rates


@dataclass(frozen=True, eq=False)
class FarLevels:
    """What is far below some nodes: terms of power series, of all and of the densities of those marked."""

    distribution: Distribution
    terms: Floats
    marked_terms: Floats

    @property
    def mean(self) -> Floats:
        return self.terms @ tail_series(self.distribution)

    def product(self, z: Complexes) -> tuple[Complexes, Complexes]:
        """What `NearLevels.product` is, for these."""
        logs = log_tail_series(self.distribution, z)
        # A density is -dp/dw, and d/dw of x^a is -a x^a.
        with np.errstate(invalid="ignore", divide="ignore"):
            slopes = np.where(z == 1.0, tail_series(self.distribution)[:, None], logs / (z - 1.0))
        # Such small matrices are multiplied here, not by threads that wait for each other.
        return np.exp(np.einsum("na,az->nz", self.terms, logs)), np.einsum("na,az->nz", self.marked_terms, slopes)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The generating function of a number of coins, at some angles for each node.

    Attributes
    ----------
    angles, size
        Some of the angles of a circle of so many points; beyond them there is nothing.
    function
        The generating function: a row for each node.
    rates
        The density of one marked value being met at the node, over the function of the others, likewise.
    start
        The least number that is possible at all, for each node.
    certain
        How many values are above every node, and are not in the function.
    """

    angles: Floats
    size: int
    function: Complexes
    rates: Complexes
    start: NDArray[np.int64]
    certain: int

    @classmethod
    def of(cls, near: NearLevels, far: FarLevels | None, certain: int, fineness: Fineness) -> Spectrum:
        """The spectrum of what is near and what is far together, if anything is."""
        others = np.zeros(len(near.nodes)) if far is None else far.mean
        mean = near.chances @ near.counts + others
        variance = (near.chances * (1.0 - near.chances)) @ near.counts + others
        # No more can be above than there are.
        most = inf if far is not None else float(near.counts.sum()) / 2.0
        size = 2 * int(min(fineness.sigmas * np.sqrt(float(variance.max())) + fineness.more, most + 1.0)) + 1
        angles = 2.0 * np.pi * np.arange(size // 2 + 1) / size
        least = max(0.9 * float(variance.min()), 1e-9)
        angles = angles[angles <= np.arccos(max(1.0 - fineness.spread / least, -1.0))]
        z = np.exp(1j * angles)
        function, rates = near.product(z)
        if far is not None:
            more, more_rates = far.product(z)
            function, rates = function * more, rates + more_rates
        start = np.maximum(np.rint(mean).astype(np.int64) - size // 2, 0)
        if far is None:
            start = np.minimum(start, max(int(near.counts.sum()) + 1 - size, 0))
        return cls(angles, size, function, rates, start, certain)

    def chance_upto(self, count: int) -> Floats:
        """The chance that at most so many values are above."""
        return np.clip(self._sum_upto(self.function, count - self.certain), 0.0, 1.0)

    def rate_upto(self, count: int) -> Floats:
        """The density of a marked value being met with at most so many others above."""
        return np.maximum(self._sum_upto(self.function * self.rates, count - self.certain), 0.0)

    def rate_at(self, count: int) -> Floats:
        """The density of a marked value being met with exactly so many others above."""
        return self.rate_upto(count) - self.rate_upto(count - 1)

    def _sum_upto(self, transform: Complexes, count: int) -> Floats:
        """The sum of the coefficients up to a count, each node on its own piece of the whole numbers."""
        terms = np.clip(count - self.start + 1, 0, self.size)
        # sum of exp(-i n angle) over n from start to start + terms - 1
        angle = np.where(self.angles == 0.0, 1.0, self.angles)
        turns = np.exp(-1j * self.start[:, None] * angle)
        partial = turns * (1.0 - np.exp(-1j * terms[:, None] * angle)) / (1.0 - np.exp(-1j * angle))
        kernel = np.where(self.angles == 0.0, terms[:, None], partial)
        fold = np.where(self.angles > 0.0, 2.0, 1.0) / self.size
        return np.asarray((transform * kernel).real @ fold, np.float64)


@lru_cache(maxsize=64)
def tail_series(distribution: Distribution) -> Floats:
    """The coefficients of 1 - F(w) as a series in exp(-w)."""
    return np.asarray(_series(_tail_on_circle(distribution)[:, None])[:, 0].real, np.float64)


def log_tail_series(distribution: Distribution, z: Complexes) -> Complexes:
    """The coefficients of log(1 + (1 - F(w)) (z - 1)) as a series in exp(-w), a column for each z."""
    return _series(np.log(1.0 + _tail_on_circle(distribution)[:, None] * (z - 1.0)))


def _tail_on_circle(distribution: Distribution) -> Complexes:
    x = _RADIUS * np.exp(2j * np.pi * np.arange(_CIRCLE) / _CIRCLE)
    return np.asarray(1.0 - distribution.upper.below(x, np.ones(_CIRCLE)), np.complex128)


def _series(values: Complexes) -> Complexes:
    """The first coefficients of functions that are given on a circle."""
    coefficients = np.fft.fft(values, axis=0)[: TERMS + 1] / _CIRCLE
    return np.asarray(coefficients / _RADIUS ** np.arange(TERMS + 1)[:, None], np.complex128)


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
