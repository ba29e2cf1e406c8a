"""Split a study into tasks that any process can compute in any order, and summarise their results in sentences.

Most tasks trace one curve: the probability of each goal against epsilon, and the epsilons at which it crosses some
probabilities.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import isnan, nan
from statistics import median

from discreet.analysis.joint_odds import JointOverSets
from discreet.analysis.meters import Precision, Shares
from discreet.errors import InvalidValueError
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.canonical import Canonical
from discreet.mechanisms.noise import NOISES
from discreet.mechanisms.oneshot import OneShot
from discreet.mechanisms.registry import all_contenders
from discreet.mechanisms.sampler import Sampler
from discreet.release.sketch import Sketch
from discreet.release.topk import top_k
from discreet.study.curves import (
    CURVE_GOALS,
    NeededEpsilon,
    Point,
    Results,
    Time,
    find_plateau,
    known_goals,
    reader,
    refine,
    trace_curve,
)
from discreet.study.vectors import Vector, zipf
from discreet.text import describe_multiple, three_digits

SIZES = (10, 100, 1000)
"""The lengths k of the lists that a study compares, as in the paper."""

PAPERS = Canonical(gamma="1/2")
"""The paper's mechanism, with which all others are compared."""

_OTHERS = [contender for contender in all_contenders() if contender.form not in (Form.CLASSES, Form.UNKNOWN)]
METHODS: dict[str, Mechanism] = {
    mechanism.label: mechanism for mechanism in (PAPERS, Canonical(), Canonical(gamma=1), *_OTHERS, JointOverSets())
}
"""The mechanisms of a study by their names in the legend: all whose probabilities are computed and not estimated.
More gammas of canonical have a figure of their own."""

_SHAPES = [0.0005, 0.001, 0.002, 0.005]
_SHAPES += [percent / 100 for percent in (*range(1, 7), 8, 10, 12, 15, *range(20, 61, 5), 80, 100)]
"""The positive shapes of Zipf's law that every curve has: more of them where methods differ."""

_MORE_SHAPES = 10
"""The usual number of shapes added between those."""

_FLAT = 0.04
"""The shape of the hardest vector of the paper."""

_GAMMAS = {"0": Canonical(0), "1/4": Canonical("1/4"), "1/2": PAPERS, "3/4": Canonical("3/4"), "1": Canonical(1)}
_GROWTH = "one sort of d scores; the draw itself grows with k and the logarithm of d"
_EFFORTS = {Form.CLASSES: 0.1, Form.LOSSES: 10.0}
"""The time that each formula takes, relative to an integral."""

_ERRORS = {Form.LOSSES: 1e-3, Form.RACE: 1e-3}
"""The error allowed for points of a curve whose formula is slow: less than can be seen in a chart."""

_CROSSING_ERRORS = {Form.LOSSES: 1e-3, Form.RACE: 1e-5}
"""The error allowed for points that decide the epsilon that a method needs."""

_REPEATS = 5
"""A time is the median of this many releases."""

_DRAWN_K = 100
"""The only k for which curves are estimated from draws, which take longest."""

_POINTS, _MOST_POINTS = 10, 16
"""The number of points of such a curve, before and after refinement."""

_DRAWN = Precision(width=Fraction(1156, 10000))
"""The width of a confidence interval from 1,000 draws, by Hoeffding's inequality."""

_USUAL = 0.9
"""The probability of the exact top-k that the summary speaks of."""

_IN_PROSE = {
    "canonical, gamma = 3/4": "Canonical with gamma = 3/4, the default,",
    "canonical, gamma = 1": "Canonical with gamma = 1",
    "one-shot, exponential": "One-shot with exponential noise",
    "joint, sequences": "The joint mechanism over sequences",
    "joint, sets": "The joint mechanism over sets",
}
"""The names of methods in a sentence, where the legend has a shorter one."""

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

Case = tuple[str, int]
"""The name of a score vector, and a k."""


@dataclass(frozen=True)
class Task:
    """One curve of a figure for one vector and k, or one time."""

    figure: str
    vector: Vector
    k: int
    method: str
    mechanism: Mechanism

    @property
    def key(self) -> str:
        """The name under which the results of this task are kept from one run to the next."""
        return f"{self.figure}/{self.vector.name}/{self.vector.fingerprint}/{self.k}/{self.method}/{self.mechanism!r}"

    @property
    def weight(self) -> float:
        """The approximate time that the task takes; the longest tasks are computed first."""
        sets = 2.0 if self.mechanism.form is Form.LOSSES and not self.mechanism.ordered else 1.0
        return self.k * _EFFORTS.get(self.mechanism.form, 1.0) * sets

    @property
    def heavy(self) -> bool:
        """True if the task takes minutes: scores that are not whole have far more different losses to count."""
        slow = self.mechanism.form is Form.LOSSES and self.figure != "times" and self.k == max(SIZES)
        return slow and not self.vector.is_whole

    @property
    def is_own(self) -> bool:
        """True if the task uses the caller's own sampler, a function that may change from one run to the next."""
        return isinstance(self.mechanism, Sampler)

    def compute(self) -> Results:
        """Return the results of this task."""
        return _DOING[self.figure](self)


def study_tasks(vectors: list[Vector], full: bool, samplers: Sequence[Sampler] = ()) -> list[Task]:
    """Return all tasks of a study, the longest first.

    Parameters
    ----------
    vectors, full
        The score vectors, and whether to include tasks that take long.
    samplers
        Your own mechanisms. Their curves are estimated from draws and have confidence bands.
    """
    titles = [sampler.title for sampler in samplers]
    for title in titles:
        if title in METHODS or titles.count(title) > 1:
            raise InvalidValueError(f"samplers must have titles of their own, and {title!r} is that of another method")
    tasks = []
    for vector in vectors:
        for k in [k for k in SIZES if k < vector.d]:
            tasks += [Task("methods", vector, k, name, method) for name, method in METHODS.items()]
            tasks += [Task("gammas", vector, k, f"gamma = {gamma}", _GAMMAS[gamma]) for gamma in _GAMMAS]
            if not isinstance(vector.scores, Sketch):
                tasks += [Task("times", vector, k, name, each) for name, each in METHODS.items() if each.is_drawable]
    tasks += [
        Task("methods", vector, k, sampler.title, sampler)
        for vector in vectors for sampler in samplers for k in SIZES if k < vector.d
    ]  # fmt: skip
    for vector in vectors if full else [max(vectors, key=lambda vector: vector.d)]:
        for noise in NOISES:
            tasks += [Task("noises", vector, k, noise, OneShot(noise)) for k in (1, *SIZES) if k < vector.d]
            if vector.d > _DRAWN_K:
                tasks.append(Task("canonical-noises", vector, _DRAWN_K, noise, Canonical("1/2", noise)))
    tasks += [task for k in SIZES for name in METHODS for task in _of_zipf(k, name)]
    return sorted((task for task in tasks if full or not task.heavy), key=lambda task: -task.weight)


def left_out_tasks(vectors: list[Vector], full: bool) -> list[Task]:
    """Return the tasks that `study_tasks` leaves out: heavy ones unless `full`, and those with k of d or more."""
    short = [Task("methods", vector, k, PAPERS.label, PAPERS) for vector in vectors for k in SIZES if k >= vector.d]
    return short + ([] if full else [task for task in study_tasks(vectors, full=True) if task.heavy])


def _of_zipf(k: int, name: str) -> Iterator[Task]:
    flat = zipf(_FLAT)
    yield Task("shapes", Vector("ZIPF", flat.scores), k, name, METHODS[name])
    yield Task("flat", flat, k, name, METHODS[name])


def _curve(task: Task) -> Results:
    """Trace the curve from an epsilon near its rise: a multiple of canonical's, which is found quickly."""
    vector, k, mechanism, is_main = task.vector, task.k, task.mechanism, task.figure == "methods"
    start = 1.0
    if mechanism.form is not Form.CLASSES:
        known = trace_curve(vector.tally, k, PAPERS, Precision(), 1.0, limit=vector.limit)
        middle = next((epsilon for epsilon, shares in known.shares.items() if shares.values["optimal"] > 0.5), 1.0)
        start = middle * (8.0 if mechanism.form is Form.LOSSES else 1.0 + k / 3.0)
    points, crossing = _precision(mechanism), _precision(mechanism, _CROSSING_ERRORS)
    curve = trace_curve(
        vector.tally, k, mechanism, points, start, crossing=crossing, with_recall=is_main, limit=vector.limit
    )
    wanted = curve.crossings.items() if is_main else ()
    return Results(
        [point for epsilon, shares in curve.shares.items() for point in _points(task, epsilon, shares)],
        [NeededEpsilon(vector.name, vector.d, k, task.method, chance, epsilon, nan) for chance, epsilon in wanted],
        [],
    )


def _precision(mechanism: Mechanism, errors: dict[Form, float] = _ERRORS) -> Precision:
    if mechanism.form is Form.UNKNOWN:
        return _DRAWN
    return Precision(goal=errors.get(mechanism.form, 1e-7))


def _points(task: Task, x: float, shares: Shares) -> list[Point]:
    name, d = task.vector.name, task.vector.d
    error, known = min(shares.error, 1.0), known_goals(shares)
    return [Point(task.figure, name, d, task.k, task.method, x, goal, shares.values[goal], error) for goal in known]


def _shapes(task: Task) -> Results:
    """Compute the shares at epsilon = 1 on each shape, and on more shapes between two that differ much."""

    def read(shape: float) -> Shares:
        return reader(zipf(shape).tally, task.k, task.mechanism, _precision(task.mechanism))(1.0)

    seen = {shape: read(shape) for shape in _SHAPES}
    refine(seen, read, len(_SHAPES) + _MORE_SHAPES)
    # Equal scores, last: `refine` takes geometric means, and there is none between 0 and another shape.
    seen[0.0] = read(0.0)
    return Results([point for x in sorted(seen) for point in _points(task, x, seen[x])], [], [])


def _rise_of_gumbel(task: Task) -> Results:
    """Compute the curve of Gumbel noise, or estimate some points of another noise along the rise of Gumbel's."""
    known = trace_curve(task.vector.tally, task.k, PAPERS, Precision(), 1.0, limit=task.vector.limit)
    if not task.mechanism.needs_integrals:
        return Results([point for x, shares in known.shares.items() for point in _points(task, x, shares)], [], [])
    low, high = min(known.shares), max(known.shares)
    low = max((x for x, shares in known.shares.items() if shares.values["good"] < 0.01), default=low)
    high = min((x for x, shares in known.shares.items() if shares.values["top"] > 0.99), default=high)
    read = reader(task.vector.tally, task.k, task.mechanism, _DRAWN, limit=task.vector.limit)
    chosen = [low * (high / low) ** (step / (_POINTS - 1)) for step in range(_POINTS)]
    seen = {x: read(x) for x in chosen}
    refine(seen, read, _MOST_POINTS)
    return Results([point for x in sorted(seen) for point in _points(task, x, seen[x])], [], [])


def _time(task: Task) -> Results:
    """Measure the median time of one whole release at epsilon = 1."""
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


def summarise(results: Results, left_out: Sequence[Task] = ()) -> list[str]:
    """Return the findings of a study as sentences, the most important first, and the tasks that were left out."""
    rows = [row for row in results.budgets if row.probability == _USUAL]
    points = [point for point in results.points if point.figure == "methods"]
    known = sorted({(row.vector, row.k) for row in rows})
    computed = sorted({(point.vector, point.k) for point in points})
    notes = []
    if known:
        groups = ([row for row in rows if (row.vector, row.k) == case] for case in known)
        best = [min(group, key=lambda row: row.epsilon) for group in groups]
        (first, most), *others = Counter(METHODS[row.method].name for row in best).most_common()
        rest = "".join(f", {name} in {count}" for name, count in others)
        notes.append(
            f"{first.capitalize()} was cheapest in {most} of {_count_cases(known)}{rest}: it released exactly the "
            "k best items nine times in ten with the least epsilon."
        )
    if computed:
        count = len({point.method for point in points})
        methods = (_NUMBERS[count] if count < len(_NUMBERS) else str(count)).capitalize()
        ks = _join([f"{k:,}" for k in sorted({k for _, k in computed})])
        notes.append(
            f"{methods} methods were compared on {_join(sorted({vector for vector, _ in computed}))}, at k = {ks}: "
            f"{_count_cases(computed)} of a score vector and a k. Every probability is computed from the scores; where "
            "one is estimated from draws, a pale band says so."
        )
    told = []
    for label in METHODS:
        own = [row for row in rows if row.method == label and not isnan(row.ratio)]
        ratios = {k: median(row.ratio for row in own if row.k == k) for k in sorted({row.k for row in own})}
        multiples = [f"{describe_multiple(ratio)} times as much at k = {k:,}" for k, ratio in ratios.items()]
        if label != PAPERS.label and multiples:
            told.append(f"{_IN_PROSE.get(label, label.capitalize())} took {_join(multiples)}.")
    if told:
        among = ", in the median over the vectors" if len({row.vector for row in rows}) > 1 else ""
        paper = f"canonical with gamma = {PAPERS.gamma}, the paper's"
        notes += [f"How much epsilon that took, in multiples of {paper}{among}:", *told]
    joint = [name for name, mechanism in METHODS.items() if mechanism.name == "joint"]
    for (vector, k), method, goal in product(computed, joint, CURVE_GOALS):
        wanted = (vector, k, method, goal)
        curve = [point for point in points if (point.vector, point.k, point.method, point.goal) == wanted]
        if (plateau := find_plateau(curve)) is None:
            continue
        point, until = plateau
        notes.append(
            "Joint's curves rest on their way up, and that is no mistake: it judges a list by its worst place alone, "
            "so that all lists with the same worst place are equally likely, and more epsilon changes nothing until it "
            f"rules them out all at once. On {vector} at k = {k:,} {point.goal.upper()} stays near "
            f"{100 * point.probability:.0f}% from epsilon = {three_digits(point.x)} to {three_digits(until)}."
        )
        break
    if tied := [case for case in computed if case not in known]:
        notes.append(
            f"Not counted above: {_name_cases(tied)}. There the k-th best score has equals, so that no method and "
            "no epsilon gives exactly one list nine times in ten."
        )
    if short := {(task.vector.name, task.k) for task in left_out if task.k >= task.vector.d}:
        names = _name_cases(sorted(short))
        notes.append(f"Left out: {names}, where there are no more items than that and so nothing to choose.")
    if slow := [task for task in left_out if task.heavy]:
        names = _join(sorted({task.mechanism.name for task in slow}))
        cases = _name_cases(sorted({(task.vector.name, task.k) for task in slow}))
        notes.append(f"Left out: {names} on {cases}, which would take many minutes; discreet study --full does it.")
    if results.times:
        slowest = max(results.times, key=lambda row: row.seconds)
        notes.append(
            f"One release took {1000 * min(row.seconds for row in results.times):.1f} to "
            f"{1000 * slowest.seconds:.1f} ms on this machine, everything included; the slowest was {slowest.method} "
            f"on {slowest.vector} at k = {slowest.k:,}."
        )
    return notes


def _name_cases(cases: Sequence[Case]) -> str:
    """Return vectors with their k in words, such as "STEPS at k = 10 and 100"."""
    ks: dict[str, list[str]] = {}
    for vector, k in cases:
        ks.setdefault(vector, []).append(f"{k:,}")
    return _join([f"{vector} at k = {_join(known)}" for vector, known in ks.items()])


def _count_cases(cases: Sequence[Case]) -> str:
    return f"{len(cases)} case{'' if len(cases) == 1 else 's'}"


def _join(words: Sequence[str]) -> str:
    """Return words as in a sentence: "10, 100 and 1,000"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
