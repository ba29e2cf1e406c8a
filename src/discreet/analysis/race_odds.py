"""Probabilities of goals for the k largest of independent noisy values, by integration over a threshold w.

Region (h, t): let w be the largest value left out. The k largest hold all ranks below h and none from t on if every
rank below h is above w, every rank from t on is below, and exactly k-h of those between are above. Given w these events
are independent, and w is the value of a rank between or from t on.

Recall: a wrong value at w is released if at most k-1 others are above w, so the expected number of wrong ones is the
integral of the density of meeting one with at most k-1 others above. More than b wrong ones are released if the
(b+1)-th largest wrong value is above all but fewer than k-b of the right ones: an integral over that value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import numpy as np

from discreet.analysis.crowds import FINE, ROUGH, Crowd
from discreet.analysis.goals import Hits, Wanted
from discreet.exact.arrays import Floats, Mask, Ranks
from discreet.mechanisms.noise import Distribution

_PANELS, _MOST_PANELS = 6, 500
"""The least number of panels of an integral, and the number beyond which they are no longer doubled."""

_MANY_CUTS = 200
"""With this many cuts besides the panels, the rules have orders 4 and 3 in place of 7 and 5: panels are short."""

_REACH = 60.0
"""No noise among d is further than this plus log d from its value, except with probability exp(-60)."""

_HALVINGS = 22
"""Bisection steps for the limits of an integral: a millionth of the range is precise enough."""

_BATCH, _BATCH_CELLS = 64, 1 << 14
"""The least number of nodes, and the number of array elements, evaluated at once: neighbouring nodes share work."""

_ROUNDING = 1e-11
"""Floating-point error of an integral."""

_EXACT, _MANY_JUMPS, _MANY_KINKS = 1e-6, 300, 12
"""Below this goal panels are cut at every kink; above, at fewer than this many jumps of a density, or kinks."""

_ROUGH, _LEFT_OUT, _LEFT_OUT_ON_AVERAGE = 5e-5, 5e-4, 3e-5
"""From this goal on `ROUGH` distributions suffice; they add this error to a probability, or to an average over k."""

_DEPTH = 42.0
"""Values further than this below all nodes are certainly below: the probability of the opposite is below exp(-42)."""

_NEAR, _TERMS = 3.0, 13
"""Values further than this below w enter through the series of log F in exp(-w), of which 13 terms suffice."""

_GRID, _LEVELS = 33, 3
"""Points of a grid that brackets the integrand, and the number of successively finer grids."""


@dataclass(frozen=True, eq=False)
class Chance:
    """A probability and its error.

    Attributes
    ----------
    value
        The probability.
    error
        An estimate of the largest error of the value.
    """

    value: float
    error: float


@dataclass(frozen=True, eq=False)
class RaceOdds:
    """Values before noise in descending order, of which the k largest after noise are released.

    Attributes
    ----------
    distribution
        The noise.
    values, k
        The values, and the number of released ones.
    goal
        The error wanted for a probability.
    standings
        The rank by which each value is judged, if that is not its place among the values.
    """

    distribution: Distribution
    values: Floats
    k: int
    goal: float = 1e-9
    standings: Ranks | None = None

    def rate(self, wanted: Wanted) -> Chance:
        """Return the probability of a region or of enough hits, or the expected share of hits."""
        is_average = False
        if not isinstance(wanted, Hits):
            found = self._region(*wanted)
        elif wanted.right == len(self.values):
            found = Chance(1.0, 0.0)
        elif wanted.least is None:
            is_average, missed = True, self._expect_wrong(wanted.right)
            found = Chance(1.0 - min(missed.value / self.k, 1.0), missed.error / self.k + _ROUNDING)
        elif (most := self.k - wanted.least) >= len(self.values) - wanted.right:
            found = Chance(1.0, 0.0)
        else:
            missed = self._chance_of_more_wrong(wanted.right, most)
            found = Chance(1.0 - min(missed.value, 1.0), missed.error + _ROUNDING)
        if not self._is_rough or not found.error:
            return found
        return Chance(found.value, found.error + (_LEFT_OUT_ON_AVERAGE if is_average else _LEFT_OUT))

    @property
    def _is_rough(self) -> bool:
        return self.goal >= _ROUGH

    def _region(self, h: int, t: int) -> Chance:
        """Return the probability that all ranks below h are released and none from t on, for h <= k <= t."""
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

    def _expect_wrong(self, right: int) -> Chance:
        """Return the expected number of released values that are not among the best `right`."""
        ranks = np.arange(len(self.values)) if self.standings is None else self.standings
        everyone = self._crowd(self.values, self.k, ranks >= right)
        low = self._rise(lambda w: everyone.log_few(w, self.k))
        high = self._fall(lambda w: min(everyone.log_many(w, self.k), everyone.log_marked(w)))
        # Above `high` fewer than k values remain, so every wrong one there is released.
        beyond = everyone.expect_marked(high)
        inside = self._integrate(lambda w: everyone.spectrum(w).rate_upto(self.k - 1), low, high, self.k)
        return Chance(inside.value + beyond, inside.error)

    def _chance_of_more_wrong(self, right: int, most: int) -> Chance:
        """Return the probability that more than `most` released values are not among the best `right`."""
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

    def _crowd(self, values: Floats, rank: int, marks: Mask | None = None) -> Crowd:
        return Crowd.of(self.distribution, values, rank, marks, ROUGH if self._is_rough else FINE)

    def _between(self, first: int, end: int) -> Floats:
        """Return the values judged by the ranks from `first` to before `end`, in descending order."""
        if self.standings is None:
            return self.values[first:end]
        return self.values[(first <= self.standings) & (self.standings < end)]

    @property
    def _log_tiny(self) -> float:
        """Return the log density below which the integrals are cut off."""
        return log(1e-3 * self.goal / (1.0 + 2.0 * _REACH + self.k))

    def _rise(self, log_bound: Callable[[float], float]) -> float:
        """Return the largest threshold found at which the (increasing) upper bound is still tiny."""
        return self._bisect(lambda w: log_bound(w) > self._log_tiny)[0]

    def _fall(self, log_bound: Callable[[float], float]) -> float:
        """Return the least threshold found at which the (decreasing) upper bound is tiny."""
        return self._bisect(lambda w: log_bound(w) <= self._log_tiny)[1]

    def _bisect(self, holds: Callable[[float], bool]) -> tuple[float, float]:
        """Return an interval around the first w at which a monotone condition holds."""
        reach = _REACH + log(len(self.values))
        low, high = float(self.values[-1]) - reach, float(self.values[0]) + reach
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if holds(middle) else (middle, high)
        return low, high

    def _integrate(self, density: Callable[[Floats], Floats], low: float, high: float, unit: int = 1) -> Chance:
        """Integrate a density to an error of `unit` times the goal, doubling the panels until two rules agree."""
        goal = unit * self.goal
        if low >= high:
            return Chance(0.0, goal)
        kinks = np.empty(0)
        if self.distribution.has_seam:
            first, last = (int(np.searchsorted(-self.values, -end)) for end in (high, low))
            found = np.unique(self.values[first:last])
            # Noise with a least value has a density that jumps there, which matters more than a kink.
            many = _MANY_JUMPS if self.distribution.lower is None or not self._is_rough else _MANY_KINKS
            kinks = found if len(found) < many or self.goal < _EXACT else kinks
        panels, batch = max(_PANELS, int(np.ceil((high - low) / 3.0))), max(_BATCH, _BATCH_CELLS // len(self.values))
        while True:
            fine, coarse = (
                float(weights @ np.concatenate([density(nodes[n : n + batch]) for n in range(0, len(nodes), batch)]))
                for nodes, weights in _gauss_rules(low, high, panels, kinks)
            )
            if abs(fine - coarse) < goal or panels > _MOST_PANELS:
                return Chance(max(fine, 0.0), 2.0 * abs(fine - coarse))
            panels *= 2


def compute_chance_of_first(distribution: Distribution, values: Floats, k: int, goal: float) -> Chance:
    """Return the probability that the first k values are the k largest after noise.

    The first k values and the others each descend, but the former need not be above the latter. The integral is that of
    the region (k, k), where no ranks lie between.
    """
    inside, outside = values[:k], values[k:]

    def evaluate(nodes: Floats) -> tuple[Floats, Floats]:
        """Return log Pr[all inside above, all outside below], and the hazard rate of the values outside."""
        _, above, _ = distribution.evaluate(nodes[:, None] - inside)
        edge = float(nodes[0]) - _NEAR
        count = int(np.searchsorted(-outside, -edge))
        below, over, density = distribution.evaluate(nodes[:, None] - outside[:count])
        with np.errstate(divide="ignore", invalid="ignore"):
            log_above = np.log(above).sum(axis=1)
            log_below = np.where(below > 0.5, np.log1p(-over), np.log(below)).sum(axis=1)
            hazard = np.where(below > 0.0, density / below, 0.0).sum(axis=1)
        # Far below, both are power series in exp(-w), whose coefficients are sums over the values.
        far = np.exp(outside[count : int(np.searchsorted(-outside, -(edge - _DEPTH)))] - edge)
        x = np.exp(edge - nodes)
        for power, coefficient in enumerate(distribution.log_series[1 : _TERMS + 1].tolist(), start=1):
            term = coefficient * float((far**power).sum()) * x**power
            log_below += term
            hazard -= power * term
        return log_above + log_below, hazard

    # No noise among d is above 45 + log d or below -45, except with probability exp(-45).
    low, high = float(outside[0]) - 45.0, float(outside[0]) + log(len(values)) + 45.0
    enough = log(goal) - log(1e3 * (1.0 + high - low) * len(values))
    for _ in range(_LEVELS):
        # The chance is log-concave, because all noises are, so that it rises and falls once.
        grid = np.linspace(low, high, _GRID)
        bounds, _ = evaluate(grid)
        felt = np.flatnonzero(bounds >= min(enough, float(bounds.max())))
        low, high = float(grid[max(felt[0] - 1, 0)]), float(grid[min(felt[-1] + 1, _GRID - 1)])
    if bounds.max() <= enough or low >= high:
        return Chance(0.0, goal)
    kinks = np.unique(values) if distribution.has_seam else np.empty(0)
    kinks, panels = kinks[(kinks > low) & (kinks < high)], max(_PANELS, int(np.ceil(2.0 * (high - low))))
    while True:
        rules = _gauss_rules(low, high, panels, kinks)
        nodes = np.concatenate([nodes for nodes, _ in rules])
        order, densities = np.argsort(nodes), np.empty(len(nodes))
        log_chance, hazard = evaluate(nodes[order])
        densities[order] = np.exp(log_chance) * hazard
        parts = np.split(densities, [len(rules[0][0])])
        fine, coarse = (float(weights @ part) for (_, weights), part in zip(rules, parts, strict=True))
        if abs(fine - coarse) < goal or panels > _MOST_PANELS:
            return Chance(float(np.clip(fine, 0.0, 1.0)), 1e-12 + 2.0 * abs(fine - coarse))
        panels *= 2


def _gauss_rules(low: float, high: float, panels: int, kinks: Floats) -> list[tuple[Floats, Floats]]:
    """Return nodes and weights of a finer and a coarser Gauss rule over equal panels, cut at kinks."""
    cuts = np.unique(np.concatenate([np.linspace(low, high, panels + 1), kinks]))
    half, middle = 0.5 * np.diff(cuts), 0.5 * (cuts[1:] + cuts[:-1])
    orders = (7, 5) if len(cuts) < _MANY_CUTS + panels else (4, 3)
    rules = [np.polynomial.legendre.leggauss(order) for order in orders]
    return [
        ((middle[:, None] + half[:, None] * points).ravel(), (half[:, None] * weights).ravel())
        for points, weights in rules
    ]
