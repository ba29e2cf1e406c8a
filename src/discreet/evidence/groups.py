"""The rows of `verify --all` on lists by group: the law of all groups together, between all neighbouring tables.

A table has rows of a user, a group and an item. Every user with any rows in any groups is added to some tables, taken
out again, and replaced by every other one. Groups are drawn independently, so that the largest log ratio of what all
of them show is the sum of the largest of each group, and so are Renyi divergences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, combinations, count, product
from typing import Any, ClassVar

import numpy as np

from discreet.evidence import definition
from discreet.evidence.counts import BoundedScores
from discreet.evidence.neighbours import Family, Scores, whole
from discreet.evidence.report import SLACK, Failure, OverTrials, format_scores, share, verdict_word
from discreet.evidence.visible_laws import ORDERS, Laws, label, renyi, shares, signed_log_ratios
from discreet.exact.arrays import Floats
from discreet.mechanisms.base import Form, Mechanism, Prepared
from discreet.mechanisms.registry import DEFAULT, all_variants
from discreet.mechanisms.tally import Selection
from discreet.privacy import ADJACENCIES
from discreet.release.grouped_request import make_grouped_request
from discreet.release.release import Release
from discreet.release.request import Randomness
from discreet.sources.arrays.array import ArraySource
from discreet.sources.base import MANY, ONE, check_each_user
from discreet.sources.scores import MemberGroups

EPSILON, COUNTS = Fraction(1, 2), Fraction(1, 3)
"""What the selections cost in all, and what the counts cost."""

Rows = dict[int, set[int]]
"""The rows of one user: the items in each group."""

Change = tuple[Scores, ...]
"""What one user adds to the scores of each group."""

_TABLES: dict[tuple[int, int], tuple[Change, ...]] = {
    (2, 3): ((whole(0, 0, 0), whole(0, 0, 0)), (whole(2, 1, 0), whole(0, 1, 1))),
    (3, 2): ((whole(0, 0), whole(1, 0), whole(1, 1)),),
}
"""The scores of the groups before a user comes, by how many groups and items there are."""


@dataclass(frozen=True)
class GroupTrial:
    """What is released by group, and in how many groups a user counts.

    Attributes
    ----------
    mechanism, k, adjacency
        How the list of each group is released.
    each_user, most
        In how many groups a user counts.
    groups, items
        How many there are.
    counts
        What counts cost, or None where none are released.
    per_user
        How many items of a group a user touches at most, or None for any number.
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

    def __str__(self) -> str:
        user = self.each_user if self.most is None else f"at most {self.most}"
        return f"{self.mechanism!r}, k = {self.k}, each user in {user} of {self.groups} groups, {self.adjacency}"

    @property
    def asked(self) -> Fraction:
        """The epsilon that all groups may cost: to release all items is free."""
        return (EPSILON if self.k < self.items else Fraction(0)) + (self.counts or Fraction(0))

    @property
    def rate(self) -> Fraction | None:
        """The rate of the noise of counts by definition, or None where there are none."""
        if self.counts is None:
            return None
        part = self.counts / check_each_user(self.each_user, self.most, self.groups)
        return definition.counts_rate_by_group(part, self.k, adjacency=self.adjacency, per_user=self.per_user)

    def changes(self) -> list[Change]:
        """What every possible user adds, each change once; one without rows is the first."""
        cells = list(product(range(self.groups), range(self.items)))
        users = chain.from_iterable(combinations(cells, size) for size in range(len(cells) + 1))
        return list(dict.fromkeys(map(self._change, users)))

    def _change(self, cells: Iterable[tuple[int, int]]) -> Change:
        rows: Rows = {}
        for group, item in cells:
            rows.setdefault(group, set()).add(item)
        kept = choose_groups(rows, self.each_user, self.most)
        return tuple(
            whole(*(int(group in kept and item in self._choose_items(rows[group])) for item in range(self.items)))
            for group in range(self.groups)
        )

    def _choose_items(self, items: set[int]) -> list[int]:
        return sorted(items)[: self.per_user]


def choose_groups(rows: Rows, each_user: str, most: int | None) -> list[int]:
    """The groups in which a user counts, by the user's own rows: the one with most, or some of them."""
    if each_user == ONE:
        sizes = Counter({group: len(items) for group, items in sorted(rows.items())})
        return [group for group, _ in sizes.most_common(1)]
    return sorted(rows)[:most]


class GroupLaws(Laws):
    """The laws of what `top_k` shows of one group, drawn in its turn after others, which stay as they are."""

    def __init__(self, trial: GroupTrial) -> None:
        nobody = Family((whole(*[0] * trial.items),), trial.adjacency)
        super().__init__(trial.mechanism, trial.k, EPSILON, nobody)
        self._per_user, self._place = trial.per_user, trial.groups - 1
        most = check_each_user(trial.each_user, trial.most, trial.groups)
        members = [self.source(nobody.scores[0])] * trial.groups
        self.grouped = make_grouped_request(
            MemberGroups(range(trial.groups), members, trial.each_user, most), trial.k, EPSILON,
            mechanism=trial.mechanism, adjacency=trial.adjacency, counts=trial.counts,
        )  # fmt: skip
        self.request = self.grouped.requests[self._place]

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

        return replace(self.grouped, source=asked, requests=requests).draw(Randomness(choose))[self._place]

    def apart(self, inputs: list[Scores]) -> tuple[Floats, Floats]:
        """How far each input is above each other: the largest log ratio, and the Renyi divergence of each order."""
        table = self.table(inputs)
        moved = np.array([[self._moved(one, other, table.outcomes) for other in inputs] for one in inputs])
        ratios = (signed_log_ratios(table.logs[:, None], table.logs[None]) + moved).max(axis=2)
        rows = [np.broadcast_to(row, table.logs.shape) for row in table.logs]
        spreads = np.array([[renyi(row, table.logs, order) for row in rows] for order in ORDERS])
        return ratios + table.off + table.off[:, None], spreads

    def _moved(self, scores: Scores, other: Scores, outcomes: list[Any]) -> list[float]:
        """What the counts of each outcome add to its log ratio: the rate times how far the scores are apart in all."""
        counted = self.request.count_mechanism
        if counted is None:
            return [0.0] * len(outcomes)
        steps = {label(i): abs(one - two) for i, (one, two) in enumerate(zip(scores, other, strict=True))}
        return [float(counted.rate * sum(steps[item] for item in outcome[0])) for outcome in outcomes]


@dataclass(frozen=True)
class Found:
    """What comparing all neighbours of one trial found.

    Attributes
    ----------
    trial
        What was compared.
    pairs
        How many pairs of neighbouring tables.
    worst
        An upper bound on the largest log ratio, as a share of what was asked for.
    renyi
        The largest Renyi divergence as a share of what the stated zCDP allows; 0 with counts, whose law is not listed.
    tables
        The two tables where the worst was found.
    stated
        The epsilon that the release states.
    rate
        The rate of the noise of the counts, or None without any.
    """

    trial: GroupTrial
    pairs: int
    worst: float
    renyi: float
    tables: tuple[Change, Change]
    stated: Fraction
    rate: Fraction | None

    def failures(self) -> list[Failure]:
        """What is broken, and by which check."""
        found, trial = [], self.trial
        if self.worst > 1.0 + SLACK:
            both = " and ".join(" ".join(map(format_scores, table)) for table in self.tables)
            found.append(Failure("epsilon", f"groups have {share(self.worst)} of epsilon at {both} with {trial}"))
        if self.renyi > 1.0 + SLACK:
            found.append(Failure("zCDP", f"groups have {share(self.renyi)} of the zCDP that they state with {trial}"))
        if self.stated != trial.asked:
            what = f"groups state epsilon = {self.stated} where {trial.asked} was asked for, with {trial}"
            found.append(Failure("total", what))
        if self.rate != trial.rate:
            what = f"noise of counts by group has the rate {self.rate}, by definition {trial.rate}, with {trial}"
            found.append(Failure("rate", what))
        return found


def compare_tables(trial: GroupTrial) -> Found:
    """Compares every table of a trial with all its neighbours."""
    laws, changes = GroupLaws(trial), trial.changes()
    promised = laws.grouped.guarantee
    found = [_compare_around(laws, table, changes, trial) for table in _TABLES[trial.groups, trial.items]]
    worst, tables = max(((ratio, pair) for _, ratio, pair, _ in found), key=lambda one: one[0])
    counted = laws.request.count_mechanism
    spread = max(divergence for *_, divergence in found)
    return Found(
        trial,
        sum(pairs for pairs, *_ in found),
        float(shares(np.array(worst), trial.asked)),
        0.0 if counted else float(shares(np.array(spread), promised.zcdp)),
        tables,
        promised.epsilon,
        None if counted is None else counted.rate,
    )


def _compare_around(
    laws: GroupLaws, table: Change, changes: list[Change], trial: GroupTrial
) -> tuple[int, float, tuple[Change, Change], float]:
    """The number of pairs with one user more than a table, their largest log ratio and where, and Renyi divergence."""
    ratios, spreads = np.zeros((len(changes),) * 2), np.zeros((len(ORDERS), *(len(changes),) * 2))
    for group, before in enumerate(table):
        moves = list(dict.fromkeys(change[group] for change in changes))
        here = np.array([moves.index(change[group]) for change in changes])
        apart, divergences = laws.apart([_add(before, move) for move in moves])
        ratios += apart[np.ix_(here, here)]
        spreads += divergences[:, here][:, :, here]
    # Without a replacement, one of the two tables is that without the user; either of them may be the likelier one.
    rows = len(changes) if trial.adjacency == "swap" else 1
    ratios, spreads = (np.maximum(each, each.swapaxes(-1, -2))[..., :rows, :] for each in (ratios, spreads))
    one, other = np.unravel_index(int(ratios.argmax()), ratios.shape)
    tables = [tuple(map(_add, table, changes[at])) for at in (one, other)]
    pairs = rows * (rows - 1) // 2 if rows > 1 else len(changes) - 1
    spread = (spreads.max(axis=(1, 2)) / ORDERS).max()
    return pairs, float(ratios.max()), (tables[0], tables[1]), float(spread)


def _add(scores: Scores, change: Scores) -> Scores:
    return tuple(score + step for score, step in zip(scores, change, strict=True))


@dataclass(frozen=True)
class GroupVerdict(OverTrials):
    """What was found for lists by group of one kind.

    Attributes
    ----------
    each_user, adjacency
        In how many groups a user counts, and which neighbours were compared.
    found
        What comparing found, for each trial.
    failures
        All that was found broken, and by which check.
    """

    headings: ClassVar[tuple[str, ...]] = (
        *("each user's groups", "adjacency", "trials", "pairs", "worst / epsilon", "Renyi / zCDP", "verdict"),
    )

    each_user: str
    adjacency: str
    found: tuple[Found, ...]
    failures: list[Failure]

    @property
    def renyi(self) -> float:
        """The largest Renyi divergence, as a share of what the stated zCDP allows."""
        return max(one.renyi for one in self.found)

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        figures = f"{len(self.found)}", f"{self.pairs:,}", share(self.worst), share(self.renyi)
        return self.each_user, self.adjacency, *figures, verdict_word(self)


@dataclass(frozen=True)
class GroupTask:
    """Lists by group of one kind, and what they are to be verified on."""

    each_user: str
    adjacency: str
    trials: tuple[GroupTrial, ...]

    def examine(self) -> GroupVerdict:
        """The verdict, over all the pairs of the trials."""
        found = tuple(map(compare_tables, self.trials))
        failures = [failure for one in found for failure in one.failures()]
        return GroupVerdict(self.each_user, self.adjacency, found, failures)


def group_tasks(adjacency: str | None = None) -> list[GroupTask]:
    """All that is verified of lists by group, under one adjacency or under both."""
    kinds = product((ONE, MANY), (one for one in ADJACENCIES if adjacency in (None, one)))
    return [GroupTask(each_user, one, tuple(_trials(each_user, one))) for each_user, one in kinds]


def _trials(each_user: str, adjacency: str) -> list[GroupTrial]:
    mechanisms = [one for one in all_variants() if is_enumerable(one) and (adjacency != "swap" or one.is_linear)]
    made = [GroupTrial(one, k, adjacency, each_user) for one in mechanisms for k in (1, 2)]
    if each_user == MANY:
        made += [GroupTrial(one, 1, adjacency, MANY, most=1) for one in mechanisms]
        made += [GroupTrial(one, 1, adjacency, MANY, most=2, groups=3, items=2) for one in mechanisms]
    ordered = next(one for one in mechanisms if one.ordered)
    counted = [(DEFAULT, 1, None), (DEFAULT, 2, None), (DEFAULT, 2, 1), (ordered, 2, None), (DEFAULT, 3, None)]
    bounds = [None] if each_user == ONE else [None, 1]
    return made + [
        GroupTrial(one, k, adjacency, each_user, most=most, counts=COUNTS, per_user=per_user)
        for (one, k, per_user), most in product(counted, bounds)
    ]


def is_enumerable(mechanism: Mechanism) -> bool:
    """Whether the law of a mechanism is a sum, which takes no time for small inputs."""
    return mechanism.form is not Form.UNKNOWN and not mechanism.needs_integrals
