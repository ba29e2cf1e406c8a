"""Verify releases by group: compare the laws of all groups together between all neighbouring tables.

A table has rows of a user, a group and an item. Every user with any rows in any groups is added to some tables,
removed, and replaced by every other user. Groups are drawn independently, so the largest log ratio of a table is the
sum of those of its groups, and so are Renyi divergences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, combinations, count, product
from typing import Any, ClassVar

import numpy as np

from discreet.evidence import definition
from discreet.evidence.counts import BoundedScores
from discreet.evidence.neighbours import Family, Scores, move, whole
from discreet.evidence.report import SLACK, Failure, OverTrials, format_scores, share, verdict_word
from discreet.evidence.visible_laws import ORDERS, Laws, label, positions_of, renyi, shares, signed_log_ratios
from discreet.exact.arrays import Floats
from discreet.mechanisms.base import Form, Mechanism, Prepared
from discreet.mechanisms.registry import DEFAULT, all_variants
from discreet.mechanisms.tally import Selection
from discreet.privacy import ADJACENCIES
from discreet.release.release import Release
from discreet.release.request import Randomness, make_grouped_request
from discreet.sources.arrays.array import ArraySource
from discreet.sources.base import MANY, ONE, check_each_user
from discreet.sources.scores import MemberGroups

EPSILON, COUNTS, SHORTFALL = Fraction(1, 2), Fraction(1, 3), Fraction(1, 4)
"""The epsilon of all selections together, of the counts, and of the shortfalls."""

Rows = dict[int, set[int]]
"""The rows of one user: the items in each group."""

Change = tuple[Scores, ...]
"""The change of the scores of each group by one user."""

_TABLES: dict[tuple[int, int], tuple[Change, ...]] = {
    (2, 3): ((whole(0, 0, 0), whole(0, 0, 0)), (whole(2, 1, 0), whole(0, 1, 1))),
    (3, 2): ((whole(0, 0), whole(1, 0), whole(1, 1)),),
}
"""The scores of the groups before a user comes, by the numbers of groups and of items."""


@dataclass(frozen=True)
class GroupTrial:
    """The terms of a release by group.

    Attributes
    ----------
    mechanism, k, adjacency
        The terms of the list of each group.
    each_user, most
        The number of groups in which a user counts.
    groups, items
        The numbers of groups and of items.
    counts
        The epsilon of the counts, or None without counts.
    per_user
        The bound on the items of a user in a group, or None.
    shortfall
        The epsilon of the shortfalls, or None without them.
    """

    mechanism: Mechanism
    k: int
    adjacency: str
    each_user: str
    most: int | None = None
    groups: int = 2
    items: int = 3
    counts: Fraction | None = None
    per_user: int | None = None
    shortfall: Fraction | None = None

    def __str__(self) -> str:
        user = self.each_user if self.most is None else f"at most {self.most}"
        return f"{self.mechanism!r}, k = {self.k}, each user in {user} of {self.groups} groups, {self.adjacency}"

    @property
    def asked(self) -> Fraction:
        """The epsilon of all groups together; a release of all items is free."""
        selection = EPSILON if self.k < self.items else Fraction(0)
        return selection + (self.counts or Fraction(0)) + (self.shortfall or Fraction(0))

    @property
    def rates(self) -> set[Fraction]:
        """The rates of the noises of counts and of shortfalls by definition."""
        found, groups = set[Fraction](), check_each_user(self.each_user, self.most, self.groups)
        if self.counts is not None:
            part, per_user = self.counts / groups, self.per_user
            found.add(definition.counts_rate_by_group(part, self.k, adjacency=self.adjacency, per_user=per_user))
        if self.shortfall is not None:
            found.add(definition.shortfall_rate(self.shortfall / groups, adjacency=self.adjacency))
        return found

    def changes(self) -> list[Change]:
        """Return the changes by every possible user, without duplicates; the first user has no rows."""
        cells = list(product(range(self.groups), range(self.items)))
        users = chain.from_iterable(combinations(cells, size) for size in range(len(cells) + 1))
        made: dict[Change, None] = {}
        for user in users:
            rows: Rows = {}
            for group, item in user:
                rows.setdefault(group, set()).add(item)
            kept = {
                group: sorted(rows[group])[: self.per_user] for group in choose_groups(rows, self.each_user, self.most)
            }
            change = [[int(item in kept.get(group, ())) for item in range(self.items)] for group in range(self.groups)]
            made[tuple(whole(*moved) for moved in change)] = None
        return list(made)


@dataclass(frozen=True)
class Found:
    """The result of comparing all neighbours of one trial.

    Attributes
    ----------
    trial
        The trial.
    pairs
        The number of pairs of neighbouring tables.
    worst
        An upper bound on the largest log ratio, as a share of the epsilon asked for.
    renyi
        The largest Renyi divergence as a share of the bound by the stated zCDP; 0 with counts or shortfalls, whose law
        is not listed.
    shortfall
        The largest log ratio of the shortfalls given the lists, as a share of their epsilon; 0 without shortfalls.
    tables
        The two tables with the largest ratio.
    stated
        The epsilon that the release states.
    rates
        The rates of the noises of the counts and of the shortfalls.
    misplaced
        The first shortfall around another lead than that of the definition, None if there is none.
    """

    trial: GroupTrial
    pairs: int
    worst: float
    renyi: float
    shortfall: float
    tables: tuple[Change, Change]
    stated: Fraction
    rates: set[Fraction]
    misplaced: str | None

    def failures(self) -> list[Failure]:
        """Return the failed checks."""
        found, trial = [], self.trial
        if self.worst > 1.0 + SLACK:
            both = " and ".join(" ".join(map(format_scores, table)) for table in self.tables)
            found.append(Failure("epsilon", f"groups have {share(self.worst)} of epsilon at {both} with {trial}"))
        if self.renyi > 1.0 + SLACK:
            found.append(Failure("zCDP", f"groups have {share(self.renyi)} of the zCDP that they state with {trial}"))
        if self.stated != trial.asked:
            what = f"groups state epsilon = {self.stated} where {trial.asked} was asked for, with {trial}"
            found.append(Failure("total", what))
        if self.shortfall > 1.0 + SLACK:
            what = f"shortfalls by group have {share(self.shortfall)} of the epsilon that is theirs with {trial}"
            found.append(Failure("shortfall", what))
        if self.misplaced is not None:
            found.append(Failure("definition", f"{self.misplaced} with {trial}"))
        if self.rates != trial.rates:
            drawn, right = (" and ".join(map(str, sorted(rates))) for rates in (self.rates, trial.rates))
            what = f"noise by group has the rates {drawn}, by definition {right}, with {trial}"
            found.append(Failure("rate", what))
        return found


@dataclass(frozen=True)
class GroupVerdict(OverTrials):
    """The verdict on one kind of release by group: the number of groups of a user, and the adjacency."""

    headings: ClassVar[tuple[str, ...]] = (
        *("each user's groups", "adjacency", "trials", "pairs", "worst / epsilon", "Renyi / zCDP", "verdict"),
    )

    each_user: str
    adjacency: str
    found: tuple[Found, ...]
    failures: list[Failure]

    @property
    def renyi(self) -> float:
        """The largest Renyi divergence, as a share of the bound by the stated zCDP."""
        return max(one.renyi for one in self.found)

    def cells(self) -> tuple[str, ...]:
        figures = f"{len(self.found)}", f"{self.pairs:,}", share(self.worst), share(self.renyi)
        return self.each_user, self.adjacency, *figures, verdict_word(self)


@dataclass(frozen=True)
class GroupTask:
    """One kind of release by group, and its trials."""

    each_user: str
    adjacency: str
    trials: tuple[GroupTrial, ...]

    def examine(self) -> GroupVerdict:
        """Compare the neighbours of all trials and return the verdict."""
        found = tuple(map(compare_tables, self.trials))
        failures = [failure for one in found for failure in one.failures()]
        return GroupVerdict(self.each_user, self.adjacency, found, failures)


def group_tasks(adjacency: str | None = None) -> list[GroupTask]:
    """Return all tasks on groups, under one adjacency or under both."""
    kinds = product((ONE, MANY), (one for one in ADJACENCIES if adjacency in (None, one)))
    return [GroupTask(each_user, one, _make_trials(each_user, one)) for each_user, one in kinds]


def _make_trials(each_user: str, adjacency: str) -> tuple[GroupTrial, ...]:
    """Return trials of every enumerable mechanism, and some with counts."""
    mechanisms = [one for one in all_variants() if is_enumerable(one) and (adjacency != "swap" or one.is_linear)]
    made = [GroupTrial(one, k, adjacency, each_user) for one in mechanisms for k in (1, 2)]
    if each_user == MANY:
        made += [GroupTrial(one, 1, adjacency, MANY, most=1) for one in mechanisms]
        made += [GroupTrial(one, 1, adjacency, MANY, most=2, groups=3, items=2) for one in mechanisms]
    ordered = next(one for one in mechanisms if one.ordered)
    counted = [(DEFAULT, 1, None), (DEFAULT, 2, None), (DEFAULT, 2, 1), (ordered, 2, None), (DEFAULT, 3, None)]
    bounds = [None] if each_user == ONE else [None, 1]
    made += [
        GroupTrial(one, k, adjacency, each_user, most=most, counts=COUNTS, per_user=per_user)
        for (one, k, per_user), most in product(counted, bounds)
    ]
    led = [(DEFAULT, 1, None), (DEFAULT, 2, None), (ordered, 2, None), (DEFAULT, 2, COUNTS)]
    made += [
        GroupTrial(one, k, adjacency, each_user, most=most, counts=counts, shortfall=SHORTFALL)
        for (one, k, counts), most in product(led, bounds)
    ]
    return tuple(made)


def is_enumerable(mechanism: Mechanism) -> bool:
    """Return True if the law of a mechanism is a sum, which is quick for small inputs."""
    return mechanism.form is not Form.UNKNOWN and not mechanism.needs_integrals


def choose_groups(rows: Rows, each_user: str, most: int | None) -> list[int]:
    """Return the groups in which a user counts, by the user's own rows: the one with most rows, or the first few."""
    if each_user == ONE:
        sizes = Counter({group: len(items) for group, items in sorted(rows.items())})
        return [group for group, _ in sizes.most_common(1)]
    return sorted(rows)[:most]


def compare_tables(trial: GroupTrial) -> Found:
    """Compare every table of a trial with all its neighbours."""
    laws, changes = GroupLaws(trial), trial.changes()
    promised = laws.grouped.guarantee
    found = [_compare_around(laws, table, changes, trial) for table in _TABLES[trial.groups, trial.items]]
    worst, tables = max(((ratio, pair) for _, ratio, pair, *_ in found), key=lambda one: one[0])
    spread, leads = (max(figures) for figures in list(zip(*found, strict=True))[3:])
    return Found(
        trial,
        sum(pairs for pairs, *_ in found),
        float(shares(np.array(worst), trial.asked)),
        0.0 if laws.rates else float(shares(np.array(spread), promised.zcdp)),
        leads / float(trial.shortfall) if trial.shortfall else 0.0,
        tables,
        promised.epsilon,
        laws.rates,
        laws.misplaced,
    )


def _compare_around(
    laws: GroupLaws, table: Change, changes: list[Change], trial: GroupTrial
) -> tuple[int, float, tuple[Change, Change], float, float]:
    """Return the pairs around a table: their number, largest log ratio, its tables, and largest divergence.

    The last figure is the largest log ratio of the shortfalls given the lists.
    """
    ratios, leads = np.zeros((2, len(changes), len(changes)))
    spreads = np.zeros((len(ORDERS), *ratios.shape))
    for group, before in enumerate(table):
        steps = list(dict.fromkeys(change[group] for change in changes))
        here = np.array([steps.index(change[group]) for change in changes])
        apart, divergences, moved = laws.apart([move(before, step) for step in steps])
        ratios += apart[np.ix_(here, here)]
        leads += moved[np.ix_(here, here)]
        spreads += divergences[:, here][:, :, here]
    # Under add-remove one of the two tables lacks the user. Either table may have the larger probability.
    rows = len(changes) if trial.adjacency == "swap" else 1
    ratios, spreads, leads = (
        np.maximum(each, each.swapaxes(-1, -2))[..., :rows, :] for each in (ratios, spreads, leads)
    )
    one, other = np.unravel_index(int(ratios.argmax()), ratios.shape)
    tables = [tuple(map(move, table, changes[at])) for at in (one, other)]
    pairs = rows * (rows - 1) // 2 if rows > 1 else len(changes) - 1
    spread = (spreads.max(axis=(1, 2)) / ORDERS).max()
    return pairs, float(ratios.max()), (tables[0], tables[1]), float(spread), float(leads.max())


class GroupLaws(Laws):
    """The laws of what `top_k` shows of the last group, while the other groups stay as they are."""

    def __init__(self, trial: GroupTrial) -> None:
        nobody = Family((whole(*[0] * trial.items),), trial.adjacency)
        super().__init__(trial.mechanism, trial.k, EPSILON, nobody)
        self._per_user, self._place = trial.per_user, trial.groups - 1
        most = check_each_user(trial.each_user, trial.most, trial.groups)
        members = [self.source(nobody.scores[0])] * trial.groups
        self.grouped = make_grouped_request(
            MemberGroups(range(trial.groups), members, trial.each_user, most), trial.k, EPSILON,
            mechanism=trial.mechanism, adjacency=trial.adjacency, counts=trial.counts, shortfall=trial.shortfall,
        )  # fmt: skip
        self.request = self.grouped.requests[self._place]
        self.rates: set[Fraction] = set()
        self.misplaced: str | None = None

    def source(self, scores: Scores) -> ArraySource:
        made = super().source(scores)
        return BoundedScores(made.scores, made.labels, made.unit, made.grid, max_items_per_user=self._per_user)

    def release(self, scores: Scores, source: ArraySource, draw: Callable[[Prepared], Selection]) -> Release:
        requests, turns, groups = list(self.grouped.requests), count(), self.grouped.source
        requests[self._place] = replace(self.request, source=source)
        members = [request.source for request in requests]
        asked = MemberGroups(groups.keys, members, groups.each_user, groups.groups_per_user)

        def choose(prepared: Prepared) -> Selection:
            return draw(prepared) if next(turns) == self._place else Selection(np.arange(self.k))

        def draw_no_noise(rate: Fraction) -> int:
            self.rates.add(rate)
            return 0

        grouped = replace(self.grouped, source=asked, requests=requests)
        made = grouped.draw(Randomness(choose, draw_no_noise))[self._place]
        if made.shortfall is not None:
            lead = definition.lead(scores, positions_of(made.items))
            if made.shortfall.value != lead:
                where = f"{' '.join(made.items)} of {format_scores(scores)}"
                self.misplaced = f"the shortfall of {where} is around {made.shortfall.value}, by definition {lead},"
        return replace(made, counts=None, shortfall=None)

    def apart(self, inputs: list[Scores]) -> tuple[Floats, Floats, Floats]:
        """Return figures of each input over each other: the largest log ratio, and the Renyi divergence of each order.

        The last figures are the largest log ratios of the shortfall given the list.
        """
        table = self.table(inputs)
        moved, leads = (
            np.array([[log_ratio(one, other, table.outcomes) for other in inputs] for one in inputs])
            for log_ratio in (self._counts_apart, self._leads_apart)
        )
        ratios = (signed_log_ratios(table.logs[:, None], table.logs[None]) + moved + leads).max(axis=2)
        rows = [np.broadcast_to(row, table.logs.shape) for row in table.logs]
        spreads = np.array([[renyi(row, table.logs, order) for row in rows] for order in ORDERS])
        return ratios + table.off + table.off[:, None], spreads, leads.max(axis=2)

    def _counts_apart(self, scores: Scores, other: Scores, outcomes: list[Any]) -> list[float]:
        """Return the log ratio that the counts add to each outcome: the rate times the distance of the scores."""
        counted = self.request.count_mechanism
        if counted is None:
            return [0.0] * len(outcomes)
        steps = {label(i): abs(one - two) for i, (one, two) in enumerate(zip(scores, other, strict=True))}
        return [float(counted.rate * sum(steps[item] for item in outcome[0])) for outcome in outcomes]

    def _leads_apart(self, scores: Scores, other: Scores, outcomes: list[Any]) -> list[float]:
        """Return the log ratio that the shortfall adds to each outcome: its rate times the distance of the leads."""
        noisy = self.request.shortfall_mechanism
        if noisy is None:
            return [0.0] * len(outcomes)
        lists = [positions_of(outcome[0]) for outcome in outcomes]
        return [
            float(noisy.rate * abs(definition.lead(scores, y) - definition.lead(other, y))) if y else 0.0 for y in lists
        ]
