"""One curve: how likely each goal is at as many epsilons as show its rise, and where it crosses some probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import exp, log, log1p, sqrt

from discreet.analysis.utility import Precision, Shares, goals, meter
from discreet.mechanisms.base import Mechanism
from discreet.privacy import Sensitivity
from discreet.release import Guarantee
from discreet.tally import Tally

CURVE_GOALS = ("top", "great", "good")
"""The goals that figures show."""

PROBABILITIES = (0.5, 0.9, 0.99)

_NEVER, _ALWAYS = 0.003, 0.997
_APART = 0.15
_MOST = 24
_LEAST_EPSILON = 1e-8
_PATIENCE, _STILL = 16, 1e-3
_DIGITS = 1e-4

Read = Callable[[float], Shares]


@dataclass(frozen=True)
class Curve:
    """The shares of the goals at ascending epsilons, and the epsilons at which the top-k is released so often."""

    shares: dict[float, Shares]
    crossings: dict[float, float]


def reader(tally: Tally, k: int, mechanism: Mechanism, precision: Precision, only: str | None = None) -> Read:
    """From epsilon to the shares of all goals, or of one, for counts of users that are added or removed."""
    regions = goals(tally, k)
    guarantee = Guarantee(Fraction(1), "add-remove", Sensitivity(), mechanism, Fraction(0))
    read = meter(tally, k, guarantee, regions if only is None else {only: regions[only]}, precision)
    return lambda epsilon: read(Fraction(epsilon))


def traced(tally: Tally, k: int, mechanism: Mechanism, precision: Precision, start: float) -> Curve:
    """The curve from where no goal is reached to where the best scores are, found from `start`."""
    read, seen = reader(tally, k, mechanism, precision), {}

    def at(epsilon: float) -> Shares:
        if epsilon not in seen:
            seen[epsilon] = read(epsilon)
        return seen[epsilon]

    _bracket(at, start)
    while len(seen) < _MOST:
        gaps = [pair for pair in pairwise(sorted(seen)) if _distance(at(pair[0]), at(pair[1])) > _APART]
        if not gaps:
            break
        for low, high in gaps[: _MOST - len(seen)]:
            at(sqrt(low * high))
    shares = _trimmed(seen)
    return Curve(shares, _crossings(shares, reader(tally, k, mechanism, precision, only="top")))


def _bracket(at: Read, start: float) -> None:
    """Goes up from the start until the best scores are reached, and down until no goal is."""
    epsilon, last = start, at(start)
    patience = _PATIENCE
    while at(epsilon).values["optimal"] < _ALWAYS and patience:
        # Some never get there: with gamma = 0 nothing is lost by a bad item.
        patience = patience - 1 if _distance(at(epsilon), last) < _STILL else _PATIENCE
        last, epsilon = at(epsilon), epsilon * 2.0
    epsilon = start
    while at(epsilon).values["good"] > _NEVER and epsilon > _LEAST_EPSILON:
        epsilon /= 2.0


def _trimmed(seen: dict[float, Shares]) -> dict[float, Shares]:
    """The points in order, without those at either end beyond which nothing happens."""
    order = sorted(seen)
    for end in (-1, 0):
        while len(order) > 3 and _distance(seen[order[end]], seen[order[-3 if end else 2]]) < _STILL:
            order.pop(end)
    return {epsilon: seen[epsilon] for epsilon in order}


def _distance(one: Shares, other: Shares) -> float:
    return max(abs(one.values[goal] - other.values[goal]) for goal in CURVE_GOALS)


def _crossings(shares: dict[float, Shares], read: Read) -> dict[float, float]:
    """Where the curve of the top-k reaches each probability, where it does."""
    found = {}
    for wanted in PROBABILITIES:
        for low, high in pairwise(shares):
            if shares[low].values["top"] < wanted <= shares[high].values["top"]:
                found[wanted] = _crossing(read, wanted, low, high)
    return found


def _crossing(read: Read, wanted: float, low: float, high: float) -> float:
    """By the secant of the log odds against log epsilon, which is nearly straight, kept between two ends."""
    left, right = (_log_odds(read(end).values["top"]) for end in (low, high))
    goal = _log_odds(wanted)
    while high - low > _DIGITS * low:
        step = min(max((goal - left) / (right - left), 0.02), 0.98)
        middle = exp(log(low) + step * (log(high) - log(low)))
        value = _log_odds(read(middle).values["top"])
        if abs(value - goal) < 1e-6:
            return middle
        low, high, left, right = (middle, high, value, right) if value < goal else (low, middle, left, value)
    return high


def _log_odds(probability: float) -> float:
    inside = min(max(probability, 1e-12), 1.0 - 1e-12)
    return log(inside) - log1p(-inside)
