"""Ratios of times: several things measured in turn in one process, and their medians compared."""

from __future__ import annotations

import math
import statistics
import time
import tracemalloc
from collections.abc import Callable, Mapping

Task = Callable[[], object]


def medians(tasks: Mapping[str, Task], repeats: int, patience: float = math.inf) -> dict[str, float]:
    """Return the median seconds of each task, repeated in turns so that a slow minute of the machine hits all of them.

    A task that has taken `patience` seconds in all sits out the rounds that are left. The first call of each is not
    counted, unless it alone took so long.
    """
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeats + 1):
        for name, task in tasks.items():
            if sum(times[name]) < patience:
                times[name].append(seconds(task))
    return {name: statistics.median(values[1:] or values) for name, values in times.items()}


def minima(tasks: Mapping[str, Task], repeats: int) -> dict[str, float]:
    """Return the least seconds of each task, repeated in turns: what it takes where nothing else runs."""
    for task in tasks.values():
        task()
    rounds = [{name: seconds(task) for name, task in tasks.items()} for _ in range(repeats)]
    return {name: min(each[name] for each in rounds) for name in tasks}


def seconds(task: Task) -> float:
    """Return the seconds that one call takes."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def peak(task: Task) -> int:
    """Return the most bytes that Python and NumPy hold during one call beside what they held before."""
    tracemalloc.start()
    try:
        task()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
