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

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import numpy as np

from discreet.analysis.crowds import Crowd
from discreet.analysis.goals import Hits, Wanted
from discreet.analysis.shots import Chance, gauss_rules
from discreet.analysis.spectra import FINE, ROUGH
from discreet.exact.arrays import Floats, Mask, Ranks
from discreet.noise import Distribution

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
