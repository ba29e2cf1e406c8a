"""The curve of a mechanism: how likely each goal is at as many epsilons as show its rise, and where it crosses some."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
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
_LITTLE = 0.02
"""How much more of a list than chance makes right is nothing to be seen."""

_APARTS = {Form.CLASSES: 0.04, Form.LOSSES: 0.2}
_APART = 0.12
"""Points of a curve that are further apart than this get one between them, where a point takes long, ..."""

_NARROW = 1.006
"""... unless their epsilons differ by less than this factor: a chart shows those as one."""

_MOST = {Form.CLASSES: 160, Form.RACE: 40, Form.LOSSES: 24, Form.UNKNOWN: 16}
"""How many points a curve may have, where more take long."""

_HALFWAY, _LEVEL, _LONG = (0.05, 0.95), 0.03, 1.25
"""A curve rests where it is between these, rises by no more than this, and epsilon grows by so large a factor."""

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
    crossing: Precision | None = None,
    with_recall: bool = False,
    limit: Sensitivity = _COUNTS,
) -> Curve:
    """The curve from where no goal is reached to where the best scores are, found from `start`.

    Parameters
    ----------
    tally, k, mechanism, limit
        Of which release.
    precision, crossing
        How exact its points are, and how exact is what decides where it crosses a probability: the same by default.
    start
        An epsilon near its rise.
    with_recall
        Whether to follow the share of right items too, which takes longer.
    """
    read = partial(reader, tally, k, mechanism, precision, limit=limit)
    tracer = _Tracer(read(GOALS if with_recall else (*CURVE_GOALS, "optimal")), read(("recall",)))
    _go_up(tracer.at, start)
    _go_down(tracer, start, k / tally.d if with_recall else None)
    refine(tracer.seen, tracer.at, _MOST[mechanism.form], _APARTS.get(mechanism.form, _APART))
    shares = _trim(tracer.seen)
    if mechanism.form is Form.UNKNOWN:
        # Where a curve of draws crosses a probability, its noise decides.
        return Curve(shares, {})
    exact = reader(tally, k, mechanism, crossing or precision, ("top",), limit=limit)
    return Curve(shares, _crossings(shares, exact))


@dataclass
class _Tracer:
    """The points of a curve, each computed once; below the ground no list is good, and recall alone is computed."""

    read: Read
    read_recall: Read
    ground: float = 0.0
    seen: dict[float, Shares] = field(default_factory=dict)

    def at(self, epsilon: float) -> Shares:
        if epsilon not in self.seen:
            self.seen[epsilon] = (self.read if epsilon >= self.ground else self.read_recall)(epsilon)
        return self.seen[epsilon]


def refine(
    seen: dict[float, Shares], at: Read, most: int, apart: float = _APART, goals: Sequence[str] | None = None
) -> None:
    """Adds points between those that are far apart, the furthest first, until none are or there are `most`.

    Parameters
    ----------
    seen, at
        The points, and what computes another, which adds it to them.
    most, apart
        How many points there may be, and how far apart they may stay.
    goals
        By which goals; by default by all that curves show.
    """
    while len(seen) < most:
        pairs = [pair for pair in pairwise(sorted(seen)) if pair[1] > _NARROW * pair[0]]
        jumps = {(low, high): _distance(seen[low], seen[high], goals) for low, high in pairs}
        gaps = sorted((pair for pair in pairs if jumps[pair] > apart), key=lambda pair: -jumps[pair])
        if not gaps:
            break
        for low, high in gaps[: most - len(seen)]:
            at(sqrt(low * high))


def _go_up(at: Read, start: float) -> None:
    """Goes up from the start until the best scores are reached."""
    epsilon, last = start, at(start)
    patience = _PATIENCE
    while at(epsilon).values["optimal"] < _ALWAYS and patience:
        # Some never get there: with gamma = 0 nothing is lost by a bad item.
        patience = patience - 1 if _distance(at(epsilon), last) < _STILL else _PATIENCE
        last, epsilon = at(epsilon), epsilon * 2.0


def _go_down(tracer: _Tracer, start: float, chance: float | None) -> None:
    """Goes down from the start until no goal is reached, then until no more is right than `chance` makes, if given."""
    epsilon = start
    while tracer.at(epsilon).values["good"] > _NEVER and epsilon > _LEAST_EPSILON:
        epsilon /= 2.0
    tracer.ground = epsilon
    while chance is not None and _is_felt(tracer.at(epsilon), chance) and epsilon > _LEAST_EPSILON:
        epsilon /= 2.0


def _is_felt(shares: Shares, chance: float) -> bool:
    """Whether more of the list is right than by chance."""
    return shares.values["recall"] > chance + max(_LITTLE, shares.error)


def _trim(seen: dict[float, Shares]) -> dict[float, Shares]:
    """The points in order, without those at either end beyond which nothing happens."""
    order = sorted(seen)
    for end in (-1, 0):
        while len(order) > 3 and _distance(seen[order[end]], seen[order[-3 if end else 2]]) < _STILL:
            order.pop(end)
    return {epsilon: seen[epsilon] for epsilon in order}


def _distance(one: Shares, other: Shares, goals: Sequence[str] | None = None) -> float:
    both = goals or [goal for goal in known_goals(one) if goal in known_goals(other)]
    return max(abs(one.values[goal] - other.values[goal]) for goal in both)


def _crossings(shares: dict[float, Shares], read: Read) -> dict[float, float]:
    """Where the curve of the top-k reaches each probability, where it does."""
    found = {}
    for wanted in PROBABILITIES:
        for low, high in pairwise(shares):
            if shares[low].values.get("top", 0.0) < wanted <= shares[high].values.get("top", 0.0):
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


def find_plateau(curve: Sequence[Point]) -> tuple[Point, float] | None:
    """The widest stretch where a curve that goes on rising rests halfway: its first point, and the x of its last."""
    best: tuple[Point, float] | None = None
    for first in curve:
        if _HALFWAY[0] < first.probability < _HALFWAY[1]:
            level = [point.x for point in curve if 0 <= point.probability - first.probability <= _LEVEL]
            is_wider = best is None or level[-1] / first.x > best[1] / best[0].x
            goes_on = curve[-1].probability > first.probability + 3 * _LEVEL
            if is_wider and goes_on and level[-1] >= _LONG * first.x:
                best = first, level[-1]
    return best


def known_goals(shares: Shares) -> list[str]:
    """The goals of those that curves show that were computed."""
    return [goal for goal in (*CURVE_GOALS, "recall") if not isnan(shares.values.get(goal, nan))]


@dataclass(frozen=True)
class Point:
    """One point of one curve: how likely a goal is.

    Attributes
    ----------
    figure
        Which figure it belongs to: a key of `FIGURES`.
    vector, d, k
        Whose scores, how many, and how many are released.
    method
        The curve: a name as it stands in the legend.
    x
        Where on the axis: epsilon, or the shape of Zipf's law.
    goal
        "top", "great" or "good".
    probability, error
        How likely it is, and what that may be off by.
    """

    figure: str
    vector: str
    d: int
    k: int
    method: str
    x: float
    goal: str
    probability: float
    error: float


@dataclass(frozen=True)
class NeededEpsilon:
    """The epsilon that a method needs for the top-k with some probability, and its ratio to that of gamma = 1/2."""

    vector: str
    d: int
    k: int
    method: str
    probability: float
    epsilon: float
    ratio: float


@dataclass(frozen=True)
class Time:
    """How long one release takes: the seconds, and how the cost grows in d and k, in words."""

    vector: str
    d: int
    k: int
    method: str
    seconds: float
    growth: str


@dataclass(frozen=True)
class Figure:
    """A figure: its title, what its axis says, whether that is logarithmic, and what it shows in one sentence."""

    key: str
    title: str
    axis: str
    logarithmic: bool
    says: str


@dataclass(frozen=True)
class Results:
    """All that a study found, and points of curves that are to be marked."""

    points: list[Point]
    budgets: list[NeededEpsilon]
    times: list[Time]
    marks: list[Point] = field(default_factory=list)


FIGURES = {
    figure.key: figure
    for figure in (
        Figure(
            "methods",
            "How likely each method is to be right",
            "epsilon",
            True,
            "The further left a curve rises, the less privacy the method costs for the same answer.",
        ),
        Figure(
            "plan",
            "What each mechanism reaches",
            "epsilon",
            True,
            "The circle is what is recommended: the curve that reaches the goal with the least epsilon.",
        ),
        Figure(
            "shapes",
            "Zipf's law from flat to steep, at epsilon = 1",
            "shape s",
            False,
            "Scores proportional to i^-s: the steeper they fall, the easier the choice.",
        ),
        Figure(
            "flat",
            "Nearly flat scores: Zipf's law with s = 0.04",
            "epsilon",
            True,
            "The hardest vector of the paper against epsilon.",
        ),
        Figure(
            "noises",
            "One-shot with each noise",
            "epsilon",
            True,
            "The same mechanism with each noise whose log survival function is 1-Lipschitz.",
        ),
        Figure(
            "canonical-noises",
            "Canonical with each noise",
            "epsilon",
            True,
            "Drawn, not computed, where the noise is not Gumbel's: each point has an interval.",
        ),
        Figure(
            "gammas",
            "Canonical with gamma from 0 to 1",
            "epsilon",
            True,
            "How the weight between the worst item inside and the best outside matters.",
        ),
    )
}
