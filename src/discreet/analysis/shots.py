"""How likely one-shot is to release one set, by integration over the value of the best item that is left out.

The k largest of all noisy values hold ranks 0..h-1 and none from rank t on when, for the largest value w that is left
out: every rank below h is above w, every rank from t on is below, and of those between just so many are below that k
are above. Given w these are independent events, and the count between is a sum of independent coins, whose law is read
off its generating function on a circle through the saddle point. So it is one integral, over few w: outside a narrow
window the number of values above w is not k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from discreet.exact.arrays import Floats
from discreet.noise import Distribution

_DEPTH = 42.0
"""What has a probability below exp(-42) is left out."""

_NEAR = 3.0
_TERMS = 13
"""From 3 on, log F(w) is a series in exp(-w) of which 13 terms are as good as all."""

_PANELS, _MOST_PANELS = 6, 500
_MANY = 200
_GRID, _LEVELS = 33, 3


@dataclass(frozen=True, eq=False)
class Chance:
    """A probability, and what it may be off by.

    Attributes
    ----------
    value
        The probability.
    error
        What it may be off by.
    """

    value: float
    error: float


@dataclass(frozen=True, eq=False)
class Shots:
    """Values before noise, in descending order, of which the k largest after noise are released."""

    distribution: Distribution
    values: Floats
    k: int
    goal: float = 2e-10

    def _integrate(self, h: int, t: int, low: float, high: float) -> Chance:
        """The integral over a window, where there is one, with as many panels as the goal needs."""
        if low >= high:
            return Chance(0.0, self.goal)
        panels = max(_PANELS, int(np.ceil(2.0 * (high - low))))
        while True:
            fine, coarse = self._integrals(h, t, self._rules(low, high, panels))
            if abs(fine - coarse) < self.goal or panels > _MOST_PANELS:
                return Chance(float(np.clip(fine, 0.0, 1.0)), 1e-12 + 2.0 * abs(fine - coarse))
            panels *= 2

    def first(self) -> Chance:
        """The chance that just the first k are released; for this alone, each part may have an order of its own."""
        low, high = self._narrow_window(self.k, self.k, *self._window())
        return self._integrate(self.k, self.k, low, high)

    def _window(self) -> tuple[float, float]:
        """Where the best value left out may be: no noise among d is above 45 + log d or below -45, or hardly ever."""
        edge = float(self.values[self.k])
        return edge - 45.0, edge + log(len(self.values)) + 45.0

    def _narrow_window(self, h: int, t: int, low: float, high: float) -> tuple[float, float]:
        """The part of a window in which the integral can be felt, found on a grid, and on finer ones in that.

        What is bounded there is log-concave, because all noises are: it rises and falls once.
        """
        enough = log(self.goal) - log(1e3 * (1.0 + high - low) * len(self.values))
        for _ in range(_LEVELS):
            grid = np.linspace(low, high, _GRID)
            bounds = self._log_bound(h, t, grid)
            felt = np.flatnonzero(bounds >= min(enough, float(bounds.max())))
            low, high = float(grid[max(felt[0] - 1, 0)]), float(grid[min(felt[-1] + 1, _GRID - 1)])
        return (low, high) if bounds.max() > enough else (low, low)

    def _log_bound(self, h: int, t: int, nodes: Floats) -> Floats:
        """A bound on the log chance of all that is wanted at some w: Chernoff's for the count between."""
        _, above, _ = self.distribution.evaluate(nodes[:, None] - self.values[:h])
        with np.errstate(divide="ignore"):
            bound = np.log(above).sum(axis=1) + self._outside(nodes, self.values[t:])[0]
            below, above, _ = self.distribution.evaluate(nodes[:, None] - self.values[h:t])
            tilt = _saddle(below, above, t - self.k)
            count = np.log(above + below * tilt[:, None]).sum(axis=1) - (t - self.k) * np.log(tilt)
        return np.asarray(bound + count, np.float64)

    def _integrals(self, h: int, t: int, rules: Sequence[tuple[Floats, Floats]]) -> list[float]:
        """The integral by each of some rules, whose nodes are evaluated together."""
        nodes = np.concatenate([nodes for nodes, _ in rules])
        order = np.argsort(nodes)
        values = np.empty(len(nodes))
        values[order] = self._integrand(h, t, nodes[order])
        ends = np.cumsum([len(nodes) for nodes, _ in rules])[:-1]
        return [float(weights @ part) for (_, weights), part in zip(rules, np.split(values, ends), strict=True)]

    def _integrand(self, h: int, t: int, nodes: Floats) -> Floats:
        inside, between, outside = self.values[:h], self.values[h:t], self.values[t:]
        _, above, _ = self.distribution.evaluate(nodes[:, None] - inside)
        with np.errstate(divide="ignore"):
            log_inside = np.log(above).sum(axis=1)
        log_outside, hazard = self._outside(nodes, outside)
        below, above, density = self.distribution.evaluate(nodes[:, None] - between)
        exactly, marked = _chance_of_count(below, above, density, t - self.k)
        return np.asarray(np.exp(log_inside + log_outside) * (hazard * exactly + marked), np.float64)

    def _rules(self, low: float, high: float, panels: int) -> list[tuple[Floats, Floats]]:
        """Nodes and weights of a finer and a coarser rule of Gauss between the points where a formula changes."""
        kinks = np.unique(self.values) if self.distribution.has_seam else np.empty(0)
        return gauss_rules(low, high, panels, kinks[(kinks > low) & (kinks < high)])

    def _outside(self, nodes: Floats, values: Floats) -> tuple[Floats, Floats]:
        """The log chance that all are below, and the rate at which one of them is met on the way down.

        For what is far below, both are power series in exp(-w), whose coefficients are sums over all of it.
        """
        edge = float(nodes[0]) - _NEAR
        count = int(np.searchsorted(-values, -edge))
        log_below, hazard = _all_below(self.distribution, nodes, values[:count])
        # What is deep below is below.
        far = np.exp(values[count : int(np.searchsorted(-values, -(edge - _DEPTH)))] - edge)
        x = np.exp(edge - nodes)
        for power, coefficient in enumerate(self.distribution.log_series[1 : _TERMS + 1].tolist(), start=1):
            term = coefficient * float((far**power).sum()) * x**power
            log_below += term
            hazard -= power * term
        return log_below, hazard


def gauss_rules(low: float, high: float, panels: int, kinks: Floats) -> list[tuple[Floats, Floats]]:
    """Nodes and weights of a finer and a coarser rule of Gauss over some panels, cut at kinks."""
    cuts = np.unique(np.concatenate([np.linspace(low, high, panels + 1), kinks]))
    half, middle = 0.5 * np.diff(cuts), 0.5 * (cuts[1:] + cuts[:-1])
    # Between so many points little happens.
    orders = (7, 5) if len(cuts) < _MANY + panels else (4, 3)
    rules = [np.polynomial.legendre.leggauss(order) for order in orders]
    return [
        ((middle[:, None] + half[:, None] * points).ravel(), (half[:, None] * weights).ravel())
        for points, weights in rules
    ]


def _all_below(distribution: Distribution, nodes: Floats, values: Floats) -> tuple[Floats, Floats]:
    below, above, density = distribution.evaluate(nodes[:, None] - values)
    with np.errstate(divide="ignore", invalid="ignore"):
        hazard = np.where(below > 0.0, density / below, 0.0)
    return _log_of(below, above).sum(axis=1), hazard.sum(axis=1)


def _log_of(below: Floats, above: Floats) -> Floats:
    """The logarithm of F, from whichever of F and 1 - F is the smaller."""
    with np.errstate(divide="ignore"):
        return np.where(below > 0.5, np.log1p(-above), np.log(below))


def _chance_of_count(below: Floats, above: Floats, density: Floats, count: int) -> tuple[Floats, Floats]:
    """The chance that exactly `count` are below; and the density of one being met when `count` - 1 others are."""
    nodes, coins = below.shape
    if coins == 0:
        return np.ones(nodes), np.zeros(nodes)
    if count == 0:
        return above.prod(axis=1), np.zeros(nodes)
    tilt = _saddle(below, above, count)[:, None]
    scaled = above + below * tilt
    share = below * tilt / scaled
    variance = float((share * (1.0 - share)).sum(axis=1).max())
    size = 2 * min(int(9.0 * np.sqrt(variance)) + 20, (coins + 1) // 2 + 1) + 1
    angles = 2.0 * np.pi * np.arange(size // 2 + 1) / size
    angles = angles[angles <= _largest_angle(float((share * (1.0 - share)).sum(axis=1).min()))]
    turn = np.exp(1j * angles)
    product = np.ones((nodes, len(angles)), np.complex128)
    rates = np.zeros((nodes, len(angles)), np.complex128)
    for coin in range(coins):
        factor = 1.0 + share[:, coin, None] * (turn - 1.0)
        product *= factor
        rates += (density[:, coin] / scaled[:, coin])[:, None] / factor
    fold = np.where(angles > 0.0, 2.0, 1.0) / size
    with np.errstate(divide="ignore"):
        log_scale = np.log(scaled).sum(axis=1) - count * np.log(tilt[:, 0])
    exactly = (product * np.exp(-1j * count * angles)).real @ fold
    marked = (product * rates * np.exp(-1j * (count - 1) * angles)).real @ fold
    return np.exp(log_scale) * np.maximum(exactly, 0.0), np.exp(log_scale) * tilt[:, 0] * np.maximum(marked, 0.0)


def _largest_angle(variance: float) -> float:
    """The angle beyond which the generating function of such a sum is below exp(-42) of what it is at zero.

    Of one coin with the variance v it is sqrt(1 - 2 v (1 - cos(angle))) <= exp(-v (1 - cos(angle))).
    """
    return float(np.arccos(max(1.0 - _DEPTH / max(variance, 1e-9), -1.0)))


def _saddle(below: Floats, above: Floats, count: int) -> Floats:
    """The weight on "below" with which `count` are expected to be, by bisection on its logarithm."""
    low, high = np.full(len(below), -80.0), np.full(len(below), 80.0)
    for _ in range(24):
        middle = 0.5 * (low + high)
        weighed = below * np.exp(middle)[:, None]
        few = (weighed / (above + weighed)).sum(axis=1) < count
        low, high = np.where(few, middle, low), np.where(few, high, middle)
    return np.asarray(np.exp(0.5 * (low + high)), np.float64)
