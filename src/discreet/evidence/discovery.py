"""Verify releases of discovered items (partition selection), from rows to releases, between all neighbouring tables.

Every user with any items is added to some tables, removed, and replaced by every other user. The hockey-stick
divergence of the kept sets at the epsilon of discovery, and of whole releases at all of epsilon, must be at most delta.
The counts of users, the threshold, the probability of keeping an item, the parts of epsilon and the noise of counts
must be those of the definition, and so must be the draws, on all short strings of bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations, product
from typing import Any, ClassVar

import numpy as np

from discreet.evidence import definition
from discreet.evidence.report import Failure, OverTrials, share, verdict_word
from discreet.evidence.visible_laws import enumerate_outcomes
from discreet.evidence.walk import walk
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.ball import precision
from discreet.exact.entropy import Entropy
from discreet.mechanisms.base import Mechanism, Prepared
from discreet.mechanisms.discovery import Discovery
from discreet.mechanisms.oneshot import OneShot
from discreet.mechanisms.registry import DEFAULT
from discreet.mechanisms.tally import Selection
from discreet.privacy import ADJACENCIES, Sensitivity
from discreet.release.discovery_request import DiscoveryRequest, make_discovery_request
from discreet.release.grouped import GroupedRelease
from discreet.release.release import Release
from discreet.release.request import Randomness
from discreet.sources.base import MANY, ONE
from discreet.sources.discovered import Discovered, FoundItems, UnlistedGroups, UnlistedSource

Touched = tuple[tuple[str, int, int], ...]
"""The items of one group that count for a user: each with the number of its users, and its score."""

Seen = tuple[Any, Any]
"""The visible part of one group without counts: the items as listed, and the order."""

Centres = dict[Any, int]
"""The centres of the counts of the visible items."""

Law = dict[Seen, tuple[float, Centres]]
"""The probability of each visible part, and the centres of its counts."""

Person = tuple[tuple[int, str], ...]
"""The touches of one user: groups and items."""

Table = tuple[Touched, ...]
"""The found items of each group of a table."""

EPSILON = Fraction(1)
"""The epsilon of discovery."""

COUNTS = Fraction(8)
"""The epsilon of the counts. It is large, so that an overspent count exceeds the rest of epsilon."""

SLACK = 1e-9
"""The relative error of a delta, which is a sum of floats."""

_BITS = 112
"""The precision of balls in bits, more than twice that of a float."""

_KEY, _LARGEST_DELTA, _REPEATED = "00c0ffee00c0ffee", Fraction(1, 10**3), 6
"""The key of the hashes, the largest delta, and the rows of each touch: several, so that rows differ from users."""

_RATE, _DELTA = Fraction(4), Fraction(1, 10**3)
"""A rate and a delta at which few users are enough, so that every short string of bits can be walked."""

_RUNS = 1000
"""The number of bit strings that are walked. They decide 99.75% of the probability."""


@dataclass(frozen=True)
class SmallTables:
    """Small tables with all their neighbours, which one query of the library reads, each table as a group.

    Attributes
    ----------
    items
        The number of items of a user that count.
    adjacency
        The adjacency of the neighbours.
    each_user
        The number of groups of two in which a user counts, or None without groups.
    """

    items: int
    adjacency: str
    each_user: str | None = None

    def __str__(self) -> str:
        groups = "" if self.each_user is None else f", each user in {self.each_user} of 2 groups"
        return f"l = {self.items}{groups}, {self.adjacency}"

    @property
    def groups(self) -> int:
        """The number of groups."""
        return 1 if self.each_user is None else 2

    @property
    def shares(self) -> int:
        """The number of groups that share epsilon and delta."""
        return 2 if self.each_user == MANY else 1

    @property
    def threshold(self) -> int:
        """The threshold by definition."""
        return definition.least_threshold(EPSILON, _LARGEST_DELTA, self.items, self.adjacency, self.shares)

    @property
    def delta(self) -> Fraction:
        """The delta that this threshold just needs; a threshold of one less needs more."""
        needed = definition.needed_delta(self.threshold, EPSILON, self.items, self.adjacency, self.shares)
        return Fraction(math.ceil(needed * 10**13), 10**13)

    @property
    def terms(self) -> Discovered:
        """The terms of discovery."""
        return Discovered(self.delta, self.items)

    def bases(self) -> list[list[Person]]:
        """Return the users of some tables: none, or enough to bring items just below the threshold, to it, or above."""
        at, names = self.threshold, self._names
        sizes = [(at - 1, 1), (at, at - 1), (at + 1, at, 1), (3 * at, 3 * at)]
        alone: list[list[Person]] = [
            [((0, item),) for item, n in zip(names, size, strict=False) for _ in range(n)] for size in sizes
        ]
        elsewhere: list[Person] = [((1, names[0]),)] * (at - 1) if self.groups > 1 else []
        # A user of several items is the same user in all tables, so that the same items count.
        everything: list[Person] = [] if self.each_user == ONE else [tuple((0, item) for item in names)] * 2
        return [[], *(people + elsewhere for people in alone), everything + alone[0]]

    def users(self) -> list[Person]:
        """Return every user that may come; the first has no rows."""
        cells = list(product(range(self.groups), self._names))
        return list(chain.from_iterable(combinations(cells, size) for size in range(len(cells) + 1)))

    def pair_up(self, tables: Sequence[Table]) -> Iterable[tuple[Table, Table]]:
        """Yield every table with each one that has a user more, or pairs that differ by a swap."""
        size = len(self.users())
        for first in range(0, len(tables), size):
            around = tables[first : first + size]
            yield from combinations(around, 2) if self.adjacency == "swap" else ((around[0], one) for one in around[1:])

    def read(self) -> tuple[list[Table], list[Failure]]:
        """Return the items that the library finds in every base with every user, and departures from the definition."""
        rows: list[list[definition.Touch]] = []
        for (i, base), (j, user) in product(enumerate(self.bases()), enumerate(self.users())):
            # Each table is a group. If every user counts in one group, no user may be in two tables.
            name = f"{i}-{j}" if self.each_user == ONE else f"{i}"
            people = [*((f"{name}-{n}", person) for n, person in enumerate(base)), (f"{i}-{j}-new", user)]
            rows.append([(who, group, item) for who, person in people for group, item in person * _REPEATED])
        source = _open_events(
            [(table, *row) for table, each in enumerate(rows) for row in each],
            self.terms,
            by=["table", "land"],
            groups=list(product(range(len(rows)), range(self.groups))),
            each_user=ONE if self.each_user == ONE else MANY,
        )
        every = list_touched(source)
        read = [tuple(every[at : at + self.groups]) for at in range(0, len(every), self.groups)]
        failures = self._find_miscounted(rows, read)
        if self.each_user is None:
            # The last tables again, by the query without groups.
            alone = [tuple(list_touched(_open_events([(0, *row) for row in each], self.terms))) for each in rows[-2:]]
            failures += self._find_miscounted(rows[-2:], alone)
        return read, failures

    @property
    def _names(self) -> str:
        return "abcd"[: 2 if self.groups > 1 else max(3, self.items + 1)]

    def _find_miscounted(self, rows: list[list[definition.Touch]], read: list[Table]) -> list[Failure]:
        for touches, table in zip(rows, read, strict=True):
            right = definition.count_people(touches, self.items, _KEY, self.groups, self.each_user == ONE)
            for touched, wanted in zip(table, right, strict=True):
                if {item: (n, score) for item, n, score in touched} != wanted:
                    what = f"{format_table([touched])} are found to count, by definition {wanted}, with {self}"
                    return [Failure("people", what)]
        return []


@dataclass(frozen=True)
class Compared:
    """The result of comparing all neighbours of one trial.

    Attributes
    ----------
    pairs
        The number of pairs of neighbouring tables.
    kept, worst
        The largest delta that kept sets need at the epsilon of discovery, and whole releases at all of epsilon, as
        shares of the promised delta.
    failures
        The failed checks.
    """

    pairs: int
    kept: float
    worst: float
    failures: list[Failure]


@dataclass(frozen=True)
class DiscoveryTrial:
    """The release of the found items: mechanism, k, and the epsilon of the counts, 0 without counts."""

    mechanism: Mechanism
    k: int
    counts: Fraction = Fraction(0)

    def __str__(self) -> str:
        return f"releases by {self.mechanism!r} with k = {self.k}" + (" and counts" if self.counts else "")

    def compare(self, tables: SmallTables, pairs: list[tuple[Table, Table]]) -> Compared:
        """Compare all neighbours, and the terms of the release with the definition."""
        nothing, each_user = FoundItems([], []), tables.each_user
        source = HeldItems(tables.terms, tables.adjacency, nothing)
        if each_user is not None:
            source = HeldGroups(tables.terms, tables.adjacency, nothing, tables.groups, each_user, tables.shares)
        epsilon = EPSILON / definition.part_for_discovery(tables.items, self.k)
        request = make_discovery_request(source, self.k, epsilon, mechanism=self.mechanism, counts=self.counts or None)
        laws = ReleaseLaws(request, source)
        kept = [needed_delta(*laws.kept.compare(*pair), EPSILON) for pair in pairs]
        seen = [needed_delta(*laws.compare(*pair), epsilon + self.counts) for pair in pairs]
        failures, delta = list[Failure](), float(tables.delta)

        def fail(check: str, what: str) -> None:
            failures.append(Failure(check, f"{what} with {tables}"))

        for name, needed in (("kept sets", kept), (str(self), seen)):
            worst = max(range(len(needed)), key=needed.__getitem__)
            ratio = needed[worst] / delta
            if ratio > 1.0 + SLACK:
                fail("delta", f"{name} need {share(ratio)} of delta at {' and '.join(map(format_table, pairs[worst]))}")
        made, threshold = laws.kept.discovery.threshold, tables.threshold
        rate = definition.noise_rate(EPSILON, tables.items, tables.adjacency, tables.shares)
        if made != threshold:
            fail("threshold", f"the threshold is {made}, by definition {threshold},")
        else:
            for users in range(threshold + 3):
                chance, right = laws.kept.chance(users), definition.keep_chance(users, rate, threshold)
                if not math.isclose(chance, right, rel_tol=1e-9):
                    fail("chance", f"an item of {users} people is kept with {chance:.6g}, by definition {right:.6g},")
                    break
        promised = request.guarantee
        stated = promised.epsilon, promised.delta, promised.discovery_epsilon
        asked = epsilon + self.counts, tables.delta, EPSILON
        if stated != asked:
            both = (
                f"epsilon = {whole}, delta = {delta}, {part} for discovery" for whole, delta, part in (stated, asked)
            )
            fail("total", f"{' stated, and asked for '.join(both)},")
        if self.counts:
            # A user may touch any number of the items whose counts are released.
            defined_rate = definition.counts_rate if each_user is None else definition.counts_rate_by_group
            counts_rate = defined_rate(self.counts / tables.shares, self.k, adjacency=tables.adjacency)
            if laws.rate != counts_rate:
                fail("rate", f"noise of counts of those found has the rate {laws.rate}, by definition {counts_rate},")
        return Compared(len(pairs), max(kept) / delta, max(seen) / delta, failures)


@dataclass(frozen=True)
class DiscoveryVerdict(OverTrials):
    """The verdict on releases of discovered items.

    Attributes
    ----------
    tables
        The tables that were compared.
    found
        The result of each trial.
    failures
        The failed checks.
    """

    headings: ClassVar[tuple[str, ...]] = (
        *("items that count", "each user's groups", "adjacency", "threshold", "trials", "pairs"),
        *("kept / delta", "release / delta", "verdict"),
    )

    tables: SmallTables
    found: tuple[Compared, ...]
    failures: list[Failure]

    @property
    def kept(self) -> float:
        """The largest delta that kept sets need, as a share of the promised delta."""
        return max(one.kept for one in self.found)

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        tables = self.tables
        what = f"{tables.items}", tables.each_user or "-", tables.adjacency, f"{tables.threshold}"
        return *what, f"{len(self.found)}", f"{self.pairs:,}", share(self.kept), share(self.worst), verdict_word(self)


@dataclass(frozen=True)
class DiscoveryTask:
    """Discovery in small tables, and the releases of the found items.

    Attributes
    ----------
    tables
        The tables with all their neighbours.
    trials
        The releases of the found items.
    is_drawn
        True if draws are compared too, which is the same for all tables.
    """

    tables: SmallTables
    trials: tuple[DiscoveryTrial, ...]
    is_drawn: bool = False

    def examine(self) -> DiscoveryVerdict:
        """Compare the neighbours of all trials and return the verdict."""
        read, failures = self.tables.read()
        pairs = list(self.tables.pair_up(read))
        found = tuple(trial.compare(self.tables, pairs) for trial in self.trials)
        failures += [failure for one in found for failure in one.failures]
        return DiscoveryVerdict(self.tables, found, failures + (misdrawn() if self.is_drawn else []))


def discovery_tasks(adjacency: str | None = None) -> list[DiscoveryTask]:
    """Return all tasks on discovered items, under one adjacency or under both."""
    trials = DiscoveryTrial(DEFAULT, 1), DiscoveryTrial(OneShot("gumbel"), 2), DiscoveryTrial(DEFAULT, 3, COUNTS)
    kinds = [(1, None), (2, None), (3, None), (1, ONE), (1, MANY)]
    every = [SmallTables(items, each, groups) for (items, groups), each in product(kinds, ADJACENCIES)]
    chosen = [tables for tables in every if adjacency in (None, tables.adjacency)]
    return [DiscoveryTask(tables, trials, is_drawn=index == 0) for index, tables in enumerate(chosen)]


def needed_delta(here: Floats, there: Floats, epsilon: Fraction) -> float:
    """Return the larger hockey-stick divergence of two laws at epsilon, over both directions."""
    factor = math.exp(epsilon)
    ways = ((here, there), (there, here))
    return max(float(np.maximum(p - factor * q, 0.0).sum()) for p, q in ways)


@dataclass(frozen=True, eq=False)
class KeptLaws:
    """The probability with which the library keeps an item, by the number of users for whom it counts."""

    discovery: Discovery

    @cached_property
    def _known(self) -> dict[int, float]:
        return {}

    def chance(self, users: int) -> float:
        """Return the probability of keeping an item."""
        if users not in self._known:
            with precision(_BITS):
                self._known[users] = float(self.discovery.keep_probability(users).mid())
        return self._known[users]

    def compare(self, table: Sequence[Touched], other: Sequence[Touched]) -> tuple[Floats, Floats]:
        """Return the probabilities of all kept sets, in all groups, from two tables."""
        here, there = np.ones(1), np.ones(1)
        for inside, outside in zip(table, other, strict=True):
            users, others = ({item: n for item, n, _ in touched} for touched in (inside, outside))
            for item in users | others:
                p, q = (self.chance(each[item]) if item in each else 0.0 for each in (users, others))
                here, there = (np.outer(*pair).ravel() for pair in ((here, [1 - p, p]), (there, [1 - q, q])))
        return here, there


class ReleaseLaws:
    """The laws of one group of a release of discovered items.

    An item is kept with the probability of `Discovery`, and the kept items go through the code of `top_k` with every
    selection in turn. Groups are independent.
    """

    def __init__(self, request: DiscoveryRequest, source: HeldItems) -> None:
        counted = request.count_mechanism
        # The floor at zero is post-processing and could only hide a difference.
        self._counted = None if counted is None else replace(counted, floor=False)
        self.request, self._source = request, source
        discovery = request.share.discovery
        assert discovery is not None, "a request for discovered items has one"
        self.kept = KeptLaws(discovery)
        self._laws: dict[Touched, Law] = {}
        self._selections: dict[Touched, Law] = {}
        self._rates: set[Fraction] = set()

    @property
    def rate(self) -> Fraction | None:
        """The one rate at which the release draws noise, or None without noise."""
        rates: set[Fraction | None] = {*self._rates} or {None}
        (rate,) = rates
        return rate

    def law(self, touched: Touched) -> Law:
        """Return the probability of every visible part of a group."""
        if touched not in self._laws:
            law: Law = {}
            for kept in product((False, True), repeat=len(touched)):
                chances = [self.kept.chance(n) for _, n, _ in touched]
                p = math.prod(chance if is_kept else 1 - chance for chance, is_kept in zip(chances, kept, strict=True))
                held = tuple(each for each, is_kept in zip(touched, kept, strict=True) if is_kept)
                for seen, (mass, centres) in self._select(held).items():
                    law[seen] = (law[seen][0] if seen in law else 0.0) + p * mass, centres
            self._laws[touched] = law
        return self._laws[touched]

    def compare(self, table: Sequence[Touched], other: Sequence[Touched]) -> tuple[Floats, Floats]:
        """Return the probabilities of all cells that tell two tables apart, in all groups.

        A noisy count tells two scores apart only by its position: at or below both, between, or at or above both. Each
        count splits an outcome into a few cells, so the divergence is a finite sum.
        """
        here, there = np.ones(1), np.ones(1)
        for inside, outside in zip(table, other, strict=True):
            one, two, cells = self.law(inside), self.law(outside), list[tuple[float, float]]()
            for seen in one | two:
                (p, own), (q, others) = one.get(seen, (0.0, {})), two.get(seen, (0.0, {}))
                split = [(p, q)]
                for item in own.keys() & others.keys():
                    parts = tell_scores_apart(abs(own[item] - others[item]), self.rate)
                    split = [(p * low, q * high) for p, q in split for low, high in parts]
                cells += split
            inner, outer = zip(*cells, strict=True)
            here, there = np.outer(here, inner).ravel(), np.outer(there, outer).ravel()
        return here, there

    def _select(self, held: Touched) -> Law:
        """Return the law of the visible part if these items were kept, with counts without noise."""
        if held in self._selections:
            return self._selections[held]
        # The items are in the order of the query, so that an order that is echoed would show.
        ranked = sorted(held, key=lambda each: (-each[1], each[0]))
        source = copy(self._source)
        source.held = FoundItems([item for item, _, _ in ranked], [score for _, _, score in ranked])
        request = replace(self.request, source=source, count_mechanism=self._counted)

        def draw_no_noise(rate: Fraction) -> int:
            self._rates.add(rate)
            return 0

        def release(draw: Callable[[Prepared], Selection]) -> Release:
            made = request.draw(Randomness(draw, draw_no_noise))
            if isinstance(made, GroupedRelease):
                made = list(made.values())[-1]
            assert isinstance(made, Release)
            return made

        self._selections[held] = {
            (seen[0], seen[1]): (math.exp(log), {count.item: count.value for count in seen[2:]})
            for seen, (log, _) in enumerate_outcomes(release, request.k).items()
        }
        return self._selections[held]


def tell_scores_apart(steps: int, rate: Fraction | None) -> list[tuple[float, float]]:
    """Return the probabilities of a noisy count at or below two scores, at each value between, and at or above both.

    The first of each pair has noise on the lower score, the second on the other, which is `steps` higher.
    """
    if rate is None or steps == 0:
        return [(1.0, 1.0)]
    at = [math.exp(definition.discrete_laplace_log(i, rate)) for i in range(1, steps)]
    near, far = definition.upper_tail(rate, 0), definition.upper_tail(rate, steps)
    return [(near, far), *zip(at, reversed(at), strict=True), (far, near)]


def misdrawn() -> list[Failure]:
    """Check the draws of kept items against the definition, on all short strings of bits.

    Two items are just below the threshold or at it, and one counts for no user.
    """
    found, failures = Discovery(_RATE, _DELTA, 1), []
    threshold = definition.least_threshold(_RATE, _DELTA, 1, "add-remove", 1)
    for users in ([threshold - 1, 0], [threshold, 0]):
        runs = np.array(users), np.array([2, 1])

        def sample(entropy: Entropy, runs: tuple[Ranks, Ranks] = runs) -> tuple[int, ...]:
            return tuple(found.sample_kept_ranks(entropy, *runs).tolist())

        decided, undecided = walk(sample, _RUNS)
        chances = [definition.keep_chance(n, _RATE, threshold) for n in np.repeat(*runs).tolist()]
        for kept in product((False, True), repeat=len(chances)):
            ranks = tuple(rank for rank, is_kept in enumerate(kept) if is_kept)
            right = math.prod(p if is_kept else 1 - p for p, is_kept in zip(chances, kept, strict=True))
            low, high = float(decided.get(ranks, 0)), float(decided.get(ranks, 0) + undecided)
            if not low - 1e-12 <= right <= high + 1e-12:
                chance = f"{low:.6g} to {high:.6g}, by definition {right:.6g}"
                what = f"the items {ranks} of {users} people are kept with probability {chance}"
                failures.append(Failure("drawn", what))
                break
    return failures


def list_touched(source: UnlistedSource) -> list[Touched]:
    """Return the items that a source finds in each group, with both of their numbers."""
    with source.snapshot(_KEY) as snapshot:
        runs = snapshot.runs()
        found = snapshot.items([np.arange(items.sum()) for _, items in runs])
    users = [np.repeat(counts, items).tolist() for counts, items in runs]
    return [tuple(sorted(zip(each.items, n, each.scores, strict=True))) for each, n in zip(found, users, strict=True)]


def format_table(table: Sequence[Touched]) -> str:
    """Return the text of a table: for each item the number of its users, and its score."""
    return " ".join(f"({', '.join(f'{item}: {n} of {score}' for item, n, score in touched)})" for touched in table)


def _open_events(rows: list[tuple[int, str, int, str]], terms: Discovered, **options: Any) -> UnlistedSource:
    import pyarrow as pa

    from discreet.sources.events.source import events

    table, who, land, what = map(list, zip(*rows, strict=True))
    made = pa.table({"table": table, "who": who, "land": land, "what": what})
    source: UnlistedSource = events(made, user="who", item="what", domain=terms, **options)
    return source


@dataclass(frozen=True)
class HeldSnapshot:
    """A snapshot with given items in each group, whatever is drawn to be kept."""

    held: list[FoundItems]

    def runs(self) -> list[tuple[Ranks, Ranks]]:
        return [(np.empty(0, np.int64), np.empty(0, np.int64))] * len(self.held)

    def items(self, kept: list[Ranks]) -> list[FoundItems]:
        return self.held


class HeldItems(UnlistedSource):
    """A source whose found items are given, whatever is drawn."""

    def __init__(self, terms: Discovered, adjacency: str, held: FoundItems) -> None:
        self.terms, self.adjacency, self.held = terms, adjacency, held
        self.sensitivity, self.grid = Sensitivity(), Fraction(1)

    def snapshot(self, key: str) -> AbstractContextManager[HeldSnapshot]:
        return nullcontext(HeldSnapshot([self.held]))


class HeldGroups(HeldItems, UnlistedGroups):
    """A source with given items in the last of several groups, and none in the others."""

    def __init__(self, terms: Discovered, adjacency: str, held: FoundItems, groups: int, each_user: str, most: int):
        super().__init__(terms, adjacency, held)
        self.keys, self.names = tuple(range(groups)), ("group",)
        self.each_user, self.groups_per_user = each_user, most

    def snapshot(self, key: str) -> AbstractContextManager[HeldSnapshot]:
        return nullcontext(HeldSnapshot([FoundItems([], [])] * (len(self.keys) - 1) + [self.held]))
