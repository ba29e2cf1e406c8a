"""Trace the curve of a mechanism: the probability of each goal at enough epsilons to show its rise.

The rows that a study writes are defined here too: points of curves, the budgets that methods need, and times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import pairwise
from math import exp, isnan, log, nan, sqrt

from discreet.analysis.goals import GOALS, goals, log_odds
from discreet.analysis.meters import Precision, Shares, meter
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.tally import Tally
from discreet.privacy import Sensitivity
from discreet.release.guarantee import Guarantee

CURVE_GOALS = ("top", "great", "good")
"""The goals that all figures show. The figure of the methods has recall too, which takes longer."""

PROBABILITIES = (0.5, 0.9, 0.99)
"""The probabilities of the exact top-k for which a study tells the epsilon."""

_NEVER, _ALWAYS = 0.003, 0.997
"""A curve is followed down to the first and up to the second probability; a chart shows them as 0 and 1."""

_LITTLE = 0.02
"""Recall within this distance of the recall of a random list counts as equal to it."""

_APART = 0.12
_APARTS = {Form.CLASSES: 0.04, Form.LOSSES: 0.2}
"""Points that differ by more than this probability get one between them: fewer where a point takes long to compute."""

STEP = 0.3
"""The largest difference of probability that a chart joins by a straight line."""

_NARROW = 1.006
"""Points whose epsilons differ by less than this factor get none between them: a chart shows them as one."""

_MOST = {Form.CLASSES: 160, Form.RACE: 40, Form.LOSSES: 24, Form.UNKNOWN: 16}
"""The usual number of points of a curve: fewer where a point takes long to compute. Steps may need more."""

_HALFWAY, _LEVEL, _LONG = (0.05, 0.95), 0.03, 1.25
"""On a plateau the probability is between the first two, rises by at most 0.03, and epsilon grows by at least 1.25."""

_LEAST_EPSILON = 1e-8
"""No curve is followed below this epsilon."""

_STILL, _PATIENCE = 1e-3, 16
"""A curve that changes by less than the first number over this many doublings of epsilon has reached its end."""

_DIGITS = 1e-4
"""The relative error allowed for the epsilon at which a curve crosses a probability."""

_COUNTS = Sensitivity()

Read = Callable[[float], Shares]


@dataclass(frozen=True)
class Point:
    """One point of one curve.

    Attributes
    ----------
    figure
        The figure it belongs to: a key of `FIGURES`.
    vector, d, k
        The name of the scores, their number, and the length of the list.
    method
        The name of the curve in the legend.
    x
        The place on the horizontal axis: epsilon, or the shape of Zipf's law.
    goal
        The goal: "top", "great", "good", "optimal" or "recall".
    probability, error
        The probability of the goal, and a bound on its error.
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
    """The epsilon that a method needs for the exact top-k, and its ratio to that of gamma = 1/2."""

    vector: str
    d: int
    k: int
    method: str
    probability: float
    epsilon: float
    ratio: float


@dataclass(frozen=True)
class Time:
    """The seconds that one release takes, and their growth in d and k in words."""

    vector: str
    d: int
    k: int
    method: str
    seconds: float
    growth: str


@dataclass(frozen=True)
class Figure:
    """A figure: its title, its horizontal axis, and one sentence on its content.

    If `logarithmic` is False, the axis is logarithmic only if curves crowd at its left end. The figures of a study are
    numbered, and docs/paper.md cites the numbers.
    """

    key: str
    title: str
    axis: str
    logarithmic: bool
    says: str
    number: int | None = None

    @property
    def heading(self) -> str:
        """The title, after the number if there is one."""
        return self.title if self.number is None else f"Figure {self.number}: {self.title}"


@dataclass(frozen=True)
class Results:
    """All results of a study, and the points of curves to draw a circle around."""

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
            1,
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
            "Scores proportional to i^-s: the steeper they fall, the easier the choice. All scores are equal at s = 0.",
            2,
        ),
        Figure(
            "flat",
            "Nearly flat scores: Zipf's law with s = 0.04",
            "epsilon",
            True,
            "The hardest vector of the paper against epsilon.",
            3,
        ),
        Figure(
            "noises",
            "One-shot with each noise",
            "epsilon",
            True,
            "The same mechanism with each noise whose log survival function is 1-Lipschitz.",
            4,
        ),
        Figure(
            "canonical-noises",
            "Canonical with each noise",
            "epsilon",
            True,
            "Drawn, not computed, where the noise is not Gumbel's: each point has an interval.",
            5,
        ),
        Figure(
            "gammas",
            "Canonical with gamma from 0 to 1",
            "epsilon",
            True,
            "How the weight between the worst item inside and the best outside matters.",
            6,
        ),
    )
}


@dataclass(frozen=True)
class Curve:
    """The shares of the goals at ascending epsilons, and the epsilon for each probability of the exact top-k."""

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
    """Return a function from epsilon to the shares of some goals; `limit` is by default that of counts of users."""
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
    """Trace a curve from an epsilon that reaches no goal to one that releases the best scores.

    Parameters
    ----------
    tally, k, mechanism, limit
        The scores, the length of the list, the mechanism and the sensitivity.
    precision, crossing
        The precision of the points, and that of the epsilons of crossings; by default the same.
    start
        An epsilon near the rise of the curve.
    with_recall
        True traces recall too, which takes longer.
    """
    read = partial(reader, tally, k, mechanism, precision, limit=limit)
    tracer = _Tracer(read(GOALS if with_recall else (*CURVE_GOALS, "optimal")), read(("recall",)))
    # Some curves never release the best scores: with gamma = 0 the worst item of a list costs nothing.
    epsilon, last, patience = start, tracer.at(start), _PATIENCE
    while tracer.at(epsilon).values["optimal"] < _ALWAYS and patience:
        patience = patience - 1 if _distance(tracer.at(epsilon), last) < _STILL else _PATIENCE
        last, epsilon = tracer.at(epsilon), epsilon * 2.0
    # Below the ground no list is good. There recall alone is computed, until it is that of a random list.
    epsilon = start
    while tracer.at(epsilon).values["good"] > _NEVER and epsilon > _LEAST_EPSILON:
        epsilon /= 2.0
    tracer.ground = epsilon
    while with_recall:
        low = tracer.at(epsilon)
        # Recall is NaN for a mechanism that has no formula for it.
        if not low.values["recall"] > k / tally.d + max(_LITTLE, low.error) or epsilon <= _LEAST_EPSILON:
            break
        epsilon /= 2.0
    refine(tracer.seen, tracer.at, _MOST[mechanism.form], _APARTS.get(mechanism.form, _APART))
    # Points at either end that repeat their neighbours are left out.
    order = sorted(tracer.seen)
    for end in (-1, 0):
        while len(order) > 3 and _distance(tracer.at(order[end]), tracer.at(order[-3 if end else 2])) < _STILL:
            order.pop(end)
    shares = {epsilon: tracer.seen[epsilon] for epsilon in order}
    if mechanism.form is Form.UNKNOWN:
        # The noise of the draws decides where such a curve crosses a probability.
        return Curve(shares, {})
    exact = reader(tally, k, mechanism, crossing or precision, ("top",), limit=limit)
    tops = {epsilon: each.values.get("top", 0.0) for epsilon, each in shares.items()}
    crossings = {
        wanted: _find_crossing(exact, wanted, low, high)
        for wanted in PROBABILITIES
        for low, high in pairwise(shares)
        if tops[low] < wanted <= tops[high]
    }
    return Curve(shares, crossings)


@dataclass
class _Tracer:
    """The points of a curve, each computed once: all goals from the ground up, and recall alone below it."""

    read: Read
    read_recall: Read
    ground: float = 0.0
    seen: dict[float, Shares] = field(default_factory=dict)

    def at(self, epsilon: float) -> Shares:
        if epsilon not in self.seen:
            self.seen[epsilon] = (self.read if epsilon >= self.ground else self.read_recall)(epsilon)
        return self.seen[epsilon]


def refine(
    seen: dict[float, Shares], read: Read, most: int, apart: float = _APART, goals: Sequence[str] | None = None
) -> None:
    """Add points between neighbours that are far apart, the furthest first.

    Parameters
    ----------
    seen, read
        The points, and the function that computes another one.
    most, apart
        The usual number of points, and the largest difference that neighbours may keep. Neighbours that differ by more
        than `STEP` get points beyond that number: a chart would show a gap between them.
    goals
        The goals to compare, by default all that curves show.
    """
    while True:
        pairs = [pair for pair in pairwise(sorted(seen)) if pair[1] > _NARROW * pair[0]]
        jumps = {(low, high): _distance(seen[low], seen[high], goals) for low, high in pairs}
        gaps = sorted((pair for pair in pairs if jumps[pair] > apart), key=lambda pair: -jumps[pair])
        steps = sum(jump > STEP for jump in jumps.values())
        chosen = gaps[: max(most - len(seen), steps)]
        if not chosen:
            break
        for low, high in chosen:
            middle = sqrt(low * high)
            seen[middle] = read(middle)


def _distance(one: Shares, other: Shares, goals: Sequence[str] | None = None) -> float:
    both = goals or [goal for goal in known_goals(one) if goal in known_goals(other)]
    return max(abs(one.values[goal] - other.values[goal]) for goal in both)


def _find_crossing(read: Read, wanted: float, low: float, high: float) -> float:
    """Find a crossing by the secant of log odds against log epsilon, which is nearly straight, within two ends."""
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
    """Return the first point and the last x of the widest plateau of a curve that rises further, or None."""
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
    """Return the goals that curves show and that were computed."""
    return [goal for goal in (*CURVE_GOALS, "recall") if not isnan(shares.values.get(goal, nan))]
