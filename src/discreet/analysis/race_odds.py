"""How good the k largest of many noisy values are: the chance of a region, and how many of them are right.

They hold ranks 0..h-1 and none from rank t on when, for the largest value w that is left out: every rank below h is
above w, every rank from t on is below, and of those between just so many are above that k are. Given w these are
independent, and w is one of those between or one of those from t on: an integral over w.

Of recall: the best `right` values are right and all others wrong. A wrong one at w is released when at most k-1 others
are above w, so that the expected number of wrong ones is the integral of the density of meeting one with at most k-1
others above. More than b wrong ones are released when the (b+1)-th largest of the wrong is above all but fewer than
k-b of the right: an integral over where that one is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from discreet.analysis.crowds import FINE, ROUGH, Crowd
from discreet.analysis.goals import Hits, Wanted
from discreet.exact.arrays import Floats, Mask, Ranks
from discreet.mechanisms.noise import Distribution

# How likely one-shot is to release one set, by integration over the value of the best item that is left out.
#
# The k largest of all noisy values hold ranks 0..h-1 and none from rank t on when, for the largest value w that is left
# out: every rank below h is above w, every rank from t on is below, and of those between just so many are below that k
# are above. Given w these are independent events, and the count between is a sum of independent coins, whose law is
# read
# off its generating function on a circle through the saddle point. So it is one integral, over few w: outside a narrow
# window the number of values above w is not k.

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


_BATCH, _BATCH_CELLS = 64, 1 << 14
_PANELS, _MOST_PANELS = 6, 500
_REACH = 60.0
_HALVINGS = 22
_ROUNDING = 1e-11
_EXACT, _MANY_JUMPS, _MANY_KINKS = 1e-6, 300, 12
_ROUGH, _LEFT_OUT, _LEFT_OUT_ON_AVERAGE = 5e-5, 5e-4, 3e-5
"""From which goal on a rough law is enough, and what a chance, or an average over k items, may then be off by beside
what is seen."""


@dataclass(frozen=True, eq=False)
class RaceOdds:
    """Values before noise in descending order, of which the k largest after noise are released.

    Attributes
    ----------
    distribution
        The noise.
    values, k
        The values, and how many are released.
    goal
        What the chances may be off by.
    standings
        The rank by which each value is judged, where that is another than its place among the values.
    """

    distribution: Distribution
    values: Floats
    k: int
    goal: float = 1e-9
    standings: Ranks | None = None

    def rate(self, wanted: Wanted) -> Chance:
        """The chance of what is wanted, or the expected share that is right."""
        found = self._hits(wanted) if isinstance(wanted, Hits) else self._region(*wanted)
        if not self._is_rough or not found.error:
            return found
        is_average = isinstance(wanted, Hits) and wanted.least is None
        return Chance(found.value, found.error + (_LEFT_OUT_ON_AVERAGE if is_average else _LEFT_OUT))

    @property
    def _is_rough(self) -> bool:
        return self.goal >= _ROUGH

    def _crowd(self, values: Floats, rank: int, marks: Mask | None = None) -> Crowd:
        return Crowd.of(self.distribution, values, rank, marks, ROUGH if self._is_rough else FINE)

    def _between(self, first: int, end: int) -> Floats:
        """The values of those that are judged by these ranks, in descending order."""
        if self.standings is None:
            return self.values[first:end]
        return self.values[(first <= self.standings) & (self.standings < end)]

    def _region(self, h: int, t: int) -> Chance:
        """The chance that all ranks below h are released and none from t on, for h <= k <= t."""
        if self.k == len(self.values) or (h == 0 and t == len(self.values)):
            return Chance(1.0, 0.0)
        parts = (0, h, h - 1), (h, t, self.k - h), (t, len(self.values), 0)
        inside, between, outside = (
            self._crowd(self._between(first, end), rank) if first < end else None for first, end, rank in parts
        )
        chosen = self.k - h

        def density(w: Floats) -> Floats:
            middle = None if between is None else between.spectrum(w)
            exactly = np.ones(len(w)) if middle is None else middle.chance_upto(chosen) - middle.chance_upto(chosen - 1)
            last_between = np.zeros(len(w)) if middle is None else middle.rate_at(chosen)
            above = 1.0 if inside is None else 1.0 - inside.spectrum(w).chance_upto(h - 1)
            if outside is None:
                return np.asarray(above * last_between, np.float64)
            lower = outside.spectrum(w)
            return np.asarray(above * (lower.rate_upto(0) * exactly + lower.chance_upto(0) * last_between), np.float64)

        few = [(between, chosen), (outside, 0)]
        many = [(inside, h), (between, chosen)]
        low = self._rise(lambda w: min(crowd.log_few(w, n) for crowd, n in few if crowd is not None))
        high = self._fall(lambda w: min(crowd.log_many(w, n) for crowd, n in many if crowd is not None))
        found = self._integrate(density, low, high)
        return Chance(min(found.value, 1.0), found.error + _ROUNDING)

    def _hits(self, wanted: Hits) -> Chance:
        wrong = len(self.values) - wanted.right
        if wrong == 0:
            return Chance(1.0, 0.0)
        if wanted.least is None:
            missed = self._expect_wrong(wanted.right)
            return Chance(1.0 - min(missed.value / self.k, 1.0), missed.error / self.k + _ROUNDING)
        most = self.k - wanted.least
        if most >= wrong:
            return Chance(1.0, 0.0)
        missed = self._chance_of_more_wrong(wanted.right, most)
        return Chance(1.0 - min(missed.value, 1.0), missed.error + _ROUNDING)

    def _expect_wrong(self, right: int) -> Chance:
        ranks = np.arange(len(self.values)) if self.standings is None else self.standings
        everyone = self._crowd(self.values, self.k, ranks >= right)
        low = self._rise(lambda w: everyone.log_few(w, self.k))
        high = self._fall(lambda w: min(everyone.log_many(w, self.k), everyone.log_marked(w)))
        # Where no k are above any more, a wrong one that is met is released.
        beyond = everyone.expect_marked(high)
        inside = self._integrate(lambda w: everyone.spectrum(w).rate_upto(self.k - 1), low, high, self.k)
        return Chance(inside.value + beyond, inside.error)

    def _chance_of_more_wrong(self, right: int, most: int) -> Chance:
        enough = self.k - most
        good = self._crowd(self._between(0, right), enough - 1)
        wrong = self._crowd(self._between(right, len(self.values)), most)
        low = self._rise(lambda w: min(good.log_few(w, enough - 1), wrong.log_few(w, most)))
        high = self._fall(lambda w: min(wrong.log_many(w, most + 1), good.log_many(w, enough)))
        beyond = 1.0 - float(wrong.spectrum(np.array([high])).chance_upto(most)[0])
        inside = self._integrate(
            lambda w: wrong.spectrum(w).rate_at(most) * good.spectrum(w).chance_upto(enough - 1), low, high
        )
        return Chance(inside.value + beyond, inside.error)

    @property
    def _tiny(self) -> float:
        return log(1e-3 * self.goal / (1.0 + 2.0 * _REACH + self.k))

    @property
    def _range(self) -> tuple[float, float]:
        """No noise among all is beyond it, or hardly ever."""
        reach = _REACH + log(len(self.values))
        return float(self.values[-1]) - reach, float(self.values[0]) + reach

    def _rise(self, log_bound: Callable[[float], float]) -> float:
        """The largest w found below which a bound that grows with w is tiny."""
        return _halve(lambda w: log_bound(w) > self._tiny, *self._range)[0]

    def _fall(self, log_bound: Callable[[float], float]) -> float:
        """The least w found above which a bound that falls with w is tiny."""
        return _halve(lambda w: log_bound(w) <= self._tiny, *self._range)[1]

    def _integrate(self, density: Callable[[Floats], Floats], low: float, high: float, unit: int = 1) -> Chance:
        """The integral of a density; the goal is for it in such units."""
        goal = unit * self.goal
        if low >= high:
            return Chance(0.0, goal)
        panels, kinks = max(_PANELS, int(np.ceil((high - low) / 3.0))), self._kinks(low, high)
        while True:
            rules = gauss_rules(low, high, panels, kinks)
            fine, coarse = (float(weights @ self._in_batches(density, nodes)) for nodes, weights in rules)
            if abs(fine - coarse) < goal or panels > _MOST_PANELS:
                return Chance(max(fine, 0.0), 2.0 * abs(fine - coarse))
            panels *= 2

    def _in_batches(self, density: Callable[[Floats], Floats], nodes: Floats) -> Floats:
        """A density at ascending nodes, a few at a time: what is near to each other is alike."""
        size = max(_BATCH, _BATCH_CELLS // len(self.values))
        return np.concatenate([density(nodes[start : start + size]) for start in range(0, len(nodes), size)])

    def _kinks(self, low: float, high: float) -> Floats:
        """Where the formula of some value changes; of very many each matters little, and a rough goal needs none."""
        if not self.distribution.has_seam:
            return np.empty(0)
        first, last = (int(np.searchsorted(-self.values, -end)) for end in (high, low))
        kinks = np.unique(self.values[first:last])
        # Where noise has a least value, a density jumps there.
        many = _MANY_JUMPS if self.distribution.lower is None or not self._is_rough else _MANY_KINKS
        return kinks if len(kinks) < many or self.goal < _EXACT else np.empty(0)


def _halve(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """An interval around the first w at which something holds, which then holds on."""
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high
