"""The law of what `top_k` shows, judged by the definition: outcome by outcome, the same probability.

That neighbouring laws are close says nothing of a class size, a factor or a scale that is wrong on both sides alike. So
every law is also compared with the one that `discreet.evidence.definition` enumerates, which shares no formula with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import InvalidValueError, shown
from discreet.evidence import definition
from discreet.evidence.neighbours import Scores
from discreet.evidence.report import Outcome, listed, spelt
from discreet.evidence.seen import Laws, label
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.registry import to_dict
from discreet.noise import noise_of
from discreet.privacy import Sensitivity

TOLERANCE = 1e-9
"""How far log probabilities may be apart: the definition is computed in floats, with errors a hundred times smaller."""


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
        where = f"{listed(self.scores)}, k = {self.k}, {self.adjacency}, epsilon = {self.epsilon}"
        both = f"has probability {_probability(self.log_probability)}, by definition {_probability(self.defined)}"
        return f"{spelt(self.outcome)} {both}, at {where}"


def departure(laws: Laws, scores: Scores) -> Departure | None:
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
    mechanism: Mechanism, scores: Scores, k: int, epsilon: Fraction, limit: Sensitivity, adjacency: str
) -> dict[Outcome, float]:
    """The same, from all that the law depends on; `limit` is how far adding one user can move a score."""
    if k == len(scores):
        # All items are released, without an order.
        return {_seen(tuple(range(k)), False): 0.0}
    check_defined(mechanism)
    law = definition.law(to_dict(mechanism), scores, k, epsilon, limit.down, limit.up, adjacency)
    return {_seen(positions, mechanism.ordered): log for positions, log in law.items()}


def visible_sets(
    mechanism: Mechanism, scores: Scores, k: int, epsilon: Fraction, limit: Sensitivity, adjacency: str
) -> dict[Outcome, float]:
    """The log probability of what is seen but for its order."""
    check_defined(mechanism)
    sets = definition.law_of_sets(to_dict(mechanism), scores, k, epsilon, limit.down, limit.up, adjacency)
    return {_seen(positions, False): log for positions, log in sets.items()}


def check_defined(mechanism: Mechanism) -> None:
    """Raises unless the definition knows the noise of a mechanism."""
    name = noise_of(mechanism).name
    if name not in definition.LOG_PDF:
        known = ", ".join(definition.LOG_PDF)
        raise InvalidValueError(f"noise must be one that the definition knows, {known}, not {shown(name)}")


def _seen(positions: tuple[int, ...], ordered: bool) -> Outcome:
    return tuple(map(label, sorted(positions))), tuple(map(label, positions)) if ordered else None


def _probability(log: float) -> str:
    return f"{math.exp(log):.6g}" if log > -700.0 or log == -math.inf else f"exp({log:.6g})"
