"""Verify the epsilon of releases with counts and of histograms with values, on small inputs and all their neighbours.

A release with counts shows a selection y and a noisy count for each item, with probability law(y) times the product of
discrete Laplace probabilities exp(-rate |c_i - f_i|) / Z around the scores f, in steps. Between neighbours f and g the
log ratio at (y, c) is largest where every c_i is one of the two scores; the counts then add exactly rate * sum |f_i -
g_i| over the items of y. A shortfall is one more such number, around the lead of y in place of a score. A histogram
shows an order and the rounded value of each item; the definition gives its law.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, count
from typing import Any, ClassVar

from discreet.errors import InvalidValueError
from discreet.evidence import definition
from discreet.evidence.definition import ValueLaw, define_values
from discreet.evidence.neighbours import Family, Scores, move, whole
from discreet.evidence.report import SLACK, Failure, Outcome, OverTrials, Pair, share, verdict_word
from discreet.evidence.visible_laws import Departure, Laws, find_departure, label_scores, log_ratios, positions_of
from discreet.evidence.walk import walk
from discreet.exact.entropy import Entropy
from discreet.mechanisms.base import Form, Mechanism, Prepared
from discreet.mechanisms.registry import DEFAULT, all_variants
from discreet.mechanisms.tally import Selection
from discreet.privacy import ADJACENCIES, Sensitivity
from discreet.release.release import Release, Shortfall
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

_LEADS = range(-3, 4)
"""The shortfalls that are compared with the definition. A centre that is wrong by a step shows in any range."""

_STEPS = range(-4, 7)
"""The values that are compared. They extend beyond the scores on both sides, where ratios are constant."""

_ROUNDING = 1e-10
"""The error allowed in log probabilities of the definition."""


@dataclass(frozen=True)
class Counted:
    """The result of comparing all neighbours of one trial of counts, of a shortfall, or of both.

    Attributes
    ----------
    pairs
        The number of pairs of neighbouring inputs.
    worst
        An upper bound on the largest log ratio, as a share of the whole epsilon.
    pair
        The pair with the largest ratio.
    counts, shortfall
        The largest log ratio of the counts alone, and of the shortfall given the list, as shares of their epsilons;
        exact, and 0 without them.
    rate, shortfall_rate
        The rates of the noises that the release draws, or None without them.
    shown
        A shortfall as it is shown, or None without one.
    departure
        The outcome with a shortfall that departs most from the definition, None if all agree.
    """

    pairs: int
    worst: float
    pair: Pair
    counts: Fraction = Fraction(0)
    shortfall: Fraction = Fraction(0)
    rate: Fraction | None = None
    shortfall_rate: Fraction | None = None
    shown: Shortfall | None = None
    departure: Departure | None = None

    @property
    def holds(self) -> bool:
        """True if no ratio exceeds its epsilon."""
        return self.worst <= 1.0 + SLACK and self.counts <= 1 and self.shortfall <= 1


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
    counts: Fraction | None = None,
    shortfall: Fraction | None = None,
    grid: Fraction = Fraction(1),
    per_user: int | None = None,
) -> Counted:
    """Compare every input of a family with all its neighbours, for users who touch at most `per_user` items.

    The releases have counts, a shortfall or both. A shortfall is also compared with the definition.
    """
    laws = CountedLaws(mechanism, k, epsilon, family, grid, per_user, counts=counts, shortfall=shortfall)
    found = []
    for scores in family.scores:
        if per_user is None:
            others = list(family.neighbours(scores))
        else:
            others = [move(scores, change) for change in family.changes_by_users(per_user) if any(change)]
        found += [(*laws.apart(scores, other), (scores, other)) for other in others]
    ratios, counted, leads, pairs = zip(*found, strict=True)
    worst = max(range(len(found)), key=ratios.__getitem__)
    made = Counted(len(found), ratios[worst], laws.pair(*pairs[worst]), max(counted), max(leads))
    if counts is not None:
        made = replace(made, rate=laws.rate(COUNT))
    if shortfall is None:
        return made
    departures = [find_departure(laws, scores) for scores in dict.fromkeys(chain.from_iterable(pairs))]
    farthest = max((one for one in departures if one is not None), key=lambda one: one.size, default=None)
    return replace(made, shortfall_rate=laws.rate(LEAD), shown=laws.shown, departure=farthest)


@dataclass(frozen=True, eq=False, repr=False)
class BoundedScores(ArraySource):
    """Scores with a stated bound on the number of items per user."""

    max_items_per_user: int | None = None


NoisyNumber = str | tuple[str, ...]
"""A noisy number of a release: the count of an item, or the shortfall of the released items."""

COUNT, LEAD = str, tuple
"""The types of the two kinds of noisy numbers."""


class CountedLaws(Laws):
    """The laws of selections with noisy numbers: those of the selections, and the centres of the numbers."""

    def __init__(
        self,
        mechanism: Mechanism,
        k: int,
        epsilon: Fraction,
        family: Family,
        grid: Fraction,
        per_user: int | None,
        *,
        counts: Fraction | None = None,
        shortfall: Fraction | None = None,
    ) -> None:
        super().__init__(mechanism, k, epsilon, family)
        self._grid, self._per_user = grid, per_user
        self.request = make_request(
            self.source(family.scores[0]), k, epsilon, mechanism=mechanism, sensitivity=family.sensitivity,
            adjacency=family.adjacency, counts=counts, shortfall=shortfall,
        )  # fmt: skip
        self._rates: dict[type, set[Fraction]] = {COUNT: set(), LEAD: set()}
        self._centres: dict[Scores, dict[NoisyNumber, int | Fraction]] = {}
        self.shown: Shortfall | None = None

    def apart(self, scores: Scores, other: Scores) -> tuple[float, Fraction, Fraction]:
        """Return the largest log ratio of two inputs as a share of epsilon, and those of counts and shortfall alone."""
        table, promised = self.table([scores, other]), self.guarantee
        selection = log_ratios(table.logs[0], table.logs[1:])[0] + table.off.sum()
        counts = [self._log_ratio(scores, other, outcome[0]) for outcome in table.outcomes]
        leads = [self._log_ratio(scores, other, [outcome[0]]) for outcome in table.outcomes]
        worst = max(one + float(n + lead) for one, n, lead in zip(selection.tolist(), counts, leads, strict=True))
        own = max(counts) / (promised.counts_epsilon or 1), max(leads) / (promised.shortfall_epsilon or 1)
        return worst / float(promised.epsilon), *own

    def _log_ratio(self, scores: Scores, other: Scores, numbers: Sequence[NoisyNumber]) -> Fraction:
        """Return the largest log ratio of some numbers: for each the rate times the distance of its centres."""
        here, there = self._centres[scores], self._centres[other]
        known = [number for number in numbers if number in here and number in there]
        return sum(
            (self.rate(type(number)) * abs(self._steps(here[number] - there[number])) for number in known), Fraction(0)
        )

    def rate(self, kind: type) -> Fraction:
        """Return the one rate at which the release draws the noise of a kind of number, in steps of the grid."""
        (rate,) = self._rates[kind]
        return rate

    def listed(self, scores: Scores) -> dict[Outcome, float]:
        found: dict[Outcome, float] = {}
        for outcome, (log, _) in self.law(scores).items():
            lead = self._centres[scores].get(outcome[0])
            if lead is None:
                # An empty list has no shortfall.
                found[outcome[:2]] = log
                continue
            for steps in _LEADS:
                noise = definition.discrete_laplace_log(int(steps - self._steps(lead)), self.rate(LEAD))
                found[*outcome[:2], steps] = log + noise
        return found

    def defined(self, scores: Scores) -> dict[Outcome, float]:
        limit, asked = self.family.sensitivity, self.guarantee.shortfall_epsilon
        rate = definition.shortfall_rate(asked, limit.down, limit.up, self.family.adjacency, self._grid)
        found: dict[Outcome, float] = {}
        for outcome, log in super().defined(scores).items():
            if outcome[0]:
                terms = scores, positions_of(outcome[0]), rate, self._grid
                found |= {(*outcome, steps): log + definition.shortfall_log(steps, *terms) for steps in _LEADS}
            else:
                found[outcome] = log
        return found

    def source(self, scores: Scores) -> ArraySource:
        made = super().source(scores)
        return BoundedScores(made.scores, made.labels, made.unit, self._grid, max_items_per_user=self._per_user)

    def release(self, scores: Scores, source: ArraySource, draw: Callable[[Prepared], Selection]) -> Release:
        """Release with noise that brings every number to a value that depends on its item alone, or to 0.

        All inputs then show the same numbers. An interval around the true score, a list in the order of true scores, or
        noise that is shared, scaled or left out would show as another outcome.
        """
        centred = numbers_of(self._with_noise(source, draw, lambda call: 0))
        self._centres.setdefault(scores, {}).update(centred)
        # Noise that differs between calls shows which call is for which number.
        marked = numbers_of(self._with_noise(source, draw, lambda call: (call + 1) * _MARK))
        calls = {self._steps(value - centred[number]): number for number, value in marked.items()}

        def aim(call: int) -> int:
            number = calls.get(Fraction((call + 1) * _MARK))
            if number is None:
                return 0
            return int((ord(number) if isinstance(number, str) else 0) - self._steps(centred[number]))

        aimed = self._with_noise(source, draw, aim, calls)
        self.shown = aimed.shortfall or self.shown
        return aimed

    def _with_noise(
        self,
        source: ArraySource,
        draw: Callable[[Prepared], Selection],
        noise: Callable[[int], int],
        numbers: Mapping[Fraction, NoisyNumber] | None = None,
    ) -> Release:
        """Release with the noise that `noise` returns for each call, in steps; note the rates for `numbers` by mark."""
        calls = count()

        def scripted_noise(rate: Fraction) -> int:
            call = next(calls)
            if numbers is not None:
                number = numbers.get(Fraction((call + 1) * _MARK))
                for kind in [COUNT, LEAD] if number is None else [type(number)]:
                    self._rates[kind].add(rate)
            return noise(call)

        counted = self.request.count_mechanism
        # The floor at zero is post-processing and could only hide a difference.
        counted = None if counted is None else replace(counted, floor=False)
        request = replace(self.request, source=source, count_mechanism=counted)
        return request.draw(Randomness(draw, scripted_noise))

    def _steps(self, value: int | Fraction) -> Fraction:
        return Fraction(value) / self._grid


def numbers_of(release: Release) -> dict[NoisyNumber, int | Fraction]:
    """Return the noisy numbers of a release: the counts by item, and the shortfall by the released items."""
    numbers: dict[NoisyNumber, int | Fraction] = {count.item: count.value for count in release.counts or []}
    if release.shortfall is not None:
        numbers[tuple(release.items)] = release.shortfall.value
    return numbers


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
