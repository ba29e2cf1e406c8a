"""Measure the time of utility against one scan of all classes, of a large vector against Netflix, and of a plan."""

from __future__ import annotations

from functools import partial

import numpy as np

import discreet
from peers import scan
from scores import NO_NETFLIX, netflix, zipf
from small import SCAN
from suite import Row, Rows, Run, power
from timing import Task, peak

K, MANY = 1000, 10**4


def rows(run: Run) -> Rows:
    """Time for Netflix and for a large vector, the memory of that, and the time to plan for it."""
    films, large = netflix(), zipf(run.size(10**6))
    for k in (100, 1000):
        for goal in ("top", "good", "recall"):
            task = partial(discreet.plan, large, k, goal=goal, probability="0.9")
            seconds = run.medians({"plan": task}, repeats=3)["plan"]
            yield Row(f"plan, d = {power(len(large))}, k = {k}, {goal}", seconds, "s", 10)
    if films is None:
        yield NO_NETFLIX
        return
    descending = np.sort(films)[::-1].astype(np.float64)
    for epsilon in ("0.01", "0.1", "1"):
        tasks: dict[str, Task] = {
            "scan": partial(scan, descending, K, float(epsilon)),
            "films": partial(discreet.utility, films, K, epsilon),
            "large": partial(discreet.utility, large, MANY, epsilon),
        }
        times = run.medians(tasks, repeats=7)
        what, at = f"utility, Netflix, k = {K}", f"epsilon = {epsilon}"
        yield Row(f"{what}, {at}", times["films"] / times["scan"], SCAN, 0.5, one=times["scan"])
        what = f"utility, d = {power(len(large))}, k = {power(MANY)}"
        yield Row(f"{what}, {at}", times["large"] / times["films"], "times Netflix", 10, one=times["films"])
        held = peak(partial(discreet.utility, large, MANY, epsilon)) / 1e6
        yield Row(f"{what}, {at}, memory", held, "MB", 500)
