"""The pieces of a study that can be done apart, in any order and by any process, and what each of them finds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import nan
from statistics import median

from discreet.analysis.joint_sets import JointOverSets
from discreet.analysis.utility import Precision, Shares
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.canonical import Canonical
from discreet.mechanisms.oneshot import OneShot
from discreet.mechanisms.registry import all_contenders
from discreet.noise import NOISES
from discreet.study.curves import CURVE_GOALS, Curve, reader, traced
from discreet.study.results import NeededEpsilon, Point, Results, Time
from discreet.study.vectors import Vector, zipf
from discreet.topk import top_k

SIZES = (10, 100, 1000)
CANONICAL = Canonical().label

METHODS: dict[str, Mechanism] = {
    mechanism.label: mechanism
    for mechanism in (*all_contenders(), JointOverSets())
    if mechanism.form is not Form.UNKNOWN
}
"""What a study compares: all whose probabilities are computed, under the names that legends have."""

_SHAPES = [percent / 100 for percent in (*range(7), 8, 10, 12, 15, *range(20, 61, 5), 80, 100)]
_FLAT = 0.04
_GAMMAS = {"0": Canonical(0), "1/4": Canonical("1/4"), "1/2": Canonical(), "3/4": Canonical("3/4"), "1": Canonical(1)}
_GROWTH = "one sort of d scores; the draw itself grows with k and the logarithm of d"
_EFFORTS = {Form.CLASSES: 0.1, Form.LOSSES: 10.0}
"""About how long each formula takes, beside an integral."""

_REPEATS = 5
_DRAWN_K = 100
_POINTS = 10
# By Hoeffding's inequality this width is that of 1,000 draws.
_DRAWN = Precision(width=Fraction(1156, 10000))


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
        whole = self.vector.scores.dtype.kind != "f"
        return self.mechanism.form is Form.LOSSES and self.figure != "times" and self.k == max(SIZES) and not whole

    def done(self) -> Results:
        """What this piece finds."""
        return _DOING[self.figure](self)


def study_tasks(vectors: list[Vector], full: bool) -> list[Task]:
    """All pieces of a study of these vectors, the longest first."""
    tasks = [task for vector in vectors for task in _on_every(vector)]
    shown = vectors if full else [max(vectors, key=lambda vector: vector.d)]
    tasks += [task for vector in shown for noise in NOISES for task in _with_noise(vector, noise)]
    tasks += [task for k in SIZES for name in METHODS for task in _of_zipf(k, name)]
    return sorted((task for task in tasks if full or not task.heavy), key=lambda task: -task.weight)


def _on_every(vector: Vector) -> Iterator[Task]:
    for k in SIZES:
        if k < vector.d:
            yield from (Task("methods", vector, k, name, method) for name, method in METHODS.items())
            yield from (Task("gammas", vector, k, f"gamma = {gamma}", _GAMMAS[gamma]) for gamma in _GAMMAS)
            yield from (Task("times", vector, k, name, METHODS[name]) for name in METHODS if METHODS[name].is_drawable)


def _of_zipf(k: int, name: str) -> Iterator[Task]:
    flat = zipf(_FLAT)
    yield Task("shapes", Vector("ZIPF", flat.scores), k, name, METHODS[name])
    yield Task("flat", flat, k, name, METHODS[name])


def _with_noise(vector: Vector, noise: str) -> Iterator[Task]:
    yield from (Task("noises", vector, k, noise, OneShot(noise)) for k in (1, *SIZES) if k < vector.d)
    if vector.d > _DRAWN_K:
        yield Task("canonical-noises", vector, _DRAWN_K, noise, Canonical(noise=noise))


def _curve(task: Task) -> Results:
    curve = _traced(task)
    points = [point for epsilon, shares in curve.shares.items() for point in _points(task, epsilon, shares)]
    wanted = curve.crossings.items() if task.figure == "methods" else ()
    name, d = task.vector.name, task.vector.d
    budgets = [NeededEpsilon(name, d, task.k, task.method, chance, epsilon, nan) for chance, epsilon in wanted]
    return Results(points, budgets, [])


def _traced(task: Task) -> Curve:
    """The curve, begun where it is likely to rise: some multiple of where canonical's does, which is found quickly."""
    tally, k, mechanism = task.vector.tally, task.k, task.mechanism
    start = 1.0
    if mechanism.form is not Form.CLASSES:
        known = traced(tally, k, Canonical(), Precision(), 1.0)
        middle = next((epsilon for epsilon, shares in known.shares.items() if shares.values["optimal"] > 0.5), 1.0)
        start = middle * (8.0 if mechanism.form is Form.LOSSES else 1.0 + k / 3.0)
    return traced(tally, k, mechanism, _precision(mechanism), start)


def _precision(mechanism: Mechanism) -> Precision:
    return Precision(goal=1e-3 if mechanism.form is Form.LOSSES else 1e-7)


def _points(task: Task, x: float, shares: Shares) -> list[Point]:
    name, d = task.vector.name, task.vector.d
    error = min(shares.error, 1.0)
    return [
        Point(task.figure, name, d, task.k, task.method, x, goal, shares.values[goal], error) for goal in CURVE_GOALS
    ]


def _shapes(task: Task) -> Results:
    points = []
    for shape in _SHAPES:
        tally = zipf(shape).tally
        points += _points(task, shape, reader(tally, task.k, task.mechanism, _precision(task.mechanism))(1.0))
    return Results(points, [], [])


def _drawn(task: Task) -> Results:
    """Where Gumbel noise gives a rise, some points of it; computed for Gumbel itself, drawn for the others."""
    known = traced(task.vector.tally, task.k, Canonical(), Precision(), 1.0)
    if not task.mechanism.needs_integrals:
        return Results([point for x, shares in known.shares.items() for point in _points(task, x, shares)], [], [])
    low, high = min(known.shares), max(known.shares)
    low = max((x for x, shares in known.shares.items() if shares.values["good"] < 0.01), default=low)
    high = min((x for x, shares in known.shares.items() if shares.values["top"] > 0.99), default=high)
    read = reader(task.vector.tally, task.k, task.mechanism, _DRAWN)
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
    "canonical-noises": _drawn,
    "times": _time,
}
