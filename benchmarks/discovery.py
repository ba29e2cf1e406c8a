"""Items that nobody listed: drawing how many of 10^9 are kept, given their runs of equal numbers of users."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np

from discreet.exact.entropy import Entropy
from discreet.mechanisms.discovery import Discovery, make_discovery
from suite import Row, Rows, Run, power

K, DELTA = 20, "1e-8"


def rows(run: Run) -> Rows:
    """The draw itself in milliseconds, and beside what NumPy takes for binomials of the same runs in floats."""
    d = run.size(10**9)
    users, items = zipf_runs(d)
    for most in (1, 10, 100):
        found = make_discovery(DELTA, most, Fraction(1), K)
        tasks = {
            "exact": partial(found.sample_kept, Entropy(), users, items),
            "floats": partial(np.random.default_rng(0).binomial, items, keep_probabilities(found, users)),
        }
        times = run.medians(tasks, repeats=15)
        what = f"{power(int(items.sum()))} items in {len(items):,} runs, {most} of a user's count"
        yield Row(what, 1e3 * times["exact"], "ms", 50)
        yield Row(what, times["exact"] / times["floats"], "times NumPy's binomials in floats", one=times["floats"])


def zipf_runs(d: int) -> tuple[np.ndarray, np.ndarray]:
    """The different numbers of users where the item of rank r has d / r of them, and how many items have each."""
    root = math.isqrt(d)
    small = np.arange(1, root + 1)
    users = np.unique(np.concatenate([small, d // small]))
    items = -np.diff(np.append(d // users, 0))
    return users[items > 0], items[items > 0]


def keep_probabilities(found: Discovery, users: np.ndarray) -> np.ndarray:
    """P(N >= T - n) in floats, as a plain implementation has it."""
    rate = float(found.rate)
    rarer = np.exp(-rate * (np.abs(found.threshold - users - 0.5) + 0.5)) / (1.0 + math.exp(-rate))
    return np.where(users < found.threshold, rarer, 1.0 - rarer)
