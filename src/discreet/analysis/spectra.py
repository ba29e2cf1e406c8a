"""The law of a number of coins, at many nodes at once, read off its generating function on part of a circle."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from discreet.exact.arrays import Floats
from discreet.noise import Distribution

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
