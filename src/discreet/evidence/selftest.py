"""Whether `verify` and `audit` can fail: faults are planted one after the other, and each must be caught.

What is drawn comes from fixed seeds, so that the outcome is the same each time; with another seed a right sampler would
be accused with a probability below ALPHA. Draws are looked at in stages, because most faults show in few.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from discreet.errors import InternalError
from discreet.evidence import groups
from discreet.evidence.audit import draw_counts, fit_to_definition, long_input
from discreet.evidence.counts import CountTask, ValueTask, count_tasks, value_tasks
from discreet.evidence.discovery import DiscoveryTask, discovery_tasks
from discreet.evidence.groups import GroupTask, group_tasks
from discreet.evidence.neighbours import best_witness
from discreet.evidence.verify import AnyTask, AnyVerdict, verify_witness
from discreet.exact.arrays import Ranks
from discreet.exact.ball import ball
from discreet.exact.discrete import upper_tail
from discreet.exact.entropy import Entropy
from discreet.jobs import make_pool
from discreet.mechanisms import canonical, canonical_nested, core
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.canonical import Canonical
from discreet.mechanisms.canonical_classes import Class
from discreet.mechanisms.discovery import Discovery
from discreet.mechanisms.registry import MECHANISMS, all_variants
from discreet.mechanisms.tally import Selection, Tally
from discreet.privacy import Sensitivity
from discreet.release import counts, discovery_request, grouped_request, request
from discreet.sources.arrays.positions import PositionFinder
from discreet.sources.arrays.sorting import LARGE, BucketColumn
from discreet.sources.events.unlisted import UnlistedScoring
from discreet.text import align_columns

# Faults to plant: each replaces one function of the code by one that is wrong, for as long as a context lasts.
#
# They are the faults that a sampler of this kind can have: too little noise, classes counted wrongly, a bias in what is
# drawn, ranks that end up at the wrong items, and users who count for more than they should.

Plant = Callable[[], AbstractContextManager[None]]


@contextmanager
def replace_attribute(owner: Any, name: str, wrong: Callable[[Any], Any]) -> Iterator[None]:
    """Has something else in the place of an attribute inside the context; `wrong` makes it of what is right."""
    right = vars(owner)[name]
    setattr(owner, name, wrong(right))
    try:
        yield
    finally:
        setattr(owner, name, right)


def wrong_scale(factor: Fraction) -> Plant:
    """What one unit of loss costs, times a factor, in all mechanisms."""

    def scale_wrongly(right: Any) -> Any:
        def scale(epsilon: Fraction, sensitivity: Sensitivity) -> Fraction:
            return factor * Fraction(right(epsilon, sensitivity))

        return scale

    @contextmanager
    def plant() -> Iterator[None]:
        with ExitStack() as stack:
            for kind in MECHANISMS.values():
                stack.enter_context(replace_attribute(sys.modules[kind.__module__], "scale", scale_wrongly))
            yield

    return plant


def printed_class_size() -> AbstractContextManager[None]:
    """Algorithm 1 of the paper, as printed: m += log((t - (h+1)) / (k - (h+1))) for h = k-2 down to 0, from rank 1."""

    def log_size(self: canonical.Prepared, cell: Class) -> arb:
        (h, t), k, size = cell, self.top[0], Fraction(1)
        if cell != self.top:
            for head in range(k - 2, h - 1, -1):
                size *= Fraction((t + 1) - (head + 1), k - (head + 1))
        return ball(size).log()

    return replace_attribute(canonical.Prepared, "log_size", lambda right: log_size)


def biased_subset() -> AbstractContextManager[None]:
    """Members of a subset drawn by the remainder of random bits, which some of them have more often."""

    def subset(self: Entropy, size: int, last: int) -> Ranks:
        chosen: set[int] = set()
        while len(chosen) < size:
            chosen.add(self.bits(last.bit_length()) % (last + 1))
        return np.array(sorted(chosen), np.int64)

    return replace_attribute(Entropy, "subset", lambda right: subset)


def no_thinning() -> AbstractContextManager[None]:
    """Every arrival of a box is kept, as if all its classes were as large as its bound."""

    def arrive(self: canonical._Streams, j: int, entropy: Entropy) -> Class:
        return self.prepared.top if j == 0 else self.boxes.cell(j - 1, entropy)

    return replace_attribute(canonical._Streams, "arrive", lambda right: arrive)


def no_acceptance() -> AbstractContextManager[None]:
    """Every class that is drawn is kept, as if all of a cell were as heavy as its bound."""
    return replace_attribute(canonical_nested, "sample_bernoulli_exp", lambda right: lambda *_: True)


@contextmanager
def low_bounds() -> Iterator[None]:
    """Bounds on nested classes that are 7% too low, but for those that hold the top-k alone, with all checks removed.

    The bounds are not checked where they are built, and a probability above 1, which ends a draw, is taken for 1.
    """

    def lower_bounds(right: Any) -> Any:
        def enclose(top: Any, bottom: Any) -> Any:
            cells = right(top, bottom)
            return replace(cells, log_masses=cells.log_masses + math.log(0.93) * (cells.b.last > 0))

        return enclose

    def accept(right: Any) -> Any:
        return lambda entropy, log_probability, bounds: right(entropy, lambda: log_probability().min(arb(0)))

    with (
        replace_attribute(canonical_nested, "begin", lower_bounds),
        replace_attribute(canonical_nested, "check_bounds", lambda right: lambda *_: None),
        replace_attribute(canonical_nested, "sample_bernoulli_exp", accept),
    ):
        yield


def next_rank() -> AbstractContextManager[None]:
    """The item one rank lower than the one that was drawn."""

    def shift(right: Any) -> Any:
        return lambda self, ranks: right(self, (ranks + 1) % len(self.scores))

    def one_by_one(right: Any) -> Any:
        return lambda self, selection: self.find(selection.draw_ranks())

    @contextmanager
    def plant() -> Iterator[None]:
        with (
            replace_attribute(PositionFinder, "find", shift),
            replace_attribute(PositionFinder, "find_selected", one_by_one),
        ):
            yield

    return plant()


def shifted_range() -> AbstractContextManager[None]:
    """In large arrays: of a range of ranks, the one that begins and ends one rank lower."""

    def shift(right: Any) -> Any:
        def find_selected(self: PositionFinder, selection: Selection) -> Any:
            subset = selection.subset
            if subset is not None and subset.last < self.tally.d - 1 >= LARGE - 1:
                shifted = replace(subset, first=subset.first + 1, last=subset.last + 1)
                selection = replace(selection, subset=shifted, cuts_no_run=False)
            return right(self, selection)

        return find_selected

    return replace_attribute(PositionFinder, "find_selected", shift)


def shifted_buckets() -> AbstractContextManager[None]:
    """In arrays that are put into buckets: the score one rank lower."""

    def shift(right: Any) -> Any:
        return lambda self, positions: right(self, np.maximum(positions - 1, 0))

    return replace_attribute(BucketColumn, "raw", shift)


def planned_with_half_the_noise() -> AbstractContextManager[None]:
    """Counts whose noise is planned at twice the rate."""

    def double_rate(right: Any) -> Any:
        def make_count_mechanism(*arguments: Any, **options: Any) -> Any:
            made = right(*arguments, **options)
            return replace(made, rate=2 * made.rate)

        return make_count_mechanism

    return replace_attribute(request, "make_count_mechanism", double_rate)


def drawn_with_half_the_noise() -> AbstractContextManager[None]:
    """Counts whose noise is planned as it should be, and drawn at twice the rate."""

    def double_rate(right: Any) -> Any:
        return lambda entropy, rate: right(entropy, 2 * rate)

    return replace_attribute(request, "sample_discrete_laplace", double_rate)


def left_in_all_groups() -> AbstractContextManager[None]:
    """A user who should count in one group alone counts in all in which the user has rows."""
    return replace_attribute(groups, "choose_groups", lambda right: lambda rows, each_user, most: sorted(rows))


def whole_epsilon_for_each_group() -> AbstractContextManager[None]:
    """Each group is released with epsilon in place of its share, and the whole says that it costs epsilon."""
    return replace_attribute(grouped_request, "GroupShare", lambda right: lambda key, groups_per_user: right(key, 1))


def swap_counted_once_in_groups() -> AbstractContextManager[None]:
    """Counts by group with the noise of one list, as if a user who is replaced stayed in the group."""
    return replace_attribute(counts, "l1_steps_by_group", lambda right: counts.l1_steps)


def threshold_one_less() -> AbstractContextManager[None]:
    """Items that nobody listed are kept from one person less on."""
    return replace_attribute(Discovery, "threshold", lambda right: property(lambda self: right.func(self) - 1))


def all_items_of_a_user_count() -> AbstractContextManager[None]:
    """Every item of a user counts for finding it, however many they are."""

    def lift_limit(right: Any) -> Any:
        def count_users(self: UnlistedScoring, *arguments: Any) -> Any:
            return right(replace(self, max_items_per_user=2**31), *arguments)

        return count_users

    return replace_attribute(UnlistedScoring, "_count_users", lift_limit)


@contextmanager
def rows_as_people() -> Iterator[None]:
    """Each row of a user counts for finding an item, and in its score."""
    import ibis

    with (
        replace_attribute(UnlistedScoring, "_add_up_by_user", lambda right: lambda self, rows, within=(): rows),
        replace_attribute(UnlistedScoring, "_hash", lambda right: lambda *_: ibis.row_number()),
    ):
        yield


@contextmanager
def uncounted_items_kept() -> Iterator[None]:
    """An item that a user touched beyond the limit, and that counts for nobody, is kept where the noise is enough."""

    def keep_probability(self: Discovery, users: int) -> arb:
        return upper_tail(self.rate, self.threshold - users)

    with (
        replace_attribute(UnlistedScoring, "_drop_uncounted", lambda right: lambda self, scored: scored),
        replace_attribute(Discovery, "keep_probability", lambda right: keep_probability),
    ):
        yield


def counts_bounded_like_discovery() -> AbstractContextManager[None]:
    """Counts of those found with noise for users of one item, as discovery bounds them; the counts are of all items."""

    def bound(right: Any) -> Any:
        def make_count_mechanism(
            sensitivity: Any, adjacency: Any, grid: Any, k: Any, _: Any, *rest: Any, **more: Any
        ) -> Any:
            return right(sensitivity, adjacency, grid, k, 1, *rest, **more)

        return make_count_mechanism

    return replace_attribute(discovery_request, "make_count_mechanism", bound)


def whole_delta_for_each_group() -> AbstractContextManager[None]:
    """Each group finds items with epsilon and delta in place of its shares, and the whole says that it costs them."""

    def keep_whole(right: Any) -> Any:
        return lambda self: replace(self, max_groups_per_user=1)

    return replace_attribute(Discovery, "share_of_group", keep_whole)


def swap_counted_as_added() -> AbstractContextManager[None]:
    """A histogram with the noise for a user added, whatever the adjacency."""

    def count_as_added(right: Any) -> Any:
        return lambda reach, adjacency, *rest: right(reach, "add-remove", *rest)

    return replace_attribute(request, "l1_distance", count_as_added)


def no_running_minimum() -> AbstractContextManager[None]:
    """A core is supported by its own odds alone, whatever those of smaller ones are."""

    def exponents(odds: Sequence[arb], share: Fraction) -> list[arb]:
        supported = [one - ball(1 / share) for one in odds]
        return [ball(share / (2 * (1 - share))) * score for score in core.score_candidates(supported)]

    return replace_attribute(core, "exponents", lambda right: exponents)


def choice_for_nothing() -> AbstractContextManager[None]:
    """The candidates have all of epsilon, as if to choose between them were free."""

    def prepare(self: core.Core, tally: Tally, k: int, epsilon: Fraction, sensitivity: Sensitivity) -> core.Prepared:
        return core.Prepared(self, tally, k, core.choice_share(k), epsilon, sensitivity)

    return replace_attribute(core.Core, "prepare", lambda right: prepare)


def boxes_by_scores() -> AbstractContextManager[None]:
    """A box ends where the run of equal scores does that its middle is in: if that is elsewhere, it counts as bad."""

    def end_at_runs(right: Any) -> Any:
        def weigh_grid(grid: core.Grid, tally: Tally, *terms: Fraction) -> Any:
            t = tally.last_of_run(grid.t)
            return right(replace(grid, t=t, is_good=grid.is_good & (t == grid.t)), tally, *terms)

        return weigh_grid

    return replace_attribute(core, "weigh_grid", end_at_runs)


ALPHA = 1e-9
"""The probability that the draws of another seed accuse a right sampler, for each that is audited."""

STAGES = (2_000, 20_000, 60_000, 180_000)
"""After how many draws the counts are looked at; the last show bounds 7% too low with 99 seeds of 100."""


@dataclass(frozen=True)
class Case:
    """Code with a fault, or without one, and the checks that are made of it.

    Attributes
    ----------
    name
        What is wrong.
    plant
        The context in which the code has the fault.
    is_faulty
        Whether something is wrong at all.
    rows
        The mechanisms that are verified, each by its witness.
    counts, groups, values, found
        The rows of `verify --all` on counts, on lists by group, on the values of a histogram, and on items that nobody
        listed.
    audited
        The mechanisms whose sampler is audited, each with how many draws there are at most.
    """

    name: str
    plant: Callable[[], AbstractContextManager[None]] = nullcontext
    is_faulty: bool = True
    rows: tuple[Mechanism, ...] = ()
    counts: tuple[CountTask, ...] = ()
    groups: tuple[GroupTask, ...] = ()
    values: tuple[ValueTask, ...] = ()
    found: tuple[DiscoveryTask, ...] = ()
    audited: dict[Mechanism, int] = field(default_factory=dict)

    def examine(self) -> Finding:
        """What the checks find while the fault is planted."""
        with self.plant():
            verdicts = [verify_witness(mechanism) for mechanism in self.rows if best_witness(mechanism) is not None]
            tasks: tuple[AnyTask, ...] = (*self.counts, *self.groups, *self.values, *self.found)
            more = [task.examine() for task in tasks]
            audits = [audit_in_stages(mechanism, most) for mechanism, most in self.audited.items()]
        return Finding(self.name, self.is_faulty, [*verdicts, *more], audits)


@dataclass(frozen=True)
class Staged:
    """The findings of the audit of one sampler: after how many draws, and the probability of counts so far off.

    `is_withheld` is True if discreet itself found the fault, and withheld a release.
    """

    mechanism: Mechanism
    draws: int
    fits: float
    is_withheld: bool = False

    @property
    def holds(self) -> bool:
        """Whether the counts may be those of the definition."""
        return self.fits > ALPHA

    def __str__(self) -> str:
        return "a release was withheld" if self.is_withheld else f"p = {self.fits:.1g}, {self.draws:,} draws"


@dataclass(frozen=True)
class Finding:
    """What the checks found in one case.

    Attributes
    ----------
    fault
        What is wrong.
    is_faulty
        Whether something is wrong at all.
    verdicts
        Those of `verify`.
    audits
        Those of `audit`.
    """

    fault: str
    is_faulty: bool
    verdicts: list[AnyVerdict]
    audits: list[Staged]

    @property
    def is_accused(self) -> bool:
        """Whether a check found something."""
        return any(verdict.failures for verdict in self.verdicts) or not all(audit.holds for audit in self.audits)

    @property
    def is_right(self) -> bool:
        """Whether a fault was caught, or nothing was found where there is none."""
        return self.is_accused == self.is_faulty

    @property
    def verdict(self) -> str:
        """How the finding is spelt in the table."""
        if self.is_faulty:
            return "caught" if self.is_accused else "MISSED"
        return "ACCUSED" if self.is_accused else "acquitted"

    def by_verify(self) -> str:
        """What `verify` found: in how many rows, and by which checks."""
        if not self.verdicts:
            return "-"
        checks = dict.fromkeys(failure.check for one in self.verdicts for failure in one.failures)
        failed = sum(bool(one.failures) for one in self.verdicts)
        return f"{failed} of {len(self.verdicts)} rows" + (f": {', '.join(checks)}" if checks else "")

    def by_audit(self) -> str:
        """What `audit` found; where one sampler is accused, that one."""
        accused = [audit for audit in self.audits if not audit.holds]
        return "; ".join(map(str, accused or self.audits)) or "-"


@dataclass(frozen=True)
class SelfTest:
    """All that was found, the code as it is first.

    Attributes
    ----------
    findings
        One for each case.
    """

    findings: list[Finding]

    @property
    def holds(self) -> bool:
        """Whether every fault was caught, and the code as it is was not accused."""
        return all(finding.is_right for finding in self.findings)

    def __str__(self) -> str:
        rows = [("planted fault", "by verify", "by audit", "verdict")]
        rows += [(one.fault, one.by_verify(), one.by_audit(), one.verdict) for one in self.findings]
        caught = sum(one.is_faulty and one.is_accused for one in self.findings)
        planted = sum(one.is_faulty for one in self.findings)
        return "\n".join([*align_columns(rows), f"{caught} of {planted} planted faults caught"])


def cases() -> list[Case]:
    """The code as it is, and every fault."""
    few_draws, some, most = STAGES[-3:]
    # One of each way to draw: by weight, by a race between classes, by one between items in rounds, by sequences.
    others = [kind() for kind in MECHANISMS.values() if kind is not Canonical]
    few: tuple[Mechanism, ...] = (Canonical(), Canonical(noise="exponential"), *others)
    every, counts = tuple(all_variants()), tuple(task for task in count_tasks() if task.mechanism is None)
    cores = tuple(variant for variant in every if variant.may_release_fewer)
    groups, values, found = tuple(group_tasks()), tuple(value_tasks()), tuple(discovery_tasks())
    by_weight: dict[Mechanism, int] = {Canonical(): some}
    by_race: dict[Mechanism, int] = {Canonical(noise="exponential"): few_draws}
    sampler: list[tuple[str, Plant, dict[Mechanism, int]]] = [
        ("class size as printed", printed_class_size, by_race),
        ("biased subset", biased_subset, by_weight),
        ("no thinning", no_thinning, by_race),
        ("no acceptance", no_acceptance, by_weight),
        ("bounds 7% too low", low_bounds, {Canonical(): most}),
        ("places: one rank off", next_rank, by_weight),
        ("places: range one off", shifted_range, by_weight),
        ("buckets: one rank off", shifted_buckets, by_weight),
    ]
    return [
        Case("none", nullcontext, False, every, counts, groups, values, found, {Canonical(): most, **by_race}),
        Case("scale x 1.05", wrong_scale(Fraction(21, 20)), rows=every, audited=by_weight),
        Case("scale x 1.35", wrong_scale(Fraction(27, 20)), rows=few, audited=by_weight),
        Case("factor 2 missing", wrong_scale(Fraction(2)), rows=few, audited=by_weight),
        *(Case(name, plant, rows=few, audited=audited) for name, plant, audited in sampler),
        Case("counts: half the noise planned", planned_with_half_the_noise, counts=counts),
        Case("counts: half the noise drawn", drawn_with_half_the_noise, counts=counts),
        Case("groups: a user is left in all", left_in_all_groups, groups=groups),
        Case("groups: epsilon for each", whole_epsilon_for_each_group, groups=groups),
        Case("groups: counts as of one list", swap_counted_once_in_groups, groups=groups),
        Case("values: a swap as one user added", swap_counted_as_added, values=values),
        Case("core: no running minimum", no_running_minimum, rows=cores),
        Case("core: the choice for nothing", choice_for_nothing, rows=cores),
        Case("core: boxes by scores", boxes_by_scores, rows=cores),
        Case("discovery: threshold one less", threshold_one_less, found=found),
        Case("discovery: all items count", all_items_of_a_user_count, found=found),
        Case("discovery: rows as people", rows_as_people, found=found),
        Case("discovery: uncounted items kept", uncounted_items_kept, found=found),
        Case("discovery: counts bounded too", counts_bounded_like_discovery, found=found),
        Case("discovery: delta for each group", whole_delta_for_each_group, found=found),
    ]


def each_finding(chosen: Sequence[Case], jobs: int = 1) -> Iterator[Finding]:
    """What is found in some cases, in their order, by so many processes."""
    if jobs == 1 or len(chosen) == 1:
        yield from map(Case.examine, chosen)
        return
    names = [case.name for case in chosen]
    with make_pool(jobs) as pool:
        yield from pool.map(_examine_by_name, names)


def _examine_by_name(name: str) -> Finding:
    # A fault is a function, which cannot be sent to another process.
    return next(case for case in cases() if case.name == name).examine()


def audit_in_stages(mechanism: Mechanism, most: int, seed: int = 1) -> Staged:
    """Audits a sampler by its long input, with more and more draws until it is accused or there are enough."""
    drawn_from = long_input(mechanism, None, Fraction(1), "add-remove")
    entropy, counts, draws, fits = Entropy(random.Random(seed)), Counter[Any](), 0, 1.0  # noqa: S311  # no secret
    for stage in (stage for stage in STAGES if stage <= most):
        try:
            counts += draw_counts(drawn_from, stage - draws, entropy)
        except InternalError:
            return Staged(mechanism, draws, 0.0, is_withheld=True)
        draws, chances = stage, fit_to_definition(drawn_from, counts)
        fits = min(1.0, len(STAGES) * len(chances) * min(chances))
        if fits <= ALPHA:
            break
    return Staged(mechanism, draws, fits)
