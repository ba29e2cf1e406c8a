"""The event that tells two inputs apart best: the one by which the largest epsilon can be shown in so many draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.exact.arrays import Floats


def telling_event(one: Mapping[Any, int], other: Mapping[Any, int]) -> tuple[tuple[Any, ...], bool]:
    """The event that tells two inputs apart best by these counts, and whether it is likelier on the second."""
    outcomes = list(dict.fromkeys([*one, *other]))
    here = np.array([one.get(outcome, 0) for outcome in outcomes], np.float64)
    there = np.array([other.get(outcome, 0) for outcome in outcomes], np.float64)
    candidates = [(*best_prefix(here, there), False), (*best_prefix(there, here), True)]
    _, members, swapped = max(candidates, key=lambda candidate: candidate[0])
    return tuple(outcomes[i] for i in members), swapped


def best_prefix(p: Floats, q: Floats) -> tuple[float, list[int]]:
    """Of the events that take outcomes by falling ratio, the one with the largest likely lower bound on epsilon."""
    order = np.argsort(-(p + 0.5) / (q + 0.5), kind="stable")
    hits, misses = np.cumsum(p[order]), np.cumsum(q[order])
    bounds = _likely_bound((hits + 0.5) / (p.sum() + 1.0), (misses + 0.5) / (q.sum() + 1.0), float(p.sum()))
    best = int(bounds.argmax())
    return float(bounds[best]), order[: best + 1].tolist()


def _likely_bound(p: Floats, q: Floats, draws: float) -> Floats:
    """About what the lower bound on log(p/q) will be: by Wilson's intervals, four standard errors wide."""
    room = 16.0 / draws

    def half_width(share: Floats) -> Floats:
        return np.sqrt(room * share * (1.0 - share) + room**2 / 4.0)

    return np.log((p + room / 2.0 - half_width(p)) / (q + room / 2.0 + half_width(q)))
