"""The rows of `verify --all` on counts: released with a selection, and alone, where all items are released.

Four checks: selection and counts together keep epsilon, the counts alone keep theirs, the noise is asked for at the
rate of the definition (no less and no more of it than some user can make necessary), and what is drawn has the law of
the definition on all short strings of bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from discreet import topk
from discreet.evidence import definition
from discreet.evidence.counts import Counted, verify_counts
from discreet.evidence.neighbours import Family, whole
from discreet.evidence.report import SLACK, Failure, OverTrials, share, verdict_word
from discreet.evidence.walk import walk
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.registry import DEFAULT, all_variants
from discreet.privacy import ADJACENCIES, Sensitivity

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


def misdrawn(rate: Fraction) -> list[Failure]:
    """The noise that `top_k` draws at a rate, judged on short strings of bits: no probability outside its bounds."""
    decided, undecided = walk(lambda entropy: topk.count_noise(entropy)(rate), _RUNS)
    for steps in dict.fromkeys([*range(-3, 4), *decided]):
        low, defined = float(decided.get(steps, 0)), math.exp(definition.discrete_laplace_log(steps, rate))
        if not low - 1e-12 <= defined <= low + float(undecided) + 1e-12:
            chance = f"{low:.6g} to {low + float(undecided):.6g}, by definition {defined:.6g}"
            return [Failure("noise", f"noise of counts at the rate {rate} is {steps} with probability {chance}")]
    return []
