"""Epsilon of a selection with counts, verified exactly on small inputs over all neighbours.

What is seen is a set (or an order) y and a noisy count for each of its items: with probability law(y) times the
product of discrete Laplace probabilities exp(-rate |c_i - f_i|) / Z around the true scores f, in steps. Between
neighbours f and g the log ratio at (y, c) is largest where every c_i is one of the two scores, and then the counts add
exactly rate * sum |f_i - g_i| over the items of y to the log ratio of the selection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from typing import Any, ClassVar

from discreet.errors import InvalidValueError
from discreet.evidence import definition
from discreet.evidence.definition import ValueLaw, define_values
from discreet.evidence.neighbours import Family, Scores, whole
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

# The rows of `verify --all` on values: those that a histogram releases with its items, for one epsilon.
#
# What is seen is an order of items and the value of each, rounded to the grid. Its law at the weight that `top_k` uses
# is
# that of the definition, an integral over the last value. Two checks: no ratio of two neighbours is above epsilon, for
# users of few items, and the weight is that of the definition, no less and no more than some user makes necessary.

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
        failures = [failure for trial, one in judged for failure in _find_value_failures(trial, one)]
        return ValueVerdict(self.mechanism, self.adjacency, found, failures)


def value_tasks(adjacency: str | None = None) -> list[ValueTask]:
    """All that is verified of values, under one adjacency or under both."""
    return [
        ValueTask(mechanism, one, _value_trials(one))
        for mechanism in all_variants()
        if mechanism.releases_values
        for one in ADJACENCIES
        if adjacency in (None, one)
    ]


def _value_trials(adjacency: str) -> tuple[ValueTrial, ...]:
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


def _find_value_failures(trial: ValueTrial, found: ValuesFound) -> list[Failure]:
    """What comparing found broken in one trial."""
    failures = []
    if found.worst > 1.0 + SLACK + _ROUNDING:
        what = f"a release with values has {share(found.worst)} of epsilon at {found.pair}"
        failures.append(Failure("epsilon", what))
    if found.weight != trial.weight:
        what = f"a unit of score has the weight {found.weight}, by definition {trial.weight}, at {found.pair}"
        failures.append(Failure("rate", what))
    return failures


_MARK = 10**6
"""More steps than any score of a small input has."""


@dataclass(frozen=True)
class Counted:
    """What comparing all neighbours found.

    Attributes
    ----------
    pairs
        How many pairs of neighbouring inputs were compared.
    worst
        An upper bound on the largest log ratio, as a share of the whole epsilon.
    counts
        The largest part of it that the counts alone have, as a share of theirs; exact.
    pair
        Where the worst was found.
    rate
        The rate at which noise was asked for.
    """

    pairs: int
    worst: float
    counts: Fraction
    pair: Pair
    rate: Fraction

    @property
    def holds(self) -> bool:
        """Whether no ratio is above what is promised."""
        return self.worst <= 1.0 + SLACK and self.counts <= 1


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
    """Compares every input of a family with all its neighbours, of users who touch at most `per_user` items each."""
    laws = CountedLaws(mechanism, k, epsilon, counts, family, grid, per_user)
    found = [
        (*laws.apart(scores, other), (scores, other))
        for scores in family.scores
        for other in neighbours(family, scores, per_user)
    ]
    worst, _, pair = max(found, key=lambda one: one[0])
    return Counted(len(found), worst, max(part for _, part, _ in found), laws.pair(*pair), laws.rate)


def neighbours(family: Family, scores: Scores, per_user: int | None) -> Iterator[Scores]:
    """All neighbours by extreme changes, where every user touches at most so many items."""
    if per_user is None:
        yield from family.neighbours(scores)
        return
    for change in family.changes_by_users(per_user):
        if any(change):
            yield tuple(score + step for score, step in zip(scores, change, strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class BoundedScores(ArraySource):
    """Scores of which each user is known to move at most so many."""

    max_items_per_user: int | None = None


class CountedLaws(Laws):
    """The laws of selections with counts: those of the selection, and what the counts are centred at."""

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
        """The largest log ratio of two inputs as a share of epsilon, and that of the counts alone of theirs."""
        table = self.table([scores, other])
        selection = log_ratios(table.logs[0], table.logs[1:])[0] + table.off.sum()
        moved = [self.rate * self._steps_apart(scores, other, outcome[0]) for outcome in table.outcomes]
        worst = max(one + float(part) for one, part in zip(selection.tolist(), moved, strict=True))
        return worst / float(self.guarantee.epsilon), max(moved) / self.guarantee.counts_epsilon

    @property
    def rate(self) -> Fraction:
        """The one rate at which noise was asked for, which is that of all steps."""
        (rate,) = self._rates
        return rate

    def source(self, scores: Scores) -> ArraySource:
        made = super().source(scores)
        return BoundedScores(made.scores, made.labels, made.unit, self._grid, max_items_per_user=self._per_user)

    def release(self, scores: Scores, source: ArraySource, draw: Callable[[Prepared], Selection]) -> Release:
        """What is released where the noise happens to bring every count to where it is aimed.

        The aims depend on the items alone, so that all inputs show the same counts; an interval around the true score,
        a list in the order of true scores, noise that is shared, scaled or left out would show another release.
        """
        centred = self._with_noise(source, draw, lambda call: 0)
        centres = self._centres.setdefault(scores, {})
        centres.update({count.item: count.value for count in centred.counts or []})
        # Which call is for whose noise is seen by noise that differs.
        marked = self._with_noise(source, draw, lambda call: (call + 1) * _MARK)
        calls = {self._steps(count.value - centres[count.item]): count.item for count in marked.counts or []}

        def aim(call: int) -> int:
            item = calls.get(Fraction((call + 1) * _MARK))
            return 0 if item is None else int(ord(item) - self._steps(centres[item]))

        return self._with_noise(source, draw, aim)

    def _with_noise(
        self, source: ArraySource, draw: Callable[[Prepared], Selection], noise: Callable[[int], int]
    ) -> Release:
        """The release where the noise of each call, in steps, is what `noise` says."""
        calls = count()

        def scripted_noise(rate: Fraction) -> int:
            self._rates.add(rate)
            return noise(next(calls))

        counted = self.request.count_mechanism
        # Without the floor, which could only hide a difference.
        counted = None if counted is None else replace(counted, floor=False)
        request = replace(self.request, source=source, count_mechanism=counted)
        return request.draw(Randomness(draw, scripted_noise))

    def _steps(self, value: int | Fraction) -> Fraction:
        return Fraction(value) / self._grid

    def _steps_apart(self, scores: Scores, other: Scores, items: tuple[Any, ...]) -> Fraction:
        """How many steps the centres of some items are apart in all."""
        here, there = self._centres[scores], self._centres[other]
        return sum((abs(self._steps(here[item] - there[item])) for item in items), Fraction(0))


# The rows of `verify --all` on counts: released with a selection, and alone, where all items are released.
#
# Four checks: selection and counts together keep epsilon, the counts alone keep theirs, the noise is asked for at the
# rate of the definition (no less and no more of it than some user can make necessary), and what is drawn has the law of
# the definition on all short strings of bits.

EPSILON, COUNTS = Fraction(1, 2), Fraction(1, 3)
"""What the selection costs, and what the counts cost."""

_VECTORS = whole(3, 2, 2, 0), whole(1, 1, 1, 1)
_RATES, _RUNS = (Fraction(1), Fraction(1, 2)), 4000


@dataclass(frozen=True)
class CountTrial:
    """Inputs, what is released of them, and how many items one user may touch."""

    family: Family
    k: int
    grid: Fraction = Fraction(1)
    per_user: int | None = None

    def compare(self, mechanism: Mechanism) -> Counted:
        """What comparing every input with all its neighbours finds."""
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
    """What was found for one kind of release with counts.

    Attributes
    ----------
    mechanism
        What selects, or None where all items are released.
    adjacency
        Which neighbours were compared.
    pairs
        How many pairs of them.
    found
        Of each trial, what comparing found.
    failures
        All that was found broken, and by which check.
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
        """The largest part of it that the counts alone have, as a share of theirs."""
        return max(one.counts for one in self.found)

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        name = "all items" if self.mechanism is None else self.mechanism.name
        return name, self.adjacency, f"{self.pairs:,}", share(self.worst), share(float(self.counts)), verdict_word(self)


@dataclass(frozen=True)
class CountTask:
    """One kind of release with counts, and what it is to be verified on."""

    mechanism: Mechanism | None
    adjacency: str
    trials: tuple[CountTrial, ...]

    def examine(self) -> CountVerdict:
        """The verdict, over all the pairs of the trials."""
        mechanism = DEFAULT if self.mechanism is None else self.mechanism
        found = tuple(trial.compare(mechanism) for trial in self.trials)
        judged = zip(self.trials, found, strict=True)
        failures = [failure for trial, one in judged for failure in _find_failures(trial, one)]
        if self.mechanism is None:
            # The noise is drawn in one way, whatever was selected.
            failures += [failure for rate in _RATES for failure in misdrawn(rate)]
        return CountVerdict(self.mechanism, self.adjacency, found, failures)


def count_tasks(adjacency: str | None = None) -> list[CountTask]:
    """All that is verified of counts, under one adjacency or under both."""
    adjacencies = [one for one in ADJACENCIES if adjacency in (None, one)]
    made: list[CountTask] = []
    for one in adjacencies:
        made.append(CountTask(DEFAULT, one, (*_trials(one, (1, 2, 3)), *_users_of_few_items(one, 3))))
        made += [CountTask(mechanism, one, tuple(_trials(one, (2,)))) for mechanism in _one_order_of_each_form()]
        made.append(CountTask(None, one, (*_trials(one, (4,)), *_users_of_few_items(one, 4))))
    return made


def _one_order_of_each_form() -> list[Mechanism]:
    """A mechanism for each form of the law of an order: what its counts add is the same for all of one form."""
    found: dict[Form, Mechanism] = {}
    for variant in all_variants():
        if variant.ordered and variant.form is not Form.UNKNOWN:
            found.setdefault(variant.form, variant)
    return list(found.values())


def _trials(adjacency: str, sizes: tuple[int, ...]) -> list[CountTrial]:
    """Counts of users, and real scores of an uneven sensitivity in steps of one half."""
    real = Family(_VECTORS[:1], adjacency, Sensitivity("1/3", "3/4"), random=8)
    vectors = _VECTORS if adjacency == "add-remove" else _VECTORS[:1]
    return [*(CountTrial(Family(vectors, adjacency), k) for k in sizes), CountTrial(real, sizes[-1], Fraction(1, 2))]


def _users_of_few_items(adjacency: str, k: int) -> list[CountTrial]:
    kinds = (Sensitivity(), 1), (Sensitivity(), 2), (Sensitivity(1, 2), 1)
    return [CountTrial(Family(_VECTORS[:1], adjacency, limit), k, per_user=per_user) for limit, per_user in kinds]


def _find_failures(trial: CountTrial, found: Counted) -> list[Failure]:
    """What comparing found broken in one trial."""
    failures = []
    if found.worst > 1.0 + SLACK:
        failures.append(
            Failure("epsilon", f"a release with counts has {share(found.worst)} of epsilon at {found.pair}")
        )
    if found.counts > 1:
        what = f"counts have {share(float(found.counts))} of the epsilon that is theirs, near {found.pair}"
        failures.append(Failure("counts", what))
    if found.rate != trial.rate:
        what = f"noise of counts has the rate {found.rate}, by definition {trial.rate}, at {found.pair}"
        failures.append(Failure("rate", what))
    return failures


def _draw_noise(entropy: Entropy, rate: Fraction) -> int:
    draw = Randomness.of(entropy).noise
    assert draw is not None  # a release has noise to draw
    return draw(rate)


def misdrawn(rate: Fraction) -> list[Failure]:
    """The noise that `top_k` draws at a rate, judged on short strings of bits: no probability outside its bounds."""
    decided, undecided = walk(lambda entropy: _draw_noise(entropy, rate), _RUNS)
    for steps in dict.fromkeys([*range(-3, 4), *decided]):
        low, defined = float(decided.get(steps, 0)), math.exp(definition.discrete_laplace_log(steps, rate))
        if not low - 1e-12 <= defined <= low + float(undecided) + 1e-12:
            chance = f"{low:.6g} to {low + float(undecided):.6g}, by definition {defined:.6g}"
            return [Failure("noise", f"noise of counts at the rate {rate} is {steps} with probability {chance}")]
    return []
