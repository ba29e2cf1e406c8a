"""Verify the epsilon of releases with counts and of histograms with values, on small inputs and all their neighbours.

A release with counts shows a selection y and a noisy count for each item, with probability law(y) times the product of
discrete Laplace probabilities exp(-rate |c_i - f_i|) / Z around the scores f, in steps. Between neighbours f and g the
log ratio at (y, c) is largest where every c_i is one of the two scores; the counts then add exactly rate * sum |f_i -
g_i| over the items of y. A histogram shows an order and the rounded value of each item; the definition gives its law.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from typing import Any, ClassVar

from discreet.errors import InvalidValueError
from discreet.evidence import definition
from discreet.evidence.definition import ValueLaw, define_values
from discreet.evidence.neighbours import Family, Scores, move, whole
from discreet.evidence.report import SLACK, Failure, OverTrials, Pair, share, verdict_word
from discreet.evidence.visible_laws import Laws, label_scores, log_ratios
from discreet.evidence.walk import walk
from discreet.exact.entropy import Entropy
from discreet.mechanisms.base import Form, Mechanism, Prepared
from discreet.mechanisms.registry import DEFAULT, all_variants
from discreet.mechanisms.tally import Selection
from discreet.privacy import ADJACENCIES, Sensitivity
from discreet.release.release import Release
from discreet.release.request import Randomness, Request, make_request
from discreet.sources.arrays.array import ArraySource

EPSILON, COUNTS = Fraction(1, 2), Fraction(1, 3)
"""The epsilon of a selection or a histogram, and of the counts."""

_VECTORS = whole(3, 2, 2, 0), whole(1, 1, 1, 1)
"""The inputs of releases with counts."""

_RATES, _RUNS = (Fraction(1), Fraction(1, 2)), 4000
"""The rates whose noise is walked, and the number of bit strings; they decide 83% and 71% of the probability."""

_MARK = 10**6
"""More steps than any score of a small input."""

_STEPS = range(-4, 7)
"""The values that are compared. They extend beyond the scores on both sides, where ratios are constant."""

_ROUNDING = 1e-10
"""The error allowed in log probabilities of the definition."""


@dataclass(frozen=True)
class Counted:
    """The result of comparing all neighbours of one trial of counts.

    Attributes
    ----------
    pairs
        The number of pairs of neighbouring inputs.
    worst
        An upper bound on the largest log ratio, as a share of the whole epsilon.
    counts
        The largest log ratio of the counts alone, as a share of their epsilon; exact.
    pair
        The pair with the largest ratio.
    rate
        The rate of the noise that the release draws.
    """

    pairs: int
    worst: float
    counts: Fraction
    pair: Pair
    rate: Fraction

    @property
    def holds(self) -> bool:
        """True if no ratio exceeds its epsilon."""
        return self.worst <= 1.0 + SLACK and self.counts <= 1


@dataclass(frozen=True)
class CountTrial:
    """Inputs, the size of a release, and the bound on the items of a user."""

    family: Family
    k: int
    grid: Fraction = Fraction(1)
    per_user: int | None = None

    def compare(self, mechanism: Mechanism) -> Counted:
        """Compare every input with all its neighbours."""
        return verify_counts(
            mechanism, self.k, self.family, epsilon=EPSILON, counts=COUNTS, grid=self.grid, per_user=self.per_user
        )

    @property
    def rate(self) -> Fraction:
        """The rate of the noise by definition."""
        limit, adjacency = self.family.sensitivity, self.family.adjacency
        return definition.counts_rate(COUNTS, self.k, limit.down, limit.up, adjacency, self.grid, self.per_user)


@dataclass(frozen=True)
class CountVerdict(OverTrials):
    """The verdict on one kind of release with counts.

    There are four checks: selection and counts together keep epsilon, the counts alone keep theirs, the noise has the
    rate of the definition, and its draws have the law of the definition on all short strings of bits.

    Attributes
    ----------
    mechanism
        The mechanism that selects, or None if all items are released.
    adjacency
        The adjacency of the neighbours.
    found
        The result of each trial.
    failures
        The failed checks.
    """

    headings: ClassVar[tuple[str, ...]] = (
        *("counts with", "adjacency", "pairs", "worst / epsilon", "counts / theirs", "verdict"),
    )

    mechanism: Mechanism | None
    adjacency: str
    found: tuple[Counted, ...]
    failures: list[Failure]

    @property
    def counts(self) -> Fraction:
        """The largest log ratio of the counts alone, as a share of their epsilon."""
        return max(one.counts for one in self.found)

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        name = "all items" if self.mechanism is None else self.mechanism.name
        return name, self.adjacency, f"{self.pairs:,}", share(self.worst), share(float(self.counts)), verdict_word(self)


@dataclass(frozen=True)
class CountTask:
    """One kind of release with counts, and the trials to verify it on."""

    mechanism: Mechanism | None
    adjacency: str
    trials: tuple[CountTrial, ...]

    def examine(self) -> CountVerdict:
        """Compare the neighbours of all trials and return the verdict."""
        mechanism = DEFAULT if self.mechanism is None else self.mechanism
        found = tuple(trial.compare(mechanism) for trial in self.trials)
        failures = []
        for trial, one in zip(self.trials, found, strict=True):
            if one.worst > 1.0 + SLACK:
                what = f"a release with counts has {share(one.worst)} of epsilon at {one.pair}"
                failures.append(Failure("epsilon", what))
            if one.counts > 1:
                what = f"counts have {share(float(one.counts))} of the epsilon that is theirs, near {one.pair}"
                failures.append(Failure("counts", what))
            if one.rate != trial.rate:
                what = f"noise of counts has the rate {one.rate}, by definition {trial.rate}, at {one.pair}"
                failures.append(Failure("rate", what))
        if self.mechanism is None:
            # The noise is drawn in the same way after every selection, so one row checks it for all.
            failures += [failure for rate in _RATES for failure in misdrawn(rate)]
        return CountVerdict(self.mechanism, self.adjacency, found, failures)


def count_tasks(adjacency: str | None = None) -> list[CountTask]:
    """Return all tasks on counts, under one adjacency or under both."""
    # One ordered mechanism for each form of law: the counts add the same to all mechanisms of a form.
    ordered: dict[Form, Mechanism] = {}
    for variant in all_variants():
        if variant.ordered and variant.form is not Form.UNKNOWN:
            ordered.setdefault(variant.form, variant)
    made: list[CountTask] = []
    for one in (one for one in ADJACENCIES if adjacency in (None, one)):
        made.append(CountTask(DEFAULT, one, _count_trials(one, (1, 2, 3), with_few_items=True)))
        made += [CountTask(mechanism, one, _count_trials(one, (2,))) for mechanism in ordered.values()]
        made.append(CountTask(None, one, _count_trials(one, (4,), with_few_items=True)))
    return made


def _count_trials(adjacency: str, sizes: tuple[int, ...], with_few_items: bool = False) -> tuple[CountTrial, ...]:
    """Return trials on counts of users, on real scores of uneven sensitivity, and on users of few items."""
    real = Family(_VECTORS[:1], adjacency, Sensitivity("1/3", "3/4"), random=8)
    vectors = _VECTORS if adjacency == "add-remove" else _VECTORS[:1]
    few = ((Sensitivity(), 1), (Sensitivity(), 2), (Sensitivity(1, 2), 1)) if with_few_items else ()
    return (
        *(CountTrial(Family(vectors, adjacency), k) for k in sizes),
        CountTrial(real, sizes[-1], Fraction(1, 2)),
        *(CountTrial(Family(_VECTORS[:1], adjacency, limit), sizes[-1], per_user=per_user) for limit, per_user in few),
    )


def verify_counts(
    mechanism: Mechanism,
    k: int,
    family: Family,
    *,
    epsilon: Fraction,
    counts: Fraction,
    grid: Fraction = Fraction(1),
    per_user: int | None = None,
) -> Counted:
    """Compare every input of a family with all its neighbours, for users who touch at most `per_user` items."""
    laws = CountedLaws(mechanism, k, epsilon, counts, family, grid, per_user)
    found = []
    for scores in family.scores:
        if per_user is None:
            others = list(family.neighbours(scores))
        else:
            others = [move(scores, change) for change in family.changes_by_users(per_user) if any(change)]
        found += [(*laws.apart(scores, other), (scores, other)) for other in others]
    worst, _, pair = max(found, key=lambda one: one[0])
    return Counted(len(found), worst, max(part for _, part, _ in found), laws.pair(*pair), laws.rate)


@dataclass(frozen=True, eq=False, repr=False)
class BoundedScores(ArraySource):
    """Scores with a stated bound on the number of items per user."""

    max_items_per_user: int | None = None


class CountedLaws(Laws):
    """The laws of selections with counts: those of the selections, and the centres of the counts."""

    def __init__(
        self,
        mechanism: Mechanism,
        k: int,
        epsilon: Fraction,
        counts: Fraction,
        family: Family,
        grid: Fraction,
        per_user: int | None,
    ) -> None:
        super().__init__(mechanism, k, epsilon, family)
        self._grid, self._per_user = grid, per_user
        self.request = make_request(
            self.source(family.scores[0]), k, epsilon,
            mechanism=mechanism, sensitivity=family.sensitivity, adjacency=family.adjacency, counts=counts,
        )  # fmt: skip
        self._rates: set[Fraction] = set()
        self._centres: dict[Scores, dict[Any, int | Fraction]] = {}

    def apart(self, scores: Scores, other: Scores) -> tuple[float, Fraction]:
        """Return the largest log ratio of two inputs as a share of epsilon, and the share of the counts in theirs."""
        table = self.table([scores, other])
        selection = log_ratios(table.logs[0], table.logs[1:])[0] + table.off.sum()
        here, there = self._centres[scores], self._centres[other]
        # The distance between the centres of the items of each outcome, in steps.
        steps = [sum(abs(self._steps(here[item] - there[item])) for item in outcome[0]) for outcome in table.outcomes]
        moved = [self.rate * total for total in steps]
        worst = max(one + float(part) for one, part in zip(selection.tolist(), moved, strict=True))
        return worst / float(self.guarantee.epsilon), max(moved) / self.guarantee.counts_epsilon

    @property
    def rate(self) -> Fraction:
        """The one rate at which the release draws noise, in steps of the grid."""
        (rate,) = self._rates
        return rate

    def source(self, scores: Scores) -> ArraySource:
        made = super().source(scores)
        return BoundedScores(made.scores, made.labels, made.unit, self._grid, max_items_per_user=self._per_user)

    def release(self, scores: Scores, source: ArraySource, draw: Callable[[Prepared], Selection]) -> Release:
        """Release with noise that brings every count to a value that depends on its item alone.

        All inputs then show the same counts. An interval around the true score, a list in the order of true scores, or
        noise that is shared, scaled or left out would show as another outcome.
        """
        centred = self._with_noise(source, draw, lambda call: 0)
        centres = self._centres.setdefault(scores, {})
        centres.update({count.item: count.value for count in centred.counts or []})
        # Noise that differs between calls shows which call is for which item.
        marked = self._with_noise(source, draw, lambda call: (call + 1) * _MARK)
        calls = {self._steps(count.value - centres[count.item]): count.item for count in marked.counts or []}

        def aim(call: int) -> int:
            item = calls.get(Fraction((call + 1) * _MARK))
            return 0 if item is None else int(ord(item) - self._steps(centres[item]))

        return self._with_noise(source, draw, aim)

    def _with_noise(
        self, source: ArraySource, draw: Callable[[Prepared], Selection], noise: Callable[[int], int]
    ) -> Release:
        """Release with the noise that `noise` returns for each call, in steps."""
        calls = count()

        def scripted_noise(rate: Fraction) -> int:
            self._rates.add(rate)
            return noise(next(calls))

        counted = self.request.count_mechanism
        # The floor at zero is post-processing and could only hide a difference.
        counted = None if counted is None else replace(counted, floor=False)
        request = replace(self.request, source=source, count_mechanism=counted)
        return request.draw(Randomness(draw, scripted_noise))

    def _steps(self, value: int | Fraction) -> Fraction:
        return Fraction(value) / self._grid


def misdrawn(rate: Fraction) -> list[Failure]:
    """Check the noise that `top_k` draws at a rate against the definition, on all short strings of bits."""

    def draw_noise(entropy: Entropy) -> int:
        draw = Randomness.of(entropy).noise
        assert draw is not None, "a release has noise to draw"
        return draw(rate)

    decided, undecided = walk(draw_noise, _RUNS)
    for steps in dict.fromkeys([*range(-3, 4), *decided]):
        low, defined = float(decided.get(steps, 0)), math.exp(definition.discrete_laplace_log(steps, rate))
        if not low - 1e-12 <= defined <= low + float(undecided) + 1e-12:
            chance = f"{low:.6g} to {low + float(undecided):.6g}, by definition {defined:.6g}"
            return [Failure("noise", f"noise of counts at the rate {rate} is {steps} with probability {chance}")]
    return []


@dataclass(frozen=True)
class ValuesFound:
    """The result of comparing all neighbours of one trial of values.

    Attributes
    ----------
    pairs
        The number of pairs of neighbouring inputs.
    worst
        The largest log ratio, as a share of epsilon.
    pair
        The pair with the largest ratio.
    weight
        The increase of a value by one unit of score, in units of noise.
    """

    pairs: int
    worst: float
    pair: Pair
    weight: Fraction


@dataclass(frozen=True)
class ValueTrial:
    """Inputs of users of few items, and the number of items that are released with their values."""

    family: Family
    k: int

    def compare(self, mechanism: Mechanism) -> ValuesFound:
        """Compare every input with all its neighbours."""
        laws: dict[Scores, ValueLaw] = {}
        weights: set[Fraction] = set()

        def law(scores: Scores) -> ValueLaw:
            if scores not in laws:
                request: Request = make_request(
                    label_scores(scores), self.k, EPSILON,
                    mechanism=mechanism, sensitivity=self.family.sensitivity, adjacency=self.family.adjacency,
                )  # fmt: skip
                if request.value_format is None or request.takes_all_items:
                    raise InvalidValueError(f"mechanism must be one that releases values, not {mechanism!r}")
                # The weight with which `top_k` draws from this input.
                prepared: Any = request.prepare(request.source.tally())
                weights.add(Fraction(prepared.weight))
                laws[scores] = define_values(scores, self.k, Fraction(prepared.weight), _STEPS)
            return laws[scores]

        pairs = [(scores, other) for scores in self.family.scores for other in self.family.neighbours(scores)]
        ratios = [
            max(abs(log - law(other)[outcome]) for outcome, log in law(scores).items()) for scores, other in pairs
        ]
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


@dataclass(frozen=True)
class ValueVerdict(OverTrials):
    """The verdict on the values of one mechanism.

    There are two checks: no ratio of neighbours exceeds epsilon, for users of few items, and the weight is that of the
    definition, the largest that all users allow.

    Attributes
    ----------
    mechanism, adjacency
        The mechanism, and the adjacency of the neighbours.
    found
        The result of each trial.
    failures
        The failed checks.
    """

    headings: ClassVar[tuple[str, ...]] = ("values of", "adjacency", "pairs", "worst / epsilon", "verdict")

    mechanism: Mechanism
    adjacency: str
    found: tuple[ValuesFound, ...]
    failures: list[Failure]

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        return self.mechanism.name, self.adjacency, f"{self.pairs:,}", share(self.worst), verdict_word(self)


@dataclass(frozen=True)
class ValueTask:
    """A mechanism that releases values, and the trials to verify it on."""

    mechanism: Mechanism
    adjacency: str
    trials: tuple[ValueTrial, ...]

    def examine(self) -> ValueVerdict:
        """Compare the neighbours of all trials and return the verdict."""
        found = tuple(trial.compare(self.mechanism) for trial in self.trials)
        failures = []
        for trial, one in zip(self.trials, found, strict=True):
            if one.worst > 1.0 + SLACK + _ROUNDING:
                what = f"a release with values has {share(one.worst)} of epsilon at {one.pair}"
                failures.append(Failure("epsilon", what))
            if one.weight != trial.weight:
                what = f"a unit of score has the weight {one.weight}, by definition {trial.weight}, at {one.pair}"
                failures.append(Failure("rate", what))
        return ValueVerdict(self.mechanism, self.adjacency, found, failures)


def value_tasks(adjacency: str | None = None) -> list[ValueTask]:
    """Return all tasks on values, under one adjacency or under both."""
    # All of two items, and one or two of three.
    inputs = (whole(2, 1), 2), (whole(2, 1, 1), 1), (whole(2, 1, 1), 2)
    limits = Sensitivity(items=1), Sensitivity(items=2), Sensitivity(1, 2, items=1)
    return [
        ValueTask(
            mechanism,
            one,
            tuple(ValueTrial(Family((scores,), one, limit), k) for limit in limits for scores, k in inputs),
        )
        for mechanism in all_variants()
        if mechanism.releases_values
        for one in ADJACENCIES
        if adjacency in (None, one)
    ]
