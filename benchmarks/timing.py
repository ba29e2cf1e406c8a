"""Ratios of times: several things measured in turn in one process, and their medians compared."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def medians(tasks: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The median seconds of each task, repeated in turns so that a slow minute of the machine hits all of them."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()
    for _ in range(repeats):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}
