"""What utility costs: against one scan of all classes, and of a large vector against Netflix."""

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
    """Time for Netflix and for a large vector, and the memory of that."""
    films, large = netflix(), zipf(run.size(10**6))
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
