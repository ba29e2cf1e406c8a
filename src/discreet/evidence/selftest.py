"""Whether `verify` and `audit` can fail: faults are planted one after the other, and each must be caught.

What is drawn comes from fixed seeds, so that the outcome is the same each time; with another seed a right sampler would
be accused with a probability below ALPHA. Draws are looked at in stages, because most faults show in few.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from discreet.errors import InternalError
from discreet.evidence import faults
from discreet.evidence.audit import draw_counts, fit_to_definition
from discreet.evidence.count_rows import CountTask, count_tasks
from discreet.evidence.discovery_rows import DiscoveryTask, discovery_tasks
from discreet.evidence.group_rows import GroupTask, group_tasks
from discreet.evidence.inputs import long_input
from discreet.evidence.value_rows import ValueTask, value_tasks
from discreet.evidence.verify import AnyTask, AnyVerdict, verify_witness
from discreet.evidence.witnesses import best_witness
from discreet.exact.entropy import Entropy
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.canonical import Canonical
from discreet.mechanisms.registry import MECHANISMS, all_variants
from discreet.text import align_columns
from discreet.workers import make_pool

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
    sampler: list[tuple[str, faults.Plant, dict[Mechanism, int]]] = [
        ("class size as printed", faults.printed_class_size, by_race),
        ("biased subset", faults.biased_subset, by_weight),
        ("no thinning", faults.no_thinning, by_race),
        ("no acceptance", faults.no_acceptance, by_weight),
        ("bounds 7% too low", faults.low_bounds, {Canonical(): most}),
        ("places: one rank off", faults.next_rank, by_weight),
        ("places: range one off", faults.shifted_range, by_weight),
        ("buckets: one rank off", faults.shifted_buckets, by_weight),
    ]
    return [
        Case("none", nullcontext, False, every, counts, groups, values, found, {Canonical(): most, **by_race}),
        Case("scale x 1.05", faults.wrong_scale(Fraction(21, 20)), rows=every, audited=by_weight),
        Case("scale x 1.35", faults.wrong_scale(Fraction(27, 20)), rows=few, audited=by_weight),
        Case("factor 2 missing", faults.wrong_scale(Fraction(2)), rows=few, audited=by_weight),
        *(Case(name, plant, rows=few, audited=audited) for name, plant, audited in sampler),
        Case("counts: half the noise planned", faults.planned_with_half_the_noise, counts=counts),
        Case("counts: half the noise drawn", faults.drawn_with_half_the_noise, counts=counts),
        Case("groups: a user is left in all", faults.left_in_all_groups, groups=groups),
        Case("groups: epsilon for each", faults.whole_epsilon_for_each_group, groups=groups),
        Case("groups: counts as of one list", faults.swap_counted_once_in_groups, groups=groups),
        Case("values: a swap as one user added", faults.swap_counted_as_added, values=values),
        Case("core: no running minimum", faults.no_running_minimum, rows=cores),
        Case("core: the choice for nothing", faults.choice_for_nothing, rows=cores),
        Case("core: boxes by scores", faults.boxes_by_scores, rows=cores),
        Case("discovery: threshold one less", faults.threshold_one_less, found=found),
        Case("discovery: all items count", faults.all_items_of_a_user_count, found=found),
        Case("discovery: rows as people", faults.rows_as_people, found=found),
        Case("discovery: uncounted items kept", faults.uncounted_items_kept, found=found),
        Case("discovery: counts bounded too", faults.counts_bounded_like_discovery, found=found),
        Case("discovery: delta for each group", faults.whole_delta_for_each_group, found=found),
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
