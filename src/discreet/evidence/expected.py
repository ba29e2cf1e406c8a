"""What the definition expects a caller of `top_k` to see, and what departs from it.

It comes from `discreet.evidence.definition` alone, so that no formula of the mechanisms can vouch for itself. That
neighbouring laws are close says nothing of a class size, a factor or a scale that is wrong on both sides alike. So
`verify` compares every law with the expected one, outcome by outcome, and `audit` holds its counts against it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from discreet.analysis.statistics import fit
from discreet.errors import InvalidValueError, quote
from discreet.evidence import definition
from discreet.evidence.drawing import Input
from discreet.evidence.neighbours import Scores
from discreet.evidence.report import Outcome, format_outcome, format_scores
from discreet.evidence.visible_laws import Laws, label
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.registry import to_dict
from discreet.noise import noise_of
from discreet.privacy import Sensitivity

TOLERANCE = 1e-9
"""How far log probabilities may be apart: the definition is computed in floats, with errors a hundred times smaller."""

MOST_OUTCOMES = 100_000
"""Up to how many outcomes are enumerated."""

_SHARE = 0.1
"""How much of the probability a level has at least, so that levels are few and small faults add up in them."""


@dataclass(frozen=True)
class Departure:
    """An outcome whose probability is not that of the definition.

    Attributes
    ----------
    scores, k, epsilon, adjacency
        Where.
    outcome
        What is seen.
    log_probability, defined
        The logarithms of its probability, and of the one that the definition gives it.
    """

    scores: Scores
    k: int
    epsilon: Fraction
    adjacency: str
    outcome: Outcome
    log_probability: float
    defined: float

    @property
    def size(self) -> float:
        """How far the two logarithms are apart."""
        return abs(self.log_probability - self.defined)

    def __str__(self) -> str:
        where = f"{format_scores(self.scores)}, k = {self.k}, {self.adjacency}, epsilon = {self.epsilon}"
        both = f"has probability {_probability(self.log_probability)}, by definition {_probability(self.defined)}"
        return f"{format_outcome(self.outcome)} {both}, at {where}"


def find_departure(laws: Laws, scores: Scores) -> Departure | None:
    """The outcome of an input that departs most from the definition, None where all have its probability."""
    found = {outcome: log for outcome, (log, _) in laws.law(scores).items()}
    defined = defined_law(laws, scores)
    worst: Departure | None = None
    for outcome in dict.fromkeys([*defined, *found]):
        pair = found.get(outcome, -math.inf), defined.get(outcome, -math.inf)
        if math.isfinite(pair[1]) and abs(pair[0] - pair[1]) <= TOLERANCE * max(1.0, abs(pair[1])):
            continue
        one = Departure(scores, laws.k, laws.epsilon, laws.family.adjacency, outcome, *pair)
        if worst is None or one.size > worst.size:
            worst = one
    return worst


def defined_law(laws: Laws, scores: Scores) -> dict[Outcome, float]:
    """The log probability that the definition gives everything that the caller can see."""
    family = laws.family
    return visible_law(laws.guarantee.mechanism, scores, laws.k, laws.epsilon, family.sensitivity, family.adjacency)


def visible_law(
    mechanism: Mechanism,
    scores: Scores,
    k: int,
    epsilon: Fraction,
    limit: Sensitivity,
    adjacency: str,
    *,
    as_sets: bool = False,
) -> dict[Outcome, float]:
    """The same, from all that the law depends on; `limit` is how far adding one user can move a score.

    With `as_sets` it is that of what is seen but for its order.
    """
    if k == len(scores) and not mechanism.releases_values:
        # All items are released, without an order.
        return {_observe(tuple(range(k)), False): 0.0}
    check_defined(mechanism)
    given = to_dict(mechanism), scores, k, epsilon, limit.down, limit.up, adjacency
    law = definition.law(*given, as_sets=as_sets, items=limit.items)
    return {_observe(positions, mechanism.ordered and not as_sets): log for positions, log in law.items()}


def check_defined(mechanism: Mechanism) -> None:
    """Raises unless the definition knows the noise of a mechanism."""
    name = noise_of(mechanism).name
    if name not in definition.LOG_PDF:
        known = ", ".join(definition.LOG_PDF)
        raise InvalidValueError(f"noise must be one that the definition knows, {known}, not {quote(name)}")


def _observe(drawn: tuple[Any, ...], ordered: bool) -> Outcome:
    # A mechanism that chooses between candidates says which, and no order.
    chosen, positions = (drawn[0], drawn[1:]) if drawn and isinstance(drawn[0], str) else (None, drawn)
    return tuple(map(label, sorted(positions))), tuple(map(label, positions)) if ordered else chosen


def _probability(log: float) -> str:
    return f"{math.exp(log):.6g}" if log > -700.0 or log == -math.inf else f"exp({log:.6g})"


@dataclass(frozen=True)
class ExpectedLaw:
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


def expected_law(drawn_from: Input) -> ExpectedLaw:
    """The law of a release of some input, by the definition."""
    scores, k, mechanism = drawn_from.scores, drawn_from.k, drawn_from.mechanism
    promised = drawn_from.epsilon, drawn_from.sensitivity, drawn_from.adjacency
    as_sets = k < len(scores) and _has_sets_alone(mechanism, k)
    law = visible_law(mechanism, scores, k, *promised, as_sets=as_sets)
    return ExpectedLaw({outcome: math.exp(log) for outcome, log in law.items()}, sees_order=not as_sets)


def count_outcomes(mechanism: Mechanism, d: int, k: int) -> int:
    """How many outcomes there are to enumerate."""
    is_set = not mechanism.ordered or _has_sets_alone(mechanism, k)
    return math.comb(d, k) if is_set else math.perm(d, k)


def check_enumerable(mechanism: Mechanism, d: int, k: int) -> None:
    """Raises where there are more outcomes than can be enumerated."""
    if count_outcomes(mechanism, d, k) > MOST_OUTCOMES:
        raise InvalidValueError(
            f"k must leave at most {MOST_OUTCOMES:,} outcomes to enumerate, and {quote(k)} of {d} items by "
            f"{mechanism!r} have {count_outcomes(mechanism, d, k):,}"
        )


def _has_sets_alone(mechanism: Mechanism, k: int) -> bool:
    return mechanism.longest_exact_order is not None and k > mechanism.longest_exact_order


def _without_order(outcome: Any) -> Any:
    return (outcome[0], None, *outcome[2:]) if isinstance(outcome, tuple) and len(outcome) > 1 else outcome
