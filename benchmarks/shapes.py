"""Scores of every shape, steep and flat: whole releases against np.sort and OpenDP's top-k, and in milliseconds.

What a release costs depends on how many items are in doubt, and so on the shape of the scores and on epsilon. These are
the shapes at which the ratios are largest and smallest, and some between; the README has their range.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

import discreet
from peers import NO_OPENDP, has_opendp, opendp
from scores import OF_COUNTS, distinct, zipf
from suite import Row, Rows, Run, power
from timing import Task

Shape = Callable[[int, np.random.Generator], np.ndarray]

COUNTS: dict[str, Shape] = {
    "Zipf": lambda d, rng: zipf(d),
    "Zipf, 10^4 at most": lambda d, rng: zipf(d) // 10**5,
    "each of 0 to d - 1 once": lambda d, rng: rng.permutation(d),
    "uniform below 100": lambda d, rng: rng.integers(0, 100, d),
    "uniform below 10^9": lambda d, rng: rng.integers(0, 10**9, d),
    "normal": lambda d, rng: rng.normal(10**6, 10**4, d).astype(np.int64),
    "Poisson": lambda d, rng: rng.poisson(100, d),
    "geometric": lambda d, rng: rng.geometric(0.001, d),
    "all equal": lambda d, rng: np.full(d, 7),
}
FLOATS: dict[str, Shape] = {
    "Zipf, distinct floats": lambda d, rng: distinct(d),
    "uniform floats below 10^4": lambda d, rng: 1e4 * rng.random(d),
    "normal floats": lambda d, rng: rng.normal(0, 1e4, d),
}
EPSILONS = ("1", "0.01")
K = 100


def rows(run: Run) -> Rows:
    """Many items of each shape against a sort, few of them against OpenDP and the clock, and the range of each."""
    yield from with_range(against_sort(run, run.size(10**7)))
    yield from with_range(by_the_clock(run, run.size(10**4)))
    if has_opendp():
        yield from with_range(against_opendp(run, run.size(10**4)))
    else:
        yield NO_OPENDP


def against_sort(run: Run, d: int) -> Rows:
    """Measure a whole release against np.sort of the same array."""
    for name, make in {**COUNTS, **FLOATS}.items():
        scores = make(d, np.random.default_rng(3))
        for epsilon in EPSILONS:
            tasks: dict[str, Task] = {
                "top_k": partial(discreet.top_k, scores, K, epsilon, sensitivity=OF_COUNTS),
                "sort": partial(np.sort, scores),
            }
            times = run.medians(tasks, repeats=5)
            yield Row(label(name, d, epsilon), times["top_k"] / times["sort"], "times np.sort", one=times["sort"])


def by_the_clock(run: Run, d: int) -> Rows:
    """Measure a whole release in milliseconds."""
    for name, make in COUNTS.items():
        scores = make(d, np.random.default_rng(3))
        for epsilon in EPSILONS:
            tasks: dict[str, Task] = {"top_k": partial(discreet.top_k, scores, K, epsilon, sensitivity=OF_COUNTS)}
            yield Row(label(name, d, epsilon), 1e3 * run.medians(tasks, repeats=51)["top_k"], "ms")


def against_opendp(run: Run, d: int) -> Rows:
    """Yield the number of releases that fit into one of OpenDP."""
    for name, make in COUNTS.items():
        scores = make(d, np.random.default_rng(3))
        for epsilon in EPSILONS:
            tasks: dict[str, Task] = {
                "top_k": partial(discreet.top_k, scores, K, epsilon, sensitivity=OF_COUNTS),
                "library": opendp(scores, K, float(epsilon)),
            }
            times = run.medians(tasks, repeats=11)
            measured, unit = times["library"] / times["top_k"], "times faster than OpenDP"
            yield Row(label(name, d, epsilon), measured, unit, 50, at_least=True, one=times["library"])


def label(name: str, d: int, epsilon: str) -> str:
    """Return the released items."""
    return f"{name}, d = {power(d)}, k = {K}, epsilon = {epsilon}"


def with_range(found: Rows) -> Rows:
    """Return the rows, and after them the least and the largest over all shapes."""
    measured = []
    for row in found:
        yield row
        if isinstance(row, Row):
            measured.append(row)
    for word, choose in (("least", min), ("largest", max)):
        extreme = choose(measured, key=lambda row: row.measured)
        yield Row(f"{word} of all shapes", extreme.measured, extreme.unit, at_least=extreme.at_least, one=extreme.one)
