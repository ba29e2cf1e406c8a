"""The curve of a mechanism: how likely each goal is at as many epsilons as show its rise, and where it crosses some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import exp, isnan, log, nan, sqrt

from discreet.analysis.goals import GOALS, goals
from discreet.analysis.meters import Precision, Shares, meter
from discreet.analysis.statistics import log_odds
from discreet.guarantee import Guarantee
from discreet.mechanisms.base import Form, Mechanism
from discreet.privacy import Sensitivity
from discreet.tally import Tally

CURVE_GOALS = ("top", "great", "good")
"""The goals that all figures show; that of the methods has recall too, which takes longer."""

PROBABILITIES = (0.5, 0.9, 0.99)
_NEVER, _ALWAYS = 0.003, 0.997
_LITTLE = 0.1
_APART = 0.15
_MOST, _MOST_DRAWN = 24, 16
_LEAST_EPSILON = 1e-8
_PATIENCE, _STILL = 16, 1e-3
_DIGITS = 1e-4

_COUNTS = Sensitivity()

Read = Callable[[float], Shares]


@dataclass(frozen=True)
class Curve:
    """The shares of the goals at ascending epsilons, and the epsilons at which the top-k is released so often."""

    shares: dict[float, Shares]
    crossings: dict[float, float]


def reader(
    tally: Tally,
    k: int,
    mechanism: Mechanism,
    precision: Precision,
    asked: tuple[str, ...] = (*CURVE_GOALS, "optimal"),
    *,
    limit: Sensitivity = _COUNTS,
) -> Read:
    """From epsilon to the shares of some goals; without a limit, for counts of users that are added or removed."""
    wanted = goals(tally, k)
    guarantee = Guarantee(Fraction(1), "add-remove", limit, mechanism, Fraction(0))
    read = meter(tally, k, guarantee, {goal: wanted[goal] for goal in asked}, precision)
    return lambda epsilon: read(Fraction(epsilon))


def trace_curve(
    tally: Tally,
    k: int,
    mechanism: Mechanism,
    precision: Precision,
    start: float,
    *,
    with_recall: bool = False,
    limit: Sensitivity = _COUNTS,
) -> Curve:
    """The curve from where no goal is reached to where the best scores are, found from `start`."""
    asked = GOALS if with_recall else (*CURVE_GOALS, "optimal")
    read, seen = reader(tally, k, mechanism, precision, asked, limit=limit), {}

    def at(epsilon: float) -> Shares:
        if epsilon not in seen:
            seen[epsilon] = read(epsilon)
        return seen[epsilon]

    _bracket(at, start)
    is_drawn = mechanism.form is Form.UNKNOWN
    most = _MOST_DRAWN if is_drawn else _MOST
    while len(seen) < most:
        gaps = [pair for pair in pairwise(sorted(seen)) if _distance(at(pair[0]), at(pair[1])) > _APART]
        if not gaps:
            break
        for low, high in gaps[: most - len(seen)]:
            at(sqrt(low * high))
    shares = _trim(seen)
    if is_drawn:
        # Where a curve of draws crosses a probability, its noise decides.
        return Curve(shares, {})
    return Curve(shares, _crossings(shares, reader(tally, k, mechanism, precision, ("top",), limit=limit)))


def _bracket(at: Read, start: float) -> None:
    """Goes up from the start until the best scores are reached, and down until no goal is."""
    epsilon, last = start, at(start)
    patience = _PATIENCE
    while at(epsilon).values["optimal"] < _ALWAYS and patience:
        # Some never get there: with gamma = 0 nothing is lost by a bad item.
        patience = patience - 1 if _distance(at(epsilon), last) < _STILL else _PATIENCE
        last, epsilon = at(epsilon), epsilon * 2.0
    epsilon = start
    while _is_felt(at(epsilon)) and epsilon > _LEAST_EPSILON:
        epsilon /= 2.0


def _is_felt(shares: Shares) -> bool:
    """Whether some goal is reached now and then, or some of the list is right."""
    return shares.values["good"] > _NEVER or shares.values.get("recall", 0.0) > _LITTLE


def _trim(seen: dict[float, Shares]) -> dict[float, Shares]:
    """The points in order, without those at either end beyond which nothing happens."""
    order = sorted(seen)
    for end in (-1, 0):
        while len(order) > 3 and _distance(seen[order[end]], seen[order[-3 if end else 2]]) < _STILL:
            order.pop(end)
    return {epsilon: seen[epsilon] for epsilon in order}


def _distance(one: Shares, other: Shares) -> float:
    return max(abs(one.values[goal] - other.values[goal]) for goal in known_goals(one))


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
    left, right = (log_odds(read(end).values["top"]) for end in (low, high))
    goal = log_odds(wanted)
    while high - low > _DIGITS * low:
        step = min(max((goal - left) / (right - left), 0.02), 0.98)
        middle = exp(log(low) + step * (log(high) - log(low)))
        value = log_odds(read(middle).values["top"])
        if abs(value - goal) < 1e-6:
            return middle
        low, high, left, right = (middle, high, value, right) if value < goal else (low, middle, left, value)
    return high


def known_goals(shares: Shares) -> list[str]:
    """The goals that curves show, with recall where it was computed."""
    return [*CURVE_GOALS, *(["recall"] if not isnan(shares.values.get("recall", nan)) else [])]
