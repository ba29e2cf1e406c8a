"""The pieces of a study that can be done apart, in any order and by any process, and what each of them finds.

Most are curves: how likely each goal is at as many epsilons as show its rise, and where it crosses some probabilities.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import exp, isnan, log, nan, sqrt
from statistics import median

from discreet.analysis.goals import GOALS, goals
from discreet.analysis.joint_sets import JointOverSets
from discreet.analysis.meters import Precision, Shares, meter
from discreet.analysis.statistics import log_odds
from discreet.errors import InvalidValueError
from discreet.guarantee import Guarantee
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.canonical import Canonical
from discreet.mechanisms.oneshot import OneShot
from discreet.mechanisms.registry import all_contenders
from discreet.mechanisms.sampler import Sampler
from discreet.noise import NOISES
from discreet.privacy import Sensitivity
from discreet.sketches import Sketch
from discreet.study.results import NeededEpsilon, Point, Results, Time
from discreet.study.vectors import Vector, zipf
from discreet.tally import Tally
from discreet.topk import top_k

SIZES = (10, 100, 1000)
PAPERS = Canonical(gamma="1/2")
"""The paper's mechanism, which everything else is held against."""

_OTHERS = [contender for contender in all_contenders() if contender.form not in (Form.CLASSES, Form.UNKNOWN)]
METHODS: dict[str, Mechanism] = {
    mechanism.label: mechanism for mechanism in (PAPERS, Canonical(), Canonical(gamma=1), *_OTHERS, JointOverSets())
}
"""What a study compares: all whose probabilities are computed, under the names that legends have; more gammas have a
figure of their own."""

_SHAPES = [percent / 100 for percent in (*range(7), 8, 10, 12, 15, *range(20, 61, 5), 80, 100)]
_FLAT = 0.04
_GAMMAS = {"0": Canonical(0), "1/4": Canonical("1/4"), "1/2": PAPERS, "3/4": Canonical("3/4"), "1": Canonical(1)}
_GROWTH = "one sort of d scores; the draw itself grows with k and the logarithm of d"
_EFFORTS = {Form.CLASSES: 0.1, Form.LOSSES: 10.0}
"""About how long each formula takes, beside an integral."""

_ERRORS = {Form.LOSSES: 1e-3, Form.RACE: 1e-5}
"""What the points of a curve may be off by, where less takes longer."""

_REPEATS = 5
_DRAWN_K = 100
_POINTS = 10
# By Hoeffding's inequality this width is that of 1,000 draws.
_DRAWN = Precision(width=Fraction(1156, 10000))

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
class Task:
    """One piece of a study: one curve of a figure for one vector and k, or one time."""

    figure: str
    vector: Vector
    k: int
    method: str
    mechanism: Mechanism

    @property
    def key(self) -> str:
        """What tells this piece from all others, from one run to the next."""
        return f"{self.figure}/{self.vector.name}/{self.vector.fingerprint}/{self.k}/{self.method}/{self.mechanism!r}"

    @property
    def weight(self) -> float:
        """About how long it takes, to do the longest first."""
        sets = 2.0 if self.mechanism.form is Form.LOSSES and not self.mechanism.ordered else 1.0
        return self.k * _EFFORTS.get(self.mechanism.form, 1.0) * sets

    @property
    def heavy(self) -> bool:
        """Whether it takes minutes: where scores are not whole, losses have far more different values to be counted."""
        slow = self.mechanism.form is Form.LOSSES and self.figure != "times" and self.k == max(SIZES)
        return slow and not self.vector.is_whole

    @property
    def is_own(self) -> bool:
        """Whether it is of somebody's own sampler, a function that may be another one the next time."""
        return isinstance(self.mechanism, Sampler)

    def compute(self) -> Results:
        """What this piece finds."""
        return _DOING[self.figure](self)


def study_tasks(vectors: list[Vector], full: bool, samplers: Sequence[Sampler] = ()) -> list[Task]:
    """All pieces of a study of these vectors, the longest first.

    Parameters
    ----------
    vectors, full
        Whose scores, and whether to do what takes long too.
    samplers
        Mechanisms of your own, which are estimated from draws and stand beside the others with their intervals.
    """
    _check_titles(samplers)
    tasks = [task for vector in vectors for task in _on_every(vector)]
    tasks += [
        Task("methods", vector, k, sampler.title, sampler)
        for vector in vectors for sampler in samplers for k in SIZES if k < vector.d
    ]  # fmt: skip
    shown = vectors if full else [max(vectors, key=lambda vector: vector.d)]
    tasks += [task for vector in shown for noise in NOISES for task in _with_noise(vector, noise)]
    tasks += [task for k in SIZES for name in METHODS for task in _of_zipf(k, name)]
    return sorted((task for task in tasks if full or not task.heavy), key=lambda task: -task.weight)


def _check_titles(samplers: Sequence[Sampler]) -> None:
    titles = [sampler.title for sampler in samplers]
    for title in titles:
        if title in METHODS or titles.count(title) > 1:
            raise InvalidValueError(f"samplers must have titles of their own, and {title!r} is that of another method")


def _on_every(vector: Vector) -> Iterator[Task]:
    for k in SIZES:
        if k < vector.d:
            yield from (Task("methods", vector, k, name, method) for name, method in METHODS.items())
            yield from (Task("gammas", vector, k, f"gamma = {gamma}", _GAMMAS[gamma]) for gamma in _GAMMAS)
            if not isinstance(vector.scores, Sketch):
                drawn = [name for name in METHODS if METHODS[name].is_drawable]
                yield from (Task("times", vector, k, name, METHODS[name]) for name in drawn)


def _of_zipf(k: int, name: str) -> Iterator[Task]:
    flat = zipf(_FLAT)
    yield Task("shapes", Vector("ZIPF", flat.scores), k, name, METHODS[name])
    yield Task("flat", flat, k, name, METHODS[name])


def _with_noise(vector: Vector, noise: str) -> Iterator[Task]:
    yield from (Task("noises", vector, k, noise, OneShot(noise)) for k in (1, *SIZES) if k < vector.d)
    if vector.d > _DRAWN_K:
        yield Task("canonical-noises", vector, _DRAWN_K, noise, Canonical("1/2", noise))


def _curve(task: Task) -> Results:
    curve = _trace_from_canonical(task)
    points = [point for epsilon, shares in curve.shares.items() for point in _points(task, epsilon, shares)]
    wanted = curve.crossings.items() if task.figure == "methods" else ()
    name, d = task.vector.name, task.vector.d
    budgets = [NeededEpsilon(name, d, task.k, task.method, chance, epsilon, nan) for chance, epsilon in wanted]
    return Results(points, budgets, [])


def _trace_from_canonical(task: Task) -> Curve:
    """The curve, begun where it is likely to rise: some multiple of where canonical's does, which is found quickly."""
    tally, k, mechanism, limit = task.vector.tally, task.k, task.mechanism, task.vector.limit
    start = 1.0
    if mechanism.form is not Form.CLASSES:
        known = trace_curve(tally, k, PAPERS, Precision(), 1.0, limit=limit)
        middle = next((epsilon for epsilon, shares in known.shares.items() if shares.values["optimal"] > 0.5), 1.0)
        start = middle * (8.0 if mechanism.form is Form.LOSSES else 1.0 + k / 3.0)
    with_recall = task.figure == "methods"
    return trace_curve(tally, k, mechanism, _precision(mechanism), start, with_recall=with_recall, limit=limit)


def _precision(mechanism: Mechanism) -> Precision:
    if mechanism.form is Form.UNKNOWN:
        return _DRAWN
    return Precision(goal=_ERRORS.get(mechanism.form, 1e-7))


def _points(task: Task, x: float, shares: Shares) -> list[Point]:
    name, d = task.vector.name, task.vector.d
    error, known = min(shares.error, 1.0), _known_goals(shares)
    return [Point(task.figure, name, d, task.k, task.method, x, goal, shares.values[goal], error) for goal in known]


def _known_goals(shares: Shares) -> list[str]:
    """The goals that curves show, with recall where it was computed."""
    return [*CURVE_GOALS, *(["recall"] if not isnan(shares.values.get("recall", nan)) else [])]


def _shapes(task: Task) -> Results:
    points = []
    for shape in _SHAPES:
        tally = zipf(shape).tally
        points += _points(task, shape, reader(tally, task.k, task.mechanism, _precision(task.mechanism))(1.0))
    return Results(points, [], [])


def _rise_of_gumbel(task: Task) -> Results:
    """Where Gumbel noise gives a rise, some points of it; computed for Gumbel itself, drawn for the others."""
    known = trace_curve(task.vector.tally, task.k, PAPERS, Precision(), 1.0, limit=task.vector.limit)
    if not task.mechanism.needs_integrals:
        return Results([point for x, shares in known.shares.items() for point in _points(task, x, shares)], [], [])
    low, high = min(known.shares), max(known.shares)
    low = max((x for x, shares in known.shares.items() if shares.values["good"] < 0.01), default=low)
    high = min((x for x, shares in known.shares.items() if shares.values["top"] > 0.99), default=high)
    read = reader(task.vector.tally, task.k, task.mechanism, _DRAWN, limit=task.vector.limit)
    chosen = [low * (high / low) ** (step / (_POINTS - 1)) for step in range(_POINTS)]
    return Results([point for x in chosen for point in _points(task, x, read(x))], [], [])


def _time(task: Task) -> Results:
    """The median time of one release with everything in it, at epsilon = 1."""
    seconds = []
    for _ in range(_REPEATS):
        begun = time.perf_counter()
        top_k(task.vector.scores, task.k, 1, mechanism=task.mechanism)
        seconds.append(time.perf_counter() - begun)
    row = Time(task.vector.name, task.vector.d, task.k, task.method, median(seconds), _GROWTH)
    return Results([], [], [row])


_DOING: dict[str, Callable[[Task], Results]] = {
    "methods": _curve,
    "flat": _curve,
    "noises": _curve,
    "gammas": _curve,
    "shapes": _shapes,
    "canonical-noises": _rise_of_gumbel,
    "times": _time,
}


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
    return max(abs(one.values[goal] - other.values[goal]) for goal in _known_goals(one))


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
