"""What the definition expects a caller of `top_k` to see: the law that the counts of an audit are held against.

It comes from `discreet.evidence.definition` alone, so that no formula of the mechanisms can vouch for itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from discreet.analysis.statistics import fit
from discreet.errors import InvalidValueError, shown
from discreet.evidence.drawing import Input
from discreet.evidence.judge import visible_law, visible_sets
from discreet.evidence.report import Outcome
from discreet.mechanisms.base import Mechanism

MOST_OUTCOMES = 100_000
"""Up to how many outcomes are enumerated."""

_SHARE = 0.1
"""How much of the probability a level has at least, so that levels are few and small faults add up in them."""


@dataclass(frozen=True)
class Expected:
    """The law of what is seen.

    Attributes
    ----------
    probabilities
        The probability of every outcome.
    sees_order
        Whether outcomes have their order; that of many items may have no single integral.
    """

    probabilities: dict[Outcome, float]
    sees_order: bool = True

    def fits(self, counts: Mapping[Any, int]) -> list[float]:
        """The probability of counts at least as far from the law as these: outcome by outcome, and level by level."""
        seen: Counter[Any] = Counter()
        for outcome, times in counts.items():
            seen[outcome if self.sees_order else _without_order(outcome)] += times
        levels: Counter[Any] = Counter()
        for outcome, times in seen.items():
            levels[self._level.get(outcome, -1)] += times
        chances: dict[int, float] = {}
        for outcome, level in self._level.items():
            chances[level] = chances.get(level, 0.0) + self.probabilities[outcome]
        return [fit(seen, self.probabilities), fit(levels, chances)]

    @cached_property
    def _level(self) -> dict[Outcome, int]:
        """The outcomes by falling probability, cut where a tenth has been reached; the equally likely stay together."""
        level, share, before = 0, 0.0, 0.0
        levels = {}
        for outcome, chance in sorted(self.probabilities.items(), key=lambda one: -one[1]):
            if share >= _SHARE and not math.isclose(chance, before, rel_tol=1e-9):
                level, share = level + 1, 0.0
            levels[outcome] = level
            share, before = share + chance, chance
        return levels


def expected(drawn_from: Input) -> Expected:
    """The law of a release of some input, by the definition."""
    scores, k, mechanism = drawn_from.scores, drawn_from.k, drawn_from.mechanism
    promised = drawn_from.epsilon, drawn_from.sensitivity, drawn_from.adjacency
    if k < len(scores) and _has_sets_alone(mechanism, k):
        sets = visible_sets(mechanism, scores, k, *promised)
        return Expected({outcome: math.exp(log) for outcome, log in sets.items()}, sees_order=False)
    law = visible_law(mechanism, scores, k, *promised)
    return Expected({outcome: math.exp(log) for outcome, log in law.items()})


def count_outcomes(mechanism: Mechanism, d: int, k: int) -> int:
    """How many outcomes there are to enumerate."""
    is_set = not mechanism.ordered or _has_sets_alone(mechanism, k)
    return math.comb(d, k) if is_set else math.perm(d, k)


def check_enumerable(mechanism: Mechanism, d: int, k: int) -> None:
    """Raises where there are more outcomes than can be enumerated."""
    if count_outcomes(mechanism, d, k) > MOST_OUTCOMES:
        raise InvalidValueError(
            f"k must leave at most {MOST_OUTCOMES:,} outcomes to enumerate, and {shown(k)} of {d} items by "
            f"{mechanism!r} have {count_outcomes(mechanism, d, k):,}"
        )


def _has_sets_alone(mechanism: Mechanism, k: int) -> bool:
    return mechanism.longest_exact_order is not None and k > mechanism.longest_exact_order


def _without_order(outcome: Any) -> Any:
    return (outcome[0], None, *outcome[2:]) if isinstance(outcome, tuple) and len(outcome) > 1 else outcome
