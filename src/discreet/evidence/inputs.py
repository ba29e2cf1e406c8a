"""The inputs that an audit draws from where the caller names none, and the event that tells two inputs apart best.

A pair of neighbours of three or four items tells most about the epsilon that is spent: by the event by which the
largest epsilon can be shown in so many draws. One longer input is there for the sampler: its classes are so many that
boxes hold several of them and streams several items, and its top-k is drawn about every other time, so that what is
drawn through boxes and what is not are held against each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.errors import InvalidValueError, quote
from discreet.evidence import definition
from discreet.evidence.drawing import Input
from discreet.evidence.expected import count_outcomes, expected_law
from discreet.evidence.neighbours import Family, bound_users, families
from discreet.evidence.report import Outcome
from discreet.evidence.visible_laws import label
from discreet.exact.arrays import Floats
from discreet.mechanisms.base import Mechanism
from discreet.privacy import Sensitivity

_TOP = (0, 0, 0, 1)
_REST = (3, 0, 3, 1, 1, 2, 3, 0, 2, 2)
"""The scores of the long input, in units of noise: of the first items, which are lifted, and of the others."""

_HIGHEST = 64
"""By how much the first items are lifted at most, in units of noise."""

_ENOUGH = 25_000
"""How many outcomes a long input has at most."""


def telling_pair(
    mechanism: Mechanism, k: int | None, epsilon: Fraction, adjacency: str, draws: int
) -> tuple[Input, Input]:
    """The pair of neighbours that can show most of the epsilon spent in so many draws, by the definition."""
    pairs = [
        pair
        for family in bound_users(mechanism, families(deep=False), (1,))
        if family.adjacency == adjacency and family.d <= 4
        for pair in _pairs(family, (1 if family.d == 3 else 2) if k is None else k, mechanism, epsilon)
    ]
    if not pairs:
        raise InvalidValueError(f"k must be 1, 2 or 3 where scores and neighbour are left out, not {quote(k)}")
    laws = {one: expected_law(one).probabilities for one in dict.fromkeys(one for pair in pairs for one in pair)}
    return max(pairs, key=lambda pair: _can_show(laws[pair[0]], laws[pair[1]], draws))


def long_input(mechanism: Mechanism, k: int | None, epsilon: Fraction, adjacency: str) -> Input:
    """The input whose classes are many, with a k of its own where the caller names none."""
    size = _usual_size(mechanism) if k is None else k
    count = max(n for n in range(1, len(_REST) + 1) if count_outcomes(mechanism, size + n, size) <= _ENOUGH)
    limit = Sensitivity(items=1 if mechanism.releases_values else None)
    unit = max(1, round(1 / definition.scale(epsilon, limit.down, limit.up, adjacency)))

    def lift(by: int) -> Input:
        scores = [by + top for top in _TOP[:size]] + [*_REST[:count]]
        return Input(tuple(Fraction(unit * score) for score in scores), size, epsilon, mechanism, limit, adjacency)

    # The least lift by which the top-k is drawn every other time or more often; with gamma = 0 there is none.
    low, high = 0, _HIGHEST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _top_chance(lift(middle)) < 0.5 else (low, middle)
    return lift(high)


def _pairs(family: Family, k: int, mechanism: Mechanism, epsilon: Fraction) -> Iterator[tuple[Input, Input]]:
    if not 1 <= k < family.d:
        return
    for scores in family.scores:
        first = Input(scores, k, epsilon, mechanism, family.sensitivity, family.adjacency)
        yield from ((first, replace(first, scores=other)) for other in family.neighbours(scores))


def _can_show(here: dict[Outcome, float], there: dict[Outcome, float], draws: int) -> float:
    """About how much epsilon so many draws of two inputs of these laws will show to be spent."""
    p = draws * np.array([here[outcome] for outcome in here])
    q = draws * np.array([there[outcome] for outcome in here])
    return max(best_prefix(p, q)[0], best_prefix(q, p)[0])


def _usual_size(mechanism: Mechanism) -> int:
    """The k of the long input: as large as the definition can do quickly."""
    if not mechanism.ordered:
        return 4
    return 2 if mechanism.needs_integrals else 3


def _top_chance(drawn_from: Input) -> float:
    """The probability that the k highest are released, in whatever order."""
    highest = sorted(range(len(drawn_from.scores)), key=drawn_from.scores.__getitem__)[-drawn_from.k :]
    top = tuple(sorted(label(item) for item in highest))
    return sum(chance for outcome, chance in expected_law(drawn_from).probabilities.items() if outcome[0] == top)


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
