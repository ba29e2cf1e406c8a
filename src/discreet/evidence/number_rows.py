"""Verify releases that show numbers: noisy counts, a shortfall, or the values of a histogram.

A list and its counts and shortfall together must keep the whole epsilon, and counts must keep their own. The shortfall
given the list must keep its own too, because noise at twice the rate can hide behind a list that spends less than its
part. The joint law with a shortfall must be that of the definition, and its bounds must be the least that hold with
95%. A histogram shows an order and the rounded value of each item; the definition gives its law.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from discreet.errors import InvalidValueError
from discreet.evidence import definition
from discreet.evidence.counts import Counted, misdrawn, verify_counts
from discreet.evidence.definition import ValueLaw, define_values
from discreet.evidence.neighbours import Family, Scores, whole
from discreet.evidence.report import SLACK, Compared, Failure, OverTrials, Pair, share, verdict_word
from discreet.evidence.visible_laws import label_scores
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.registry import DEFAULT, all_variants
from discreet.privacy import ADJACENCIES, Sensitivity
from discreet.release.request import Request, make_request

EPSILON, COUNTS, SHORTFALL = Fraction(1, 2), Fraction(1, 3), Fraction(1, 4)
"""The epsilon of a selection or a histogram, of counts, and of a shortfall."""

_VECTORS = whole(3, 2, 2, 0), whole(1, 1, 1, 1)
"""Counts of users."""

GRID = Fraction(1, 2)
"""The step of the grid of sums."""

_SUMS = (Fraction(2), Fraction(7, 4), Fraction(1), Fraction(5, 6))
"""Sums between two steps. Their leads are as near to the edge of a step as their changes need."""

_RATES = Fraction(1), Fraction(1, 2)
"""The rates whose noise is walked."""

_STEPS = range(-4, 7)
"""The values that are compared. They extend beyond the scores on both sides, where ratios are constant."""

_ROUNDING = 1e-10
"""The error allowed in log probabilities of the definition."""


@dataclass(frozen=True)
class NumberTrial:
    """Inputs, the size of a release, and the epsilons of its counts and its shortfall, None without them.

    `per_user` is the bound on the items of a user.
    """

    family: Family
    k: int
    grid: Fraction = Fraction(1)
    counts: Fraction | None = None
    shortfall: Fraction | None = None
    per_user: int | None = None

    def compare(self, mechanism: Mechanism) -> Counted:
        """Compare every input with all its neighbours, and joint laws with a shortfall with the definition."""
        return verify_counts(
            mechanism, self.k, self.family, epsilon=EPSILON, counts=self.counts, shortfall=self.shortfall,
            grid=self.grid, per_user=self.per_user,
        )  # fmt: skip

    def find_failures(self, found: Counted) -> list[Failure]:
        """Return the failed checks of one comparison."""
        limit, adjacency, failures = self.family.sensitivity, self.family.adjacency, list[Failure]()

        def fail(check: str, what: str) -> None:
            failures.append(Failure(check, what))

        shown = "counts" if self.shortfall is None else "a shortfall"
        if found.worst > 1.0 + SLACK:
            fail("epsilon", f"a release with {shown} has {share(found.worst)} of epsilon at {found.pair}")
        if self.counts is not None:
            if found.counts > 1:
                fail(
                    "counts",
                    f"counts have {share(float(found.counts))} of the epsilon that is theirs, near {found.pair}",
                )
            terms = limit.down, limit.up, adjacency, self.grid, self.per_user
            rate = definition.counts_rate(self.counts, self.k, *terms)
            if found.rate != rate:
                fail("rate", f"noise of counts has the rate {found.rate}, by definition {rate}, at {found.pair}")
        if self.shortfall is None:
            return failures
        if found.shortfall > 1:
            own = share(float(found.shortfall))
            fail("shortfall", f"a shortfall has {own} of the epsilon that is its own, near {found.pair}")
        asked, stated = EPSILON + (self.counts or 0) + self.shortfall, found.pair.epsilon
        if stated != asked:
            what = f"a release with a shortfall states epsilon = {stated} where {asked} was asked for"
            fail("total", f"{what}, at {found.pair}")
        rate = definition.shortfall_rate(self.shortfall, limit.down, limit.up, adjacency, self.grid)
        if found.shortfall_rate != rate:
            what = f"noise of a shortfall has the rate {found.shortfall_rate}, by definition {rate}"
            fail("rate", f"{what}, at {found.pair}")
        if found.departure is not None:
            fail("definition", f"a release with a shortfall departs from its definition: {found.departure}")
        made, (above, around), margins = found.shown, definition.shortfall_margins(rate), None
        if made is not None:
            margins = tuple(end - made.value for end in (made.low, made.high, made.upper))
        right = tuple(steps * self.grid for steps in (-around, around, above))
        if margins != right:
            what = f"the ends of a shortfall are {margins} from its value, by definition {right}, at {found.pair}"
            fail("bounds", what)
        return failures


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
    """Inputs of users of few items, and the number of items that are released with their values.

    The weight must be that of the definition, the largest that all users allow.
    """

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

    def find_failures(self, found: ValuesFound) -> list[Failure]:
        """Return the failed checks of one comparison."""
        limit, failures = self.family.sensitivity, []
        terms = limit.down, limit.up, self.family.adjacency, limit.items
        weight = definition.histogram_rate(EPSILON, self.family.d, *terms)
        if found.worst > 1.0 + SLACK + _ROUNDING:
            what = f"a release with values has {share(found.worst)} of epsilon at {found.pair}"
            failures.append(Failure("epsilon", what))
        if found.weight != weight:
            what = f"a unit of score has the weight {found.weight}, by definition {weight}, at {found.pair}"
            failures.append(Failure("rate", what))
        return failures


@dataclass(frozen=True)
class NumberVerdict(OverTrials):
    """The verdict on one kind of release that shows numbers.

    Attributes
    ----------
    mechanism
        The mechanism that selects, or None if all items are released.
    adjacency
        The adjacency of the neighbours.
    """

    headings: ClassVar[tuple[str, ...]]

    mechanism: Mechanism | None
    adjacency: str
    found: tuple[Compared, ...]
    failures: list[Failure]

    def cells(self) -> tuple[str, ...]:
        name = "all items" if self.mechanism is None else self.mechanism.name
        return name, self.adjacency, f"{self.pairs:,}", share(self.worst), *self.own_cells(), verdict_word(self)

    def own_cells(self) -> tuple[str, ...]:
        """Return the shares of the numbers alone."""
        return ()


@dataclass(frozen=True)
class CountVerdict(NumberVerdict):
    """The verdict on one kind of release with counts."""

    headings: ClassVar[tuple[str, ...]] = (
        *("counts with", "adjacency", "pairs", "worst / epsilon", "counts / theirs", "verdict"),
    )

    found: tuple[Counted, ...]

    @property
    def counts(self) -> Fraction:
        """The largest log ratio of the counts alone, as a share of their epsilon."""
        return max(one.counts for one in self.found)

    def own_cells(self) -> tuple[str, ...]:
        return (share(float(self.counts)),)


@dataclass(frozen=True)
class ShortfallVerdict(NumberVerdict):
    """The verdict on one kind of release with a shortfall."""

    headings: ClassVar[tuple[str, ...]] = (
        *("shortfall with", "adjacency", "pairs", "worst / epsilon", "shortfall / its", "verdict"),
    )

    found: tuple[Counted, ...]

    @property
    def shortfall(self) -> Fraction:
        """The largest log ratio of the shortfall given the list, as a share of its epsilon."""
        return max(one.shortfall for one in self.found)

    def own_cells(self) -> tuple[str, ...]:
        return (share(float(self.shortfall)),)


@dataclass(frozen=True)
class ValueVerdict(NumberVerdict):
    """The verdict on the values of one mechanism."""

    headings: ClassVar[tuple[str, ...]] = ("values of", "adjacency", "pairs", "worst / epsilon", "verdict")


class Trial(Protocol):
    """Inputs and terms of releases that are compared with all their neighbours."""

    def compare(self, mechanism: Mechanism) -> Any:
        """Compare every input with all its neighbours."""

    def find_failures(self, found: Any) -> list[Failure]:
        """Return the failed checks of one comparison."""


@dataclass(frozen=True)
class NumberTask:
    """One kind of release that shows numbers, the trials to verify it on, and the class of its verdict."""

    mechanism: Mechanism | None
    adjacency: str
    trials: tuple[Trial, ...]
    verdict: type[NumberVerdict]

    def examine(self) -> NumberVerdict:
        """Compare the neighbours of all trials and return the verdict."""
        found = tuple(trial.compare(DEFAULT if self.mechanism is None else self.mechanism) for trial in self.trials)
        failures = [fail for trial, one in zip(self.trials, found, strict=True) for fail in trial.find_failures(one)]
        if self.mechanism is None:
            # The noise is drawn in the same way after every selection, so one row checks it for all.
            failures += [failure for rate in _RATES for failure in misdrawn(rate)]
        return self.verdict(self.mechanism, self.adjacency, found, failures)


def count_tasks(adjacency: str | None = None) -> list[NumberTask]:
    """Return all tasks on counts, under one adjacency or under both."""
    # One ordered mechanism for each form of law: the counts add the same to all mechanisms of a form.
    ordered: dict[Form, Mechanism] = {}
    for variant in all_variants():
        if variant.ordered and variant.form is not Form.UNKNOWN:
            ordered.setdefault(variant.form, variant)
    made: list[NumberTask] = []
    for one in (one for one in ADJACENCIES if adjacency in (None, one)):
        made.append(NumberTask(DEFAULT, one, _count_trials(one, (1, 2, 3), with_few_items=True), CountVerdict))
        made += [NumberTask(each, one, _count_trials(one, (2,)), CountVerdict) for each in ordered.values()]
        made.append(NumberTask(None, one, _count_trials(one, (4,), with_few_items=True), CountVerdict))
    return made


def _count_trials(adjacency: str, sizes: tuple[int, ...], with_few_items: bool = False) -> tuple[NumberTrial, ...]:
    """Return trials on counts of users, on real scores of uneven sensitivity, and on users of few items."""
    real = Family(_VECTORS[:1], adjacency, Sensitivity("1/3", "3/4"), random=8)
    vectors = _VECTORS if adjacency == "add-remove" else _VECTORS[:1]
    few = ((Sensitivity(), 1), (Sensitivity(), 2), (Sensitivity(1, 2), 1)) if with_few_items else ()
    return (
        *(NumberTrial(Family(vectors, adjacency), k, counts=COUNTS) for k in sizes),
        NumberTrial(real, sizes[-1], Fraction(1, 2), COUNTS),
        *(
            NumberTrial(Family(_VECTORS[:1], adjacency, limit), sizes[-1], counts=COUNTS, per_user=per_user)
            for limit, per_user in few
        ),
    )


def shortfall_tasks(adjacency: str | None = None) -> list[NumberTask]:
    """Return all tasks on shortfalls, under one adjacency or under both."""
    # One ordered mechanism for each form of law, one that releases values, and all that may release fewer items.
    chosen: dict[object, Mechanism] = {}
    for variant in all_variants():
        kind = repr(variant) if variant.may_release_fewer else (variant.form, variant.releases_values)
        if variant.may_release_fewer or (variant.ordered and variant.form is not Form.UNKNOWN):
            chosen.setdefault(kind, variant)
    made: list[NumberTask] = []
    for one in (one for one in ADJACENCIES if adjacency in (None, one)):
        made.append(NumberTask(DEFAULT, one, _shortfall_trials(one), ShortfallVerdict))
        family = Family(_VECTORS[:1], one)
        for each in chosen.values():
            own = family.with_few_items(1) if each.releases_values else family
            made.append(NumberTask(each, one, (NumberTrial(own, 2, shortfall=SHORTFALL),), ShortfallVerdict))
    return made


def _shortfall_trials(adjacency: str) -> tuple[NumberTrial, ...]:
    """Return trials on counts of users, and on sums with an uneven sensitivity and with one of half a step."""
    limits = Sensitivity("1/3", "3/4"), Sensitivity(GRID / 2, GRID / 2)
    users, sums = Family(_VECTORS, adjacency), (Family((_SUMS,), adjacency, limit, random=8) for limit in limits)
    return (
        *(NumberTrial(users, k, shortfall=SHORTFALL) for k in (1, 2, 3)),
        NumberTrial(users, 2, counts=COUNTS, shortfall=SHORTFALL),
        *(NumberTrial(family, 2, GRID, shortfall=SHORTFALL) for family in sums),
    )


def value_tasks(adjacency: str | None = None) -> list[NumberTask]:
    """Return all tasks on values, under one adjacency or under both."""
    # All of two items, and one or two of three.
    inputs = (whole(2, 1), 2), (whole(2, 1, 1), 1), (whole(2, 1, 1), 2)
    limits = Sensitivity(items=1), Sensitivity(items=2), Sensitivity(1, 2, items=1)
    tasks = []
    for mechanism in (each for each in all_variants() if each.releases_values):
        for one in (one for one in ADJACENCIES if adjacency in (None, one)):
            trials = tuple(ValueTrial(Family((scores,), one, limit), k) for limit in limits for scores, k in inputs)
            tasks.append(NumberTask(mechanism, one, trials, ValueVerdict))
    return tasks
