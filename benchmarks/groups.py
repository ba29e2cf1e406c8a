"""Lists by group: many groups of scores that the caller holds, in one release."""

from __future__ import annotations

import time

import numpy as np

import discreet
from scores import zipf
from suite import Row, Rows, Run

ITEMS, K = 1000, 10


def rows(run: Run) -> Rows:
    """The whole of `top_k`, a group, for counts that begin with about 10,000 users, in one group each or in many."""
    groups = run.size(10_000)
    generator = np.random.default_rng(1)
    scores = {group: generator.poisson(zipf(ITEMS) // 10**5) for group in range(groups)}
    for each_user, epsilon in (("one", 1), ("many", groups)):
        source = discreet.grouped(scores, each_user=each_user)
        begun = time.perf_counter()
        discreet.top_k(source, K, epsilon)
        each = 1000 * (time.perf_counter() - begun) / groups
        yield Row(f"{groups:,} groups of {ITEMS:,} items, k = {K}, {each_user!r}", each, "ms a group", 0.5)
