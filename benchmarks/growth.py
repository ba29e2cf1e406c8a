"""Measure how the cost of a release grows with the number of items and with k."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np

import discreet
from discreet.sources.arrays.array import array_source
from large import KINDS
from scores import OF_COUNTS, zipf
from small import first_draw
from suite import Row, Rows, Run, power
from timing import Task

FEW, TIMES = 10**4, 20
"""The few items that growth is counted from; what is so short is done twenty times a round."""


def rows(run: Run) -> Rows:
    """Growth with d, with k, and of drawing alone."""
    for kind in KINDS:
        yield from with_d(run, kind, run.size(10**7, 10**8))
        yield from with_k(run, kind, run.size(10**7), run.size(10**6))
    yield from drawing(run, run.size(10**7))


def with_d(run: Run, kind: str, many: int) -> Rows:
    """Compare the growth of the cost from few items to many with the growth of np.sort."""
    few_scores, many_scores, k = KINDS[kind][0](FEW), KINDS[kind][0](many), 1000
    for epsilon in ("1", "0.01"):
        tasks: dict[str, Task] = {
            "few sort": often(partial(np.sort, few_scores)),
            "few": often(partial(discreet.top_k, few_scores, k, epsilon, sensitivity=OF_COUNTS)),
            "many sort": partial(np.sort, many_scores),
            "many": partial(discreet.top_k, many_scores, k, epsilon, sensitivity=OF_COUNTS),
        }
        times = run.medians(tasks, repeats=7)
        grown, sort_grown = (TIMES * times[f"many{what}"] / times[f"few{what}"] for what in ("", " sort"))
        what = f"{kind}, k = {k}, epsilon = {epsilon}: d from {power(FEW)} to {power(many)}"
        yield Row(what, grown / sort_grown, "times the growth of np.sort", 1)


def with_k(run: Run, kind: str, d: int, many: int) -> Rows:
    """Compare the cost of a large k with that of a small one, without the listing of so many labels in Python."""
    scores, positions = KINDS[kind][0](d), np.arange(many)
    for epsilon in ("1", "0.01"):
        tasks: dict[str, Task] = {
            str(k): partial(discreet.top_k, scores, k, epsilon, sensitivity=OF_COUNTS) for k in (10, many)
        }
        times = run.medians({**tasks, "listing": positions.tolist}, repeats=7)
        what = f"{kind}, d = {power(d)}, epsilon = {epsilon}: k from 10 to {power(many)}, without listing them"
        yield Row(what, (times[str(many)] - times["listing"]) / times["10"], "times", 3, one=times["10"])


def drawing(run: Run, many: int) -> Rows:
    """Drawing alone, with the tally given, for few and for many items."""
    large, small, k = array_source(zipf(many)).tally(), array_source(zipf(FEW)).tally(), 1000
    for epsilon in (Fraction(1), Fraction(1, 100)):
        tasks: dict[str, Task] = {
            "small": partial(first_draw, small, k, epsilon, discreet.Canonical()),
            "large": partial(first_draw, large, k, epsilon, discreet.Canonical()),
        }
        times = run.medians(tasks, repeats=101)
        what = f"drawing alone, k = {k}, epsilon = {float(epsilon):g}: d from {power(FEW)} to {power(many)}"
        yield Row(what, times["large"] / times["small"], "times", 2, one=times["small"])


def often(task: Task) -> Task:
    """Return the task, done many times."""

    def repeated() -> None:
        for _ in range(TIMES):
            task()

    return repeated
