"""Many items: whole releases against np.sort, np.partition and the plain float one-shot of the same array."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

import discreet
from discreet.mechanisms.noise import NOISES
from peers import PLAIN, plain_one_shot
from scores import OF_COUNTS, distinct, zipf
from suite import Row, Rows, Run, power
from timing import Task

KINDS: dict[str, tuple[Callable[[int], np.ndarray], float]] = {"int64": (zipf, 1.5), "float64": (distinct, 1.2)}
"""The function that makes the scores, and the longest time of a release in sorts.

Equal counts need no sort, distinct scores do.
"""


LIMIT = "times 1.5 canonical + 2 ms"


def rows(run: Run) -> Rows:
    """Measure counts and distinct floats of both sizes, then the five noises of one-shot, the histogram and core."""
    for d in (run.size(10**6), run.size(10**7)):
        for kind in KINDS:
            yield from releases(run, kind, d)
    yield from noises(run, run.size(10**6))
    yield from histograms(run, run.size(10**6))
    yield from cores(run, run.size(10**6))


def releases(run: Run, kind: str, d: int) -> Rows:
    """Measure the whole of top_k for several k and epsilon."""
    make, sorts = KINDS[kind]
    scores, is_largest = make(d), d == run.size(10**7)
    for k in places(d):
        for epsilon in ("1", "0.01"):
            tops = k == 1000 and epsilon == "1" and kind == "float64" and is_largest
            tasks: dict[str, Task] = {
                "top_k": partial(discreet.top_k, scores, k, epsilon, sensitivity=OF_COUNTS),
                "plain": partial(plain_one_shot, scores, k, float(epsilon)),
                **({"sort": partial(np.sort, scores)} if is_largest else {}),
                **({"partition": partial(np.partition, scores, d - k)} if tops else {}),
            }
            times = run.medians(tasks, repeats=7 if is_largest else 15)
            limits = {
                "sort": (sorts, "times np.sort"),
                "partition": (2, "times np.partition"),
                "plain": (1, PLAIN),
            }
            for name, (target, unit) in limits.items():
                if name in times:
                    what = f"{kind}, d = {power(d)}, k = {power(k)}, epsilon = {epsilon}"
                    yield Row(what, times["top_k"] / times[name], unit, target, one=times[name])


def places(d: int) -> list[int]:
    """Return the k that are measured, as far as there are so many items."""
    return [k for k in (10, 1000, 10**5) if k < d]


def histograms(run: Run, d: int) -> Rows:
    """Compare a histogram for users of at most three items with one and a half canonical releases and 2 ms."""
    scores, few = zipf(d), discreet.Sensitivity(items=3)
    for k in places(d)[:2]:
        for epsilon in ("1", "0.01"):
            tasks: dict[str, Task] = {
                "canonical": partial(discreet.top_k, scores, k, epsilon, sensitivity=OF_COUNTS),
                "histogram": partial(
                    discreet.top_k, scores, k, epsilon, mechanism=discreet.Histogram(), sensitivity=few
                ),
            }
            times = run.medians(tasks, repeats=11)
            limit = 1.5 * times["canonical"] + 0.002
            what = f"histogram, d = {power(d)}, k = {power(k)}, epsilon = {epsilon}"
            yield Row(what, times["histogram"] / limit, LIMIT, 1, one=limit)


def cores(run: Run, d: int) -> Rows:
    """Core against one and a half canonical releases and 2 ms: where all k are supported, and where fewer are.

    Where none is, it takes what its fallback takes, which for one-shot of many items at a small epsilon is longer.
    """
    for kind, (make, _) in KINDS.items():
        scores = make(d)
        for k in (k for k in (100, 1000) if k < d):
            for epsilon in ("1", "0.01", "0.001"):
                tasks: dict[str, Task] = {
                    "canonical": partial(discreet.top_k, scores, k, epsilon, sensitivity=OF_COUNTS),
                    "core": partial(
                        discreet.top_k, scores, k, epsilon, sensitivity=OF_COUNTS, mechanism=discreet.Core()
                    ),
                }
                times = run.medians(tasks, repeats=11)
                limit = 1.5 * times["canonical"] + 0.002
                what = f"core, {kind}, d = {power(d)}, k = {power(k)}, epsilon = {epsilon}"
                yield Row(what, times["core"] / limit, LIMIT, 1, one=limit)


def noises(run: Run, d: int) -> Rows:
    """One-shot against a sort and the plain float one-shot together."""
    scores, k = zipf(d), 1000
    for epsilon in ("1", "0.01"):
        exact: dict[str, Task] = {
            noise: partial(discreet.top_k, scores, k, epsilon, mechanism=discreet.OneShot(noise)) for noise in NOISES
        }
        plain: dict[str, Task] = {
            "sort": partial(np.sort, scores),
            "plain": partial(plain_one_shot, scores, k, float(epsilon)),
        }
        times = run.medians({**exact, **plain}, repeats=11)
        both = times["sort"] + times["plain"]
        for noise in exact:
            what = f"one-shot, {noise}, d = {power(d)}, k = {k}, epsilon = {epsilon}"
            yield Row(what, times[noise] / both, "times np.sort and the plain float one-shot together", 2, one=both)
