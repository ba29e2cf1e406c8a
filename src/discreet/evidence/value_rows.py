"""The rows of `verify --all` on values: those that a histogram releases with its items, for one epsilon.

What is seen is an order of items and the value of each, rounded to the grid. Its law at the weight that `top_k` uses is
that of the definition, an integral over the last value. Two checks: no ratio of two neighbours is above epsilon, for
users of few items, and the weight is that of the definition, no less and no more than some user makes necessary.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from discreet.errors import InvalidValueError
from discreet.evidence import definition
from discreet.evidence.neighbours import Family, Scores, whole
from discreet.evidence.report import SLACK, Failure, OverTrials, Pair, share, verdict_word
from discreet.evidence.value_definition import ValueLaw, define_values
from discreet.evidence.visible_laws import label_scores
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.registry import all_variants
from discreet.privacy import ADJACENCIES, Sensitivity
from discreet.request import Request, make_request

EPSILON = Fraction(1, 2)
"""What each release costs."""

_STEPS = range(-4, 7)
"""The values that are looked at: beyond the scores of both neighbours on either side, where ratios stay as they are."""

_ROUNDING = 1e-10
"""What a log probability of the definition may be off by."""


@dataclass(frozen=True)
class ValuesFound:
    """What comparing all neighbours of one trial found.

    Attributes
    ----------
    pairs
        How many pairs of neighbouring inputs were compared.
    worst
        The largest log ratio, as a share of epsilon.
    pair
        Where it was found.
    weight
        What one unit of score adds to a value, in units of noise.
    """

    pairs: int
    worst: float
    pair: Pair
    weight: Fraction


@dataclass(frozen=True)
class ValueTrial:
    """Inputs of users of few items, and how many items are released with their values."""

    family: Family
    k: int

    def compare(self, mechanism: Mechanism) -> ValuesFound:
        """What comparing every input with all its neighbours finds."""
        laws: dict[Scores, ValueLaw] = {}
        weights: set[Fraction] = set()

        def law(scores: Scores) -> ValueLaw:
            if scores not in laws:
                weights.add(weight := self._weight(mechanism, scores))
                laws[scores] = define_values(scores, self.k, weight, _STEPS)
            return laws[scores]

        pairs = [(scores, other) for scores in self.family.scores for other in self.family.neighbours(scores)]
        ratios = [_largest_ratio(law(scores), law(other)) for scores, other in pairs]
        worst = max(range(len(pairs)), key=ratios.__getitem__)
        (weight,) = weights
        pair = Pair(*pairs[worst], self.k, EPSILON, self.family.adjacency)
        return ValuesFound(len(pairs), ratios[worst] / float(EPSILON), pair, weight)

    @property
    def weight(self) -> Fraction:
        """The weight by definition."""
        limit = self.family.sensitivity
        terms = limit.down, limit.up, self.family.adjacency, limit.items
        return definition.histogram_rate(EPSILON, self.family.d, *terms)

    def _weight(self, mechanism: Mechanism, scores: Scores) -> Fraction:
        """The weight with which `top_k` draws from an input."""
        request: Request = make_request(
            label_scores(scores), self.k, EPSILON,
            mechanism=mechanism, sensitivity=self.family.sensitivity, adjacency=self.family.adjacency,
        )  # fmt: skip
        if request.value_format is None or request.takes_all_items:
            raise InvalidValueError(f"mechanism must be one that releases values, not {mechanism!r}")
        prepared: Any = request.prepare(request.source.tally())
        return Fraction(prepared.weight)


@dataclass(frozen=True)
class ValueVerdict(OverTrials):
    """What was found for the values of one mechanism.

    Attributes
    ----------
    mechanism
        The mechanism.
    adjacency
        Which neighbours were compared.
    found
        Of each trial, what comparing found.
    failures
        All that was found broken, and by which check.
    """

    headings: ClassVar[tuple[str, ...]] = ("values of", "adjacency", "pairs", "worst / epsilon", "verdict")

    mechanism: Mechanism
    adjacency: str
    found: tuple[ValuesFound, ...]
    failures: list[Failure]

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        return self.mechanism.name, self.adjacency, f"{self.pairs:,}", share(self.worst), verdict_word(self)


@dataclass(frozen=True)
class ValueTask:
    """A mechanism that releases values, and what it is to be verified on."""

    mechanism: Mechanism
    adjacency: str
    trials: tuple[ValueTrial, ...]

    def examine(self) -> ValueVerdict:
        """The verdict, over all the pairs of the trials."""
        found = tuple(trial.compare(self.mechanism) for trial in self.trials)
        judged = zip(self.trials, found, strict=True)
        failures = [failure for trial, one in judged for failure in _find_failures(trial, one)]
        return ValueVerdict(self.mechanism, self.adjacency, found, failures)


def value_tasks(adjacency: str | None = None) -> list[ValueTask]:
    """All that is verified of values, under one adjacency or under both."""
    return [
        ValueTask(mechanism, one, _trials(one))
        for mechanism in all_variants()
        if mechanism.releases_values
        for one in ADJACENCIES
        if adjacency in (None, one)
    ]


def _trials(adjacency: str) -> tuple[ValueTrial, ...]:
    """All of two items, and one or two of three, for users of one item or of two, of even and uneven sensitivity."""
    two, three = whole(2, 1), whole(2, 1, 1)
    limits = Sensitivity(items=1), Sensitivity(items=2), Sensitivity(1, 2, items=1)
    return tuple(
        ValueTrial(Family((scores,), adjacency, limit), k)
        for limit in limits
        for scores, k in ((two, 2), (three, 1), (three, 2))
    )


def _largest_ratio(here: ValueLaw, there: ValueLaw) -> float:
    return max(abs(log - there[outcome]) for outcome, log in here.items())


def _find_failures(trial: ValueTrial, found: ValuesFound) -> list[Failure]:
    """What comparing found broken in one trial."""
    failures = []
    if found.worst > 1.0 + SLACK + _ROUNDING:
        what = f"a release with values has {share(found.worst)} of epsilon at {found.pair}"
        failures.append(Failure("epsilon", what))
    if found.weight != trial.weight:
        what = f"a unit of score has the weight {found.weight}, by definition {trial.weight}, at {found.pair}"
        failures.append(Failure("rate", what))
    return failures
