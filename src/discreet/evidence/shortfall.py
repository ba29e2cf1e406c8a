"""Verify the epsilon of releases with a shortfall, on small inputs and all their neighbours.

A release with a shortfall shows a list y, and with discrete Laplace noise the lead D(y | x) of the best item left out
over the weakest item released. The list and the shortfall together must keep the whole epsilon. The shortfall given the
list must keep its own, because noise at twice the rate can hide behind a list that spends less than its part. The joint
law must be that of the definition, and the bounds must be the least that hold with 95%.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from discreet.evidence import definition
from discreet.evidence.counts import Counted, verify_counts
from discreet.evidence.neighbours import Family, whole
from discreet.evidence.report import SLACK, Failure, OverTrials, share, verdict_word
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.registry import DEFAULT, all_variants
from discreet.privacy import ADJACENCIES, Sensitivity

EPSILON, COUNTS, SHORTFALL = Fraction(1, 2), Fraction(1, 3), Fraction(1, 4)
"""The epsilon of a selection, of counts beside it, and of the shortfall."""

_VECTORS = whole(3, 2, 2, 0), whole(1, 1, 1, 1)
"""Counts of users."""

GRID = Fraction(1, 2)
"""The step of the grid of sums."""

_SUMS = (Fraction(2), Fraction(7, 4), Fraction(1), Fraction(5, 6))
"""Sums between two steps. Their leads are as near to the edge of a step as their changes need."""


@dataclass(frozen=True)
class ShortfallTrial:
    """Inputs, the size of a release, and its counts.

    Attributes
    ----------
    family
        The inputs.
    k
        The number of released items.
    grid
        The size of one step.
    counts
        The epsilon of the counts, or None without counts.
    """

    family: Family
    k: int
    grid: Fraction = Fraction(1)
    counts: Fraction | None = None

    def compare(self, mechanism: Mechanism) -> Counted:
        """Compare every input with all its neighbours, and every joint law with the definition."""
        return verify_counts(
            mechanism, self.k, self.family, epsilon=EPSILON, counts=self.counts, shortfall=SHORTFALL, grid=self.grid
        )

    @property
    def rate(self) -> Fraction:
        """The rate of the noise by definition."""
        limit = self.family.sensitivity
        return definition.shortfall_rate(SHORTFALL, limit.down, limit.up, self.family.adjacency, self.grid)

    def find_failures(self, found: Counted) -> list[Failure]:
        """Return the failed checks of one comparison."""
        failures = []
        if found.worst > 1.0 + SLACK:
            what = f"a release with a shortfall has {share(found.worst)} of epsilon at {found.pair}"
            failures.append(Failure("epsilon", what))
        if found.shortfall > 1:
            what = f"a shortfall has {share(float(found.shortfall))} of the epsilon that is its own, near {found.pair}"
            failures.append(Failure("shortfall", what))
        asked = EPSILON + (self.counts or 0) + SHORTFALL
        if found.pair.epsilon != asked:
            what = f"a release with a shortfall states epsilon = {found.pair.epsilon} where {asked} was asked for"
            failures.append(Failure("total", f"{what}, at {found.pair}"))
        if found.shortfall_rate != self.rate:
            what = f"noise of a shortfall has the rate {found.shortfall_rate}, by definition {self.rate}"
            failures.append(Failure("rate", f"{what}, at {found.pair}"))
        if found.departure is not None:
            what = f"a release with a shortfall departs from its definition: {found.departure}"
            failures.append(Failure("definition", what))
        shown, (above, around) = found.shown, definition.shortfall_margins(self.rate)
        margins = None if shown is None else tuple(
            end - shown.value for end in (shown.low, shown.high, shown.upper)
        )  # fmt: skip
        right = tuple(steps * self.grid for steps in (-around, around, above))
        if margins != right:
            what = f"the ends of a shortfall are {margins} from its value, by definition {right}, at {found.pair}"
            failures.append(Failure("bounds", what))
        return failures


@dataclass(frozen=True)
class ShortfallVerdict(OverTrials):
    """The verdict on one kind of release with a shortfall.

    Attributes
    ----------
    mechanism
        The mechanism that selects.
    adjacency
        The adjacency of the neighbours.
    found
        The result of each trial.
    failures
        The failed checks.
    """

    headings: ClassVar[tuple[str, ...]] = (
        *("shortfall with", "adjacency", "pairs", "worst / epsilon", "shortfall / its", "verdict"),
    )

    mechanism: Mechanism
    adjacency: str
    found: tuple[Counted, ...]
    failures: list[Failure]

    @property
    def shortfall(self) -> Fraction:
        """The largest log ratio of the shortfall given the list, as a share of its epsilon."""
        return max(one.shortfall for one in self.found)

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        figures = f"{self.pairs:,}", share(self.worst), share(float(self.shortfall))
        return self.mechanism.name, self.adjacency, *figures, verdict_word(self)


@dataclass(frozen=True)
class ShortfallTask:
    """One kind of release with a shortfall, and the trials to verify it on."""

    mechanism: Mechanism
    adjacency: str
    trials: tuple[ShortfallTrial, ...]

    def examine(self) -> ShortfallVerdict:
        """Compare the neighbours of all trials and return the verdict."""
        found = tuple(trial.compare(self.mechanism) for trial in self.trials)
        failures = [
            failure
            for trial, one in zip(self.trials, found, strict=True)
            for failure in trial.find_failures(one)
        ]  # fmt: skip
        return ShortfallVerdict(self.mechanism, self.adjacency, found, failures)


def shortfall_tasks(adjacency: str | None = None) -> list[ShortfallTask]:
    """Return all tasks on shortfalls, under one adjacency or under both."""
    # One ordered mechanism for each form of law, one that releases values, and all that may release fewer items.
    chosen: dict[object, Mechanism] = {}
    for variant in all_variants():
        kind = repr(variant) if variant.may_release_fewer else (variant.form, variant.releases_values)
        if variant.may_release_fewer or (variant.ordered and variant.form is not Form.UNKNOWN):
            chosen.setdefault(kind, variant)
    made: list[ShortfallTask] = []
    for one in (one for one in ADJACENCIES if adjacency in (None, one)):
        made.append(ShortfallTask(DEFAULT, one, _make_trials(one)))
        made += [ShortfallTask(mechanism, one, _make_few_trials(mechanism, one)) for mechanism in chosen.values()]
    return made


def _make_trials(adjacency: str) -> tuple[ShortfallTrial, ...]:
    """Return trials on counts of users, and on sums with an uneven sensitivity and with one of half a step."""
    uneven, half = Sensitivity("1/3", "3/4"), Sensitivity(GRID / 2, GRID / 2)
    users = Family(_VECTORS, adjacency)
    return (
        *(ShortfallTrial(users, k) for k in (1, 2, 3)),
        ShortfallTrial(users, 2, counts=COUNTS),
        *(ShortfallTrial(Family((_SUMS,), adjacency, limit, random=8), 2, GRID) for limit in (uneven, half)),
    )


def _make_few_trials(mechanism: Mechanism, adjacency: str) -> tuple[ShortfallTrial, ...]:
    family = Family(_VECTORS[:1], adjacency)
    return (ShortfallTrial(family.with_few_items(1) if mechanism.releases_values else family, 2),)
