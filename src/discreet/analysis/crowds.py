"""Distribution of the number of noisy values above a threshold w, for many w at once.

The number is Poisson binomial: a sum of independent coins with the probabilities p_i = 1 - F(w - v_i). Its generating
function, the product of 1 + p_i (z - 1), is evaluated at few points of the unit circle: the number stays near its mean,
so a short circle suffices, and the function vanishes away from z = 1 where the variance is large. Values far below w
enter through power sums, because log(1 + p (z - 1)) is a power series in exp(v - w) with coefficients in z alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import exp, inf, log

import numpy as np
from numpy.typing import NDArray

from discreet.exact.arrays import Floats, Mask
from discreet.mechanisms.noise import Distribution

Complexes = NDArray[np.complex128]

_NEAR = 3.0
"""Values further than this below w enter through the power series."""

_RADIUS, _CIRCLE, _TERMS = 1.0 / 6.0, 64, 20
"""Circle and points that give the series in exp(-w). From w = `_NEAR` on it converges like 0.3^n: 20 terms suffice."""

_FEW = 200
"""Below this many levels all are evaluated individually: the series would not save time."""

_CLOSE = 0.8
"""Up to this largest |z - 1| the product is computed by power series in z - 1, which then converge quickly."""

_CELLS = 1 << 19
"""The number of array elements processed at once, to bound memory."""

_TILTS = np.array([0.02, 0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 16.0])
"""Exponents tried in a Chernoff bound; the best of a coarse grid is close to the optimum."""

_FAR_BELOW = 300.0
"""Sums of exp(value - centre) are exact enough down to this distance below the centre; exp(-700) underflows."""


@dataclass(frozen=True)
class Fineness:
    """Truncations of a distribution.

    Attributes
    ----------
    depth
        A value further than this (plus the log of the number of values) from w is certainly above or below it.
    sigmas, more
        The number is within this many standard deviations, plus `more`, of its mean.
    spread
        The part of a generating function below exp(-spread) of its largest value is left out.
    """

    depth: float
    sigmas: float
    more: float
    spread: float


FINE = Fineness(depth=45.0, sigmas=9.0, more=20.0, spread=32.0)
ROUGH = Fineness(depth=16.0, sigmas=5.0, more=10.0, spread=16.0)
"""Omits less than 1e-5: by Bernstein's inequality the number leaves its range with probability at most 1/200,000."""


@dataclass(frozen=True, eq=False)
class Crowd:
    """Values before noise, run-length encoded: the distinct values (levels) in descending order and their counts.

    Attributes
    ----------
    distribution
        The noise.
    levels, counts
        The distinct values, and the number of values at each.
    marked
        The number of marked values at each level.
    centre
        A value near which the number of values above w is uncertain.
    fineness
        The truncations.
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
        """Encode descending values, of which about `rank` are above the w of interest; without marks all are marked."""
        starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
        counts = np.diff(np.append(starts, len(values))).astype(np.float64)
        marked = counts if marks is None else np.add.reduceat(marks.astype(np.float64), starts)
        centre = float(values[min(rank, len(values) - 1)])
        return cls(distribution, values[starts], counts, marked, centre, fineness)

    def spectrum(self, nodes: Floats) -> Spectrum:
        """Return the distribution of the number of values above each node; nodes ascend."""
        low, high = float(nodes[0]), float(nodes[-1])
        edge, has_series = low - _NEAR, len(self.levels) >= _FEW
        certain = self._first_below(high + self._depth)
        near = self._first_below(edge if has_series else edge - self._depth)
        part = slice(certain, near)
        inside = NearLevels(
            self.distribution, nodes, self.levels[part], self.counts[part], self.marked[part],
            max(self.marked_from - certain, 0),
        )  # fmt: skip
        far = None
        if has_series:
            part = slice(near, self._first_below(edge - self._depth))
            ratio, power = np.exp(self.levels[part] - edge), self.counts[part].copy()
            sums, marked = np.zeros(_TERMS + 1), np.zeros(_TERMS + 1)
            all_marked = self.marked_from <= near and self._marks_all_from_there
            share = None if all_marked else self.marked[part] / self.counts[part]
            for a in range(1, _TERMS + 1):
                power *= ratio
                sums[a] = power.sum()
                marked[a] = sums[a] if share is None else power @ share
            powers = np.exp(edge - nodes)[:, None] ** np.arange(_TERMS + 1)
            far = FarLevels(self.distribution, powers * sums, powers * marked * np.arange(_TERMS + 1))
        return Spectrum.of(inside, far, int(self.counts[:certain].sum()), self.fineness)

    def log_few(self, w: float, most: int) -> float:
        """Return Chernoff's upper bound on log Pr[at most `most` values above w]; it increases with w."""
        certain, chances, counts, far = self._around(w)
        exponent = counts @ np.log1p(chances[:, None] * np.expm1(-_TILTS)) + 0.5 * far * np.expm1(-_TILTS)
        return min(0.0, float((exponent - _TILTS * (certain - most)).min()))

    def log_many(self, w: float, least: int) -> float:
        """Return Chernoff's upper bound on log Pr[at least `least` values above w]; it decreases with w."""
        certain, chances, counts, far = self._around(w)
        exponent = counts @ np.log1p(chances[:, None] * np.expm1(_TILTS)) + 2.0 * far * np.expm1(_TILTS)
        return min(0.0, float((exponent + _TILTS * (certain - least)).min()))

    def log_marked(self, w: float) -> float:
        """Return an upper bound on the log expected number of marked values above w; it decreases with w."""
        near = max(self._first_below(w - _NEAR), self.marked_from)
        part = slice(self.marked_from, near)
        _, above, _ = self.distribution.evaluate(w - self.levels[part])
        expected = float(above @ self.marked[part]) + 2.0 * self._slope * self._tail_sum(near, w)
        return log(expected) if expected > 0.0 else -np.inf

    def expect_marked(self, w: float) -> float:
        """Return the expected number of marked values above w."""
        _, above, _ = self.distribution.evaluate(w - self.levels[self.marked_from :])
        return float(above @ self.marked[self.marked_from :])

    @cached_property
    def marked_from(self) -> int:
        """Return the place of the first level with a marked value."""
        return int(np.argmax(self.marked > 0.0)) if self.marked.any() else len(self.levels)

    @cached_property
    def _marks_all_from_there(self) -> bool:
        part = slice(self.marked_from, None)
        return bool((self.marked[part] == self.counts[part]).all())

    @cached_property
    def _depth(self) -> float:
        return self.fineness.depth + log(self.counts.sum())

    def _around(self, w: float) -> tuple[float, Floats, Floats, float]:
        """Return the number certainly above w, chances and counts of levels near w, and the expected rest."""
        certain, near = self._first_below(w + self._depth), self._first_below(w - _NEAR)
        _, above, _ = self.distribution.evaluate(w - self.levels[certain:near])
        far = self._slope * self._tail_sum(near, w)
        return float(self.counts[:certain].sum()), above, self.counts[certain:near], far

    def _first_below(self, w: float) -> int:
        return int(np.searchsorted(-self.levels, -w, side="right"))

    @cached_property
    def _tails(self) -> Floats:
        """Return the sums of exp(value - centre) from each level on."""
        weights = self.counts * np.exp(np.clip(self.levels - self.centre, -700.0, _FAR_BELOW))
        return np.append(np.cumsum(weights[::-1])[::-1], 0.0)

    def _tail_sum(self, place: int, w: float) -> float:
        """Return the sum of exp(value - w) from a level on that is below w."""
        if self.centre - w > _FAR_BELOW:
            return float(self.counts[place:] @ np.exp(self.levels[place:] - w))
        return float(self._tails[place]) * exp(self.centre - w)

    @cached_property
    def _slope(self) -> float:
        """Return the first coefficient: 1 - F(w) is about this times exp(-w)."""
        return float(_tail_series(self.distribution)[1])


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The generating function of the number of values above each node, on part of the unit circle.

    Attributes
    ----------
    angles, size
        The angles at which the function does not vanish, of a circle of `size` points.
    function
        The generating function, one row per node.
    rates
        The density of a marked value at the node, over the function of the other values; one row per node.
    start
        The least possible number, per node.
    certain
        The number of values above every node, which the function leaves out.
    """

    angles: Floats
    size: int
    function: Complexes
    rates: Complexes
    start: NDArray[np.int64]
    certain: int

    @classmethod
    def of(cls, near: NearLevels, far: FarLevels | None, certain: int, fineness: Fineness) -> Spectrum:
        """Return the spectrum of near and far levels together."""
        others = np.zeros(len(near.nodes)) if far is None else far.mean
        mean = near.chances @ near.counts + others
        variance = (near.chances * (1.0 - near.chances)) @ near.counts + others
        # The number cannot exceed the number of values.
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
        """Return the probability that at most `count` values are above each node."""
        return np.clip(self._sum_upto(self.function, count - self.certain), 0.0, 1.0)

    def rate_upto(self, count: int) -> Floats:
        """Return the density of a marked value at each node with at most `count` others above."""
        return np.maximum(self._sum_upto(self.function * self.rates, count - self.certain), 0.0)

    def rate_at(self, count: int) -> Floats:
        """Return the density of a marked value at each node with exactly `count` others above."""
        return self.rate_upto(count) - self.rate_upto(count - 1)

    def _sum_upto(self, transform: Complexes, count: int) -> Floats:
        """Return the sum of the coefficients up to `count`, in a window of `size` numbers from each node's start."""
        terms = np.clip(count - self.start + 1, 0, self.size)
        # sum of exp(-i n angle) over n from start to start + terms - 1
        angle = np.where(self.angles == 0.0, 1.0, self.angles)
        turns = np.exp(-1j * self.start[:, None] * angle)
        partial = turns * (1.0 - np.exp(-1j * terms[:, None] * angle)) / (1.0 - np.exp(-1j * angle))
        kernel = np.where(self.angles == 0.0, terms[:, None], partial)
        fold = np.where(self.angles > 0.0, 2.0, 1.0) / self.size
        return np.asarray((transform * kernel).real @ fold, np.float64)


@dataclass(frozen=True, eq=False)
class NearLevels:
    """The levels that are evaluated individually, at some nodes."""

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
        """Return the product of 1 + p (z - 1) over values, and the sum of density / (1 + p (z - 1)) over the marked."""
        close = float(np.abs(z - 1.0).max())
        return self._by_powers(z, close) if close <= _CLOSE else self._by_factors(z)

    def _by_powers(self, z: Complexes, close: float) -> tuple[Complexes, Complexes]:
        """Use power series in u = z - 1: log(1 + p u) for p up to 1/2, log z + log(1 - (1-p) u / z) for larger p."""
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
        """Multiply the factors of all levels, a few nodes at a time."""
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
    """Power-series terms of all levels far below some nodes, and of the densities of the marked ones."""

    distribution: Distribution
    terms: Floats
    marked_terms: Floats

    @property
    def mean(self) -> Floats:
        return self.terms @ _tail_series(self.distribution)

    def product(self, z: Complexes) -> tuple[Complexes, Complexes]:
        """Return the same as `NearLevels.product`."""
        # The coefficients of log(1 + (1 - F(w)) (z - 1)), one column for each z.
        logs = _series(np.log(1.0 + _tail_on_circle(self.distribution)[:, None] * (z - 1.0)))
        # A density is -dp/dw, and d/dw of x^a is -a x^a.
        with np.errstate(invalid="ignore", divide="ignore"):
            slopes = np.where(z == 1.0, _tail_series(self.distribution)[:, None], logs / (z - 1.0))
        # einsum, not @: for such small matrices BLAS threads wait for each other longer than they compute.
        return np.exp(np.einsum("na,az->nz", self.terms, logs)), np.einsum("na,az->nz", self.marked_terms, slopes)


@lru_cache(maxsize=64)
def _tail_series(distribution: Distribution) -> Floats:
    """Return the coefficients of 1 - F(w) as a series in exp(-w)."""
    return np.asarray(_series(_tail_on_circle(distribution)[:, None])[:, 0].real, np.float64)


def _tail_on_circle(distribution: Distribution) -> Complexes:
    """Return 1 - F(w) at points x = exp(-w) of a circle around 0."""
    x = _RADIUS * np.exp(2j * np.pi * np.arange(_CIRCLE) / _CIRCLE)
    return np.asarray(1.0 - distribution.upper.below(x, np.ones(_CIRCLE)), np.complex128)


def _series(values: Complexes) -> Complexes:
    """Return the first Taylor coefficients of functions given on the circle, one column each."""
    coefficients = np.fft.fft(values, axis=0)[: _TERMS + 1] / _CIRCLE
    return np.asarray(coefficients / _RADIUS ** np.arange(_TERMS + 1)[:, None], np.complex128)
