"""Self-test of `verify` and `audit`: plant faults in the code, one after the other, and check that each one is caught.

    python tools/self_test.py [--jobs N]

All draws come from fixed seeds, so every run has the same outcome. With another seed a correct sampler would be accused
with a probability below ALPHA. The exit code is 1 if a fault is missed or the unchanged code is accused.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from rich.console import Console
from rich.progress import track

import planted_faults as faults
from discreet.errors import InternalError
from discreet.evidence.audit import draw_counts, fit_to_definition, long_input
from discreet.evidence.discovery import DiscoveryTask, discovery_tasks
from discreet.evidence.discovery_choice import choice_tasks
from discreet.evidence.groups import GroupTask, group_tasks
from discreet.evidence.neighbours import best_witness
from discreet.evidence.number_rows import NumberTask, count_tasks, shortfall_tasks, value_tasks
from discreet.evidence.verify import AnyTask, AnyVerdict, verify_witness
from discreet.exact.entropy import Entropy
from discreet.jobs import make_pool
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.canonical import Canonical
from discreet.mechanisms.registry import MECHANISMS, all_variants
from discreet.sources.discovered import GAUSSIAN, LAPLACE
from discreet.text import align_columns

ALPHA = 1e-9
"""The probability that an audit with another seed accuses a correct sampler."""

SHORTFALL = Fraction(1)
"""The epsilon of the shortfall where one is audited."""

STAGES = (2_000, 20_000, 60_000, 180_000)
"""The numbers of draws after which the counts are tested; most faults show in the first.

With the last number, 99 seeds of 100 show bounds that are 7% too low.
"""


@dataclass(frozen=True)
class Case:
    """A planted fault, or the unchanged code, and the checks to run on it.

    Attributes
    ----------
    name
        The description of the fault.
    plant
        The context manager that plants the fault.
    is_faulty
        True if there is a fault at all.
    rows
        The mechanisms to verify, each by its witness.
    counts, groups, values, found, shortfalls
        The rows of `verify --all` on counts, on lists by group, on the values of a histogram, on discovered items, and
        on shortfalls.
    audited, led
        The mechanisms to audit, each with its largest number of draws, without a shortfall and with one.
    """

    name: str
    plant: Callable[[], AbstractContextManager[None]] = nullcontext
    is_faulty: bool = True
    rows: tuple[Mechanism, ...] = ()
    counts: tuple[NumberTask, ...] = ()
    groups: tuple[GroupTask, ...] = ()
    values: tuple[NumberTask, ...] = ()
    found: tuple[DiscoveryTask, ...] = ()
    shortfalls: tuple[NumberTask, ...] = ()
    audited: dict[Mechanism, int] = field(default_factory=dict)
    led: dict[Mechanism, int] = field(default_factory=dict)

    def examine(self) -> Finding:
        """Run the checks while the fault is planted."""
        with self.plant():
            verdicts = [verify_witness(mechanism) for mechanism in self.rows if best_witness(mechanism) is not None]
            tasks: tuple[AnyTask, ...] = (*self.counts, *self.shortfalls, *self.groups, *self.values, *self.found)
            more = [task.examine() for task in tasks]
            audits = [audit_in_stages(mechanism, most) for mechanism, most in self.audited.items()]
            audits += [audit_in_stages(mechanism, most, SHORTFALL) for mechanism, most in self.led.items()]
        return Finding(self.name, self.is_faulty, [*verdicts, *more], audits)


@dataclass(frozen=True)
class Staged:
    """The result of auditing one sampler: the number of draws, and the p-value of their counts.

    `is_withheld` is True if discreet itself found the fault and withheld a release.
    """

    mechanism: Mechanism
    draws: int
    fits: float
    is_withheld: bool = False

    @property
    def holds(self) -> bool:
        """True if the counts fit the definition."""
        return self.fits > ALPHA

    def __str__(self) -> str:
        return "a release was withheld" if self.is_withheld else f"p = {self.fits:.1g}, {self.draws:,} draws"


@dataclass(frozen=True)
class Finding:
    """The results of all checks in one case.

    Attributes
    ----------
    fault
        The description of the fault.
    is_faulty
        True if there is a fault at all.
    verdicts
        The verdicts of `verify`.
    audits
        The results of the audits.
    """

    fault: str
    is_faulty: bool
    verdicts: list[AnyVerdict]
    audits: list[Staged]

    @property
    def is_accused(self) -> bool:
        """True if a check failed."""
        return any(verdict.failures for verdict in self.verdicts) or not all(audit.holds for audit in self.audits)

    @property
    def is_right(self) -> bool:
        """True if a fault was caught, or the unchanged code was not accused."""
        return self.is_accused == self.is_faulty

    @property
    def verdict(self) -> str:
        """The last cell of the row in the table."""
        if self.is_faulty:
            return "caught" if self.is_accused else "MISSED"
        return "ACCUSED" if self.is_accused else "acquitted"

    def by_verify(self) -> str:
        """Return the number of rows of `verify` that failed, and the checks that failed in them."""
        if not self.verdicts:
            return "-"
        checks = dict.fromkeys(failure.check for one in self.verdicts for failure in one.failures)
        failed = sum(bool(one.failures) for one in self.verdicts)
        return f"{failed} of {len(self.verdicts)} rows" + (f": {', '.join(checks)}" if checks else "")

    def by_audit(self) -> str:
        """Return the results of the audits; only those of the accused samplers, if there are any."""
        accused = [audit for audit in self.audits if not audit.holds]
        return "; ".join(map(str, accused or self.audits)) or "-"


@dataclass(frozen=True)
class SelfTest:
    """All findings; the first is that of the unchanged code.

    Attributes
    ----------
    findings
        One finding for each case.
    """

    findings: list[Finding]

    @property
    def holds(self) -> bool:
        """True if every fault was caught and the unchanged code was not accused."""
        return all(finding.is_right for finding in self.findings)

    def __str__(self) -> str:
        rows = [("planted fault", "by verify", "by audit", "verdict")]
        rows += [(one.fault, one.by_verify(), one.by_audit(), one.verdict) for one in self.findings]
        caught = sum(one.is_faulty and one.is_accused for one in self.findings)
        planted = sum(one.is_faulty for one in self.findings)
        return "\n".join([*align_columns(rows), f"{caught} of {planted} planted faults caught"])


def cases() -> list[Case]:
    """Return the case of the unchanged code, and one case for each fault."""
    few_draws, some, most = STAGES[-3:]
    # One mechanism for each way to draw: by weight, by a race between classes, by rounds of races, by sequences.
    others = [kind() for kind in MECHANISMS.values() if kind is not Canonical]
    few: tuple[Mechanism, ...] = (Canonical(), Canonical(noise="exponential"), *others)
    every, counts = tuple(all_variants()), tuple(task for task in count_tasks() if task.mechanism is None)
    cores = tuple(variant for variant in every if variant.may_release_fewer)
    groups, values, every_found = tuple(group_tasks()), tuple(value_tasks()), tuple(discovery_tasks())
    shortfalls, choices = tuple(shortfall_tasks()), tuple(choice_tasks())
    found, weighted = (
        tuple(task for task in every_found if task.tables.method == method) for method in (LAPLACE, GAUSSIAN)
    )
    by_weight: dict[Mechanism, int] = {Canonical(): some}
    shown: dict[Mechanism, int] = {Canonical(): few_draws}
    by_most: dict[Mechanism, int] = {Canonical(): most}
    by_race: dict[Mechanism, int] = {Canonical(noise="exponential"): few_draws}
    by_default = {**by_most, **by_race}
    sampler: list[tuple[str, faults.Plant, dict[Mechanism, int]]] = [
        ("class size as printed", faults.printed_class_size, by_race),
        ("biased subset", faults.biased_subset, by_weight),
        ("no thinning", faults.no_thinning, by_race),
        ("no acceptance", faults.no_acceptance, by_weight),
        ("bounds 7% too low", faults.low_bounds, by_most),
        ("places: one rank off", faults.next_rank, by_weight),
        ("places: range one off", faults.shifted_range, by_weight),
        ("buckets: one rank off", faults.shifted_buckets, by_weight),
    ]
    return [
        Case(
            "none",
            nullcontext,
            False,
            every,
            counts,
            groups,
            values,
            (*every_found, *choices),
            shortfalls,
            by_default,
            shown,
        ),
        Case("scale x 1.05", faults.wrong_scale(Fraction(21, 20)), rows=every, audited=by_weight),
        Case("scale x 1.35", faults.wrong_scale(Fraction(27, 20)), rows=few, audited=by_weight),
        Case("factor 2 missing", faults.wrong_scale(Fraction(2)), rows=few, audited=by_weight),
        *(Case(name, plant, rows=few, audited=audited) for name, plant, audited in sampler),
        Case("counts: half the noise planned", faults.planned_with_half_the_noise, counts=counts),
        Case("counts: half the noise drawn", faults.drawn_with_half_the_noise, counts=counts),
        Case("shortfall: half the noise", faults.shortfall_with_half_the_noise, shortfalls=shortfalls, led=shown),
        Case("shortfall: scores rounded", faults.shortfall_of_rounded_scores, shortfalls=shortfalls),
        Case("shortfall: one side moves", faults.shortfall_moved_by_one_side, shortfalls=shortfalls),
        Case("shortfall: among kept items", faults.shortfall_among_kept_items, found=found),
        Case("shortfall: among counted items", faults.shortfall_among_counted_items, found=found),
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
        Case("weights: not scaled", faults.weights_not_scaled, found=weighted),
        Case("weights: threshold for one item", faults.threshold_for_one_item, found=weighted),
        Case("weights: sigma 5% low", faults.sigma_five_percent_low, found=weighted),
        Case("choice: as if a user moved it by 1", faults.choice_for_one_user, found=choices),
        Case("choice: for free", faults.choice_for_free, found=choices),
        Case("choice: threshold one less", faults.shared_threshold_one_less, found=choices),
        Case("choice: threshold for one item", faults.shared_threshold_for_one_item, found=choices),
        Case("choice: a vote for each share", faults.each_share_is_a_vote, found=choices),
        Case("choice: a vote for each item", faults.all_items_have_a_vote, found=choices),
    ]


def each_finding(chosen: Sequence[Case], jobs: int = 1) -> Iterator[Finding]:
    """Yield the findings of some cases in their order, computed by `jobs` processes."""
    if jobs == 1 or len(chosen) == 1:
        yield from map(Case.examine, chosen)
        return
    names = [case.name for case in chosen]
    with make_pool(jobs) as pool:
        yield from pool.map(_examine_by_name, names)


def _examine_by_name(name: str) -> Finding:
    # A fault is a function, which cannot be pickled for another process.
    return next(case for case in cases() if case.name == name).examine()


def audit_in_stages(mechanism: Mechanism, most: int, shortfall: Fraction | None = None, seed: int = 1) -> Staged:
    """Audit a sampler by its long input, with more and more draws until it is accused or `most` are drawn."""
    drawn_from = long_input(mechanism, None, Fraction(1), "add-remove", shortfall)
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant every fault, print the table of findings and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="The number of processes.")
    chosen = cases()
    found = each_finding(chosen, parser.parse_args(arguments).jobs)
    shown = track(
        found, "planting", len(chosen), console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()
    )
    report = SelfTest(list(shown))
    print(report)
    return 0 if report.holds else 1


if __name__ == "__main__":
    sys.exit(main())
