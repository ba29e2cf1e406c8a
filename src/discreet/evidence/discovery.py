"""The rows of `verify --all` on items that nobody listed: from rows to releases, between all neighbouring tables.

Every user with any items is added to some tables, taken out again, and replaced by every other one. The kept sets must
need no more than delta at the epsilon of discovery, and what is seen of a whole release no more at all of epsilon: the
hockey-stick divergence of the two laws, which are enumerated. What is found, the threshold, the chance of keeping an
item, the parts of epsilon and the noise of counts must be those of the definition, and so must be what is drawn, on all
short strings of bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations, product
from typing import Any, ClassVar

import numpy as np

from discreet.evidence import definition
from discreet.evidence import definition as defined
from discreet.evidence.definition import discrete_laplace_log, upper_tail
from discreet.evidence.report import Failure, OverTrials, share, verdict_word
from discreet.evidence.visible_laws import enumerate_outcomes
from discreet.evidence.walk import walk
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.ball import precision
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

# The exact law of a release of items that nobody listed, and the delta that two of them need.
#
# An item is kept with the probability that the library's `Discovery` has for it, the kept ones go through `top_k`'s own
# way to a release with every choice in turn, and what is seen of several groups is seen independently. A noisy count
# tells two scores apart by no more than where it lies to them: at or below both, between, or at or above both. So each
# count of an outcome splits it into a few cells, and the divergence is a finite sum, with counts as well.

Touched = tuple[tuple[str, int, int], ...]
"""The items of one group that were found to count: of each for how many users, and its score among all."""

Seen = tuple[Any, Any]
"""What is seen of one group but for counts: the items as listed, and the order."""

Centres = dict[Any, int]
"""What the counts of the items that are seen are centred at."""

Law = dict[Seen, tuple[float, Centres]]
"""The probability of what is seen, and where its counts lie."""

_BITS = 112


@dataclass(frozen=True)
class HeldSnapshot:
    """Items that are found in each group, whatever is drawn to be kept."""

    held: list[FoundItems]

    def runs(self) -> list[tuple[Ranks, Ranks]]:
        return [(np.empty(0, np.int64), np.empty(0, np.int64))] * len(self.held)

    def items(self, kept: list[Ranks]) -> list[FoundItems]:
        return self.held


class HeldItems(UnlistedSource):
    """Items that count as found, whatever is drawn."""

    def __init__(self, terms: Discovered, adjacency: str, held: FoundItems) -> None:
        self.terms, self.adjacency, self.held = terms, adjacency, held
        self.sensitivity, self.grid = Sensitivity(), Fraction(1)

    def snapshot(self, key: str) -> AbstractContextManager[HeldSnapshot]:
        return nullcontext(HeldSnapshot([self.held]))


class HeldGroups(HeldItems, UnlistedGroups):
    """The same in the last of several groups, where none are found in the others."""

    def __init__(self, terms: Discovered, adjacency: str, held: FoundItems, groups: int, each_user: str, most: int):
        super().__init__(terms, adjacency, held)
        self.keys, self.names = tuple(range(groups)), ("group",)
        self.each_user, self.groups_per_user = each_user, most

    def snapshot(self, key: str) -> AbstractContextManager[HeldSnapshot]:
        return nullcontext(HeldSnapshot([FoundItems([], [])] * (len(self.keys) - 1) + [self.held]))


def hold(source: HeldItems, held: FoundItems) -> HeldItems:
    """The same source with other items."""
    if isinstance(source, HeldGroups):
        groups = len(source.keys)
        return HeldGroups(source.terms, source.adjacency, held, groups, source.each_user, source.groups_per_user)
    return HeldItems(source.terms, source.adjacency, held)


@dataclass(frozen=True, eq=False)
class KeptLaws:
    """With which probability the library keeps an item, by the number of users for whom it counts."""

    discovery: Discovery

    @cached_property
    def _known(self) -> dict[int, float]:
        return {}

    def chance(self, users: int) -> float:
        """The probability of keeping an item."""
        if users not in self._known:
            with precision(_BITS):
                self._known[users] = float(self.discovery.keep_probability(users).mid())
        return self._known[users]

    def compare(self, table: Sequence[Touched], other: Sequence[Touched]) -> tuple[Floats, Floats]:
        """The probabilities of all kept sets, in all groups, from two tables."""
        here, there = np.ones(1), np.ones(1)
        for inside, outside in zip(table, other, strict=True):
            users, others = ({item: n for item, n, _ in touched} for touched in (inside, outside))
            for item in users | others:
                p, q = (self.chance(each[item]) if item in each else 0.0 for each in (users, others))
                here, there = (np.outer(*pair).ravel() for pair in ((here, [1 - p, p]), (there, [1 - q, q])))
        return here, there


class ReleaseLaws:
    """The laws of what a request for items that nobody listed shows of one group."""

    def __init__(self, request: DiscoveryRequest, source: HeldItems) -> None:
        counted = request.count_mechanism
        # Without the floor, which could only hide a difference.
        self._counted = None if counted is None else replace(counted, floor=False)
        self.request, self._source = request, source
        discovery = request.share.discovery
        assert discovery is not None, "a request for items that nobody listed has one"
        self.kept = KeptLaws(discovery)
        self._laws: dict[Touched, Law] = {}
        self._selections: dict[Touched, Law] = {}
        self._rates: set[Fraction] = set()

    @property
    def rate(self) -> Fraction | None:
        """The one rate at which noise was asked for, or None where there was none."""
        rates: set[Fraction | None] = {*self._rates} or {None}
        (rate,) = rates
        return rate

    def law(self, touched: Touched) -> Law:
        """The probability of all that can be seen of a group."""
        if touched not in self._laws:
            self._laws[touched] = self._enumerate(touched)
        return self._laws[touched]

    def compare(self, table: Sequence[Touched], other: Sequence[Touched]) -> tuple[Floats, Floats]:
        """The probabilities of all that can be told apart of two tables, in all groups."""
        here, there = np.ones(1), np.ones(1)
        for inside, outside in zip(table, other, strict=True):
            p, q = self._compare_laws(self.law(inside), self.law(outside))
            here, there = np.outer(here, p).ravel(), np.outer(there, q).ravel()
        return here, there

    def _enumerate(self, touched: Touched) -> Law:
        law: Law = {}
        for kept in product((False, True), repeat=len(touched)):
            chances = [self.kept.chance(n) for _, n, _ in touched]
            p = math.prod(chance if is_kept else 1 - chance for chance, is_kept in zip(chances, kept, strict=True))
            held = tuple(each for each, is_kept in zip(touched, kept, strict=True) if is_kept)
            for seen, (mass, centres) in self._select(held).items():
                law[seen] = (law[seen][0] if seen in law else 0.0) + p * mass, centres
        return law

    def _select(self, held: Touched) -> Law:
        """What is seen where these items were kept."""
        if held not in self._selections:
            outcomes = enumerate_outcomes(lambda draw: self._release(held, draw), self.request.k)
            self._selections[held] = {
                (seen[0], seen[1]): (math.exp(log), {count.item: count.value for count in seen[2:]})
                for seen, (log, _) in outcomes.items()
            }
        return self._selections[held]

    def _release(self, held: Touched, draw: Callable[[Prepared], Selection]) -> Release:
        """What is released where these items were kept, with counts that happen to have no noise."""
        # In the order in which they are looked up: an order that is echoed would show.
        ranked = sorted(held, key=lambda each: (-each[1], each[0]))
        found = FoundItems([item for item, _, _ in ranked], [score for _, _, score in ranked])
        request = replace(self.request, source=hold(self._source, found), count_mechanism=self._counted)
        made = request.draw(Randomness(draw, self._draw_no_noise))
        if isinstance(made, GroupedRelease):
            made = list(made.values())[-1]
        assert isinstance(made, Release)
        return made

    def _draw_no_noise(self, rate: Fraction) -> int:
        self._rates.add(rate)
        return 0

    def _compare_laws(self, here: Law, there: Law) -> tuple[Floats, Floats]:
        cells = [
            cell
            for seen in here | there
            for cell in self._split_cells(here.get(seen, (0.0, {})), there.get(seen, (0.0, {})))
        ]
        p, q = zip(*cells, strict=True)
        return np.array(p), np.array(q)

    def _split_cells(self, here: tuple[float, Centres], there: tuple[float, Centres]) -> Iterable[tuple[float, float]]:
        """The probabilities of an outcome from two tables, in cells by where its counts lie."""
        (p, own), (q, others) = here, there
        cells = [(p, q)]
        for item in own.keys() & others.keys():
            parts = tell_scores_apart(abs(own[item] - others[item]), self.rate)
            cells = [(p * one, q * other) for p, q in cells for one, other in parts]
        return cells


def tell_scores_apart(steps: int, rate: Fraction | None) -> list[tuple[float, float]]:
    """With which probabilities a noisy count lies at or below two scores, between them, or at or above both.

    First those with noise on the lower score, then with noise on the other, which is so many steps higher.
    """
    if rate is None or steps == 0:
        return [(1.0, 1.0)]
    at = [math.exp(discrete_laplace_log(i, rate)) for i in range(1, steps)]
    near, far = upper_tail(rate, 0), upper_tail(rate, steps)
    return [(near, far), *zip(at, reversed(at), strict=True), (far, near)]


def needed_delta(here: Floats, there: Floats, epsilon: Fraction) -> float:
    """The hockey-stick divergence of two laws at epsilon, the larger of both directions: the delta that they need."""
    factor = math.exp(epsilon)
    ways = ((here, there), (there, here))
    return max(float(np.maximum(p - factor * q, 0.0).sum()) for p, q in ways)


# Small tables of people who touch items, each with every user that may come, as the library's own query reads them.
#
# All these tables are read by one query, each as a group of its own, and what it says of them is compared with the
# definition. Everybody does everything more than once, or rows would be people.

EPSILON = Fraction(1)
"""What finding the items costs."""

Person = tuple[tuple[int, str], ...]
"""What somebody touches: in which group, and which item."""

Table = tuple[Touched, ...]
"""What was found in each group of a table."""

_KEY, _LARGEST_DELTA, _REPEATED = "00c0ffee00c0ffee", Fraction(1, 10**3), 6


@dataclass(frozen=True)
class SmallTables:
    """Small tables with all their neighbours.

    Attributes
    ----------
    items
        How many items of a user count.
    adjacency
        What neighbours differ by.
    each_user
        In how many of two groups a user counts, or None without groups.
    """

    items: int
    adjacency: str
    each_user: str | None = None

    def __str__(self) -> str:
        groups = "" if self.each_user is None else f", each user in {self.each_user} of 2 groups"
        return f"l = {self.items}{groups}, {self.adjacency}"

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return 1 if self.each_user is None else 2

    @property
    def shares(self) -> int:
        """Among how many groups epsilon and delta are divided."""
        return 2 if self.each_user == MANY else 1

    @property
    def threshold(self) -> int:
        """The threshold by definition."""
        return defined.least_threshold(EPSILON, _LARGEST_DELTA, self.items, self.adjacency, self.shares)

    @property
    def delta(self) -> Fraction:
        """The delta that this threshold just needs, so that one less is too little."""
        needed = defined.needed_delta(self.threshold, EPSILON, self.items, self.adjacency, self.shares)
        return Fraction(math.ceil(needed * 10**13), 10**13)

    @property
    def terms(self) -> Discovered:
        """How the items are to be found."""
        return Discovered(self.delta, self.items)

    def bases(self) -> list[list[Person]]:
        """The people of some tables: none, or so many that items are just below the threshold, at it, or well above."""
        at, names = self.threshold, self._names
        sizes = [(at - 1, 1), (at, at - 1), (at + 1, at, 1), (3 * at, 3 * at)]
        alone: list[list[Person]] = [
            [((0, item),) for item, n in zip(names, size, strict=False) for _ in range(n)] for size in sizes
        ]
        elsewhere: list[Person] = [((1, names[0]),)] * (at - 1) if self.groups > 1 else []
        # Somebody of several items is the same person in all tables, for whom the same ones count.
        everything: list[Person] = [] if self.each_user == ONE else [tuple((0, item) for item in names)] * 2
        return [[], *(people + elsewhere for people in alone), everything + alone[0]]

    def users(self) -> list[Person]:
        """Every user that may come; the first has no rows."""
        cells = list(product(range(self.groups), self._names))
        return list(chain.from_iterable(combinations(cells, size) for size in range(len(cells) + 1)))

    def pair_up(self, tables: Sequence[Table]) -> Iterable[tuple[Table, Table]]:
        """Every table with one that has a user more, or with all that have another one."""
        size = len(self.users())
        for first in range(0, len(tables), size):
            around = tables[first : first + size]
            yield from combinations(around, 2) if self.adjacency == "swap" else ((around[0], one) for one in around[1:])

    def read(self) -> tuple[list[Table], list[Failure]]:
        """What the library finds in every base with every user, and where that is not what the definition says."""
        every_pair = product(enumerate(self.bases()), enumerate(self.users()))
        rows = [self._touch(i, j, base, user) for (i, base), (j, user) in every_pair]
        every = list_touched(self._open(rows))
        read = [tuple(every[at : at + self.groups]) for at in range(0, len(every), self.groups)]
        failures = self._find_miscounted(rows, read)
        if self.each_user is None:
            # Some of them in the way that has no groups.
            alone = [tuple(list_touched(_open_events([(0, *row) for row in each], self.terms))) for each in rows[-2:]]
            failures += self._find_miscounted(rows[-2:], alone)
        return read, failures

    @property
    def _names(self) -> str:
        return "abcd"[: 2 if self.groups > 1 else max(3, self.items + 1)]

    def _touch(self, i: int, j: int, base: list[Person], user: Person) -> list[defined.Touch]:
        """The rows of a table: the people of a base, and a user."""
        # Tables are groups, and so nobody may be in two of them where everybody counts in one.
        named = f"{i}-{j}" if self.each_user == ONE else f"{i}"
        people = [*((f"{named}-{n}", person) for n, person in enumerate(base)), (f"{i}-{j}-new", user)]
        return [(who, group, item) for who, person in people for group, item in person * _REPEATED]

    def _open(self, tables: list[list[defined.Touch]]) -> UnlistedSource:
        rows = [(table, *row) for table, each in enumerate(tables) for row in each]
        keys = list(product(range(len(tables)), range(self.groups)))
        own = ONE if self.each_user == ONE else MANY
        return _open_events(rows, self.terms, by=["table", "land"], groups=keys, each_user=own)

    def _find_miscounted(self, rows: list[list[defined.Touch]], read: list[Table]) -> list[Failure]:
        for touches, table in zip(rows, read, strict=True):
            right = defined.count_people(touches, self.items, _KEY, self.groups, self.each_user == ONE)
            for touched, wanted in zip(table, right, strict=True):
                if {item: (n, score) for item, n, score in touched} != wanted:
                    what = f"{format_table([touched])} are found to count, by definition {wanted}, with {self}"
                    return [Failure("people", what)]
        return []


def _open_events(rows: list[tuple[int, str, int, str]], terms: Discovered, **options: Any) -> UnlistedSource:
    import pyarrow as pa

    from discreet.sources.events.source import events

    table, who, land, what = map(list, zip(*rows, strict=True))
    made = pa.table({"table": table, "who": who, "land": land, "what": what})
    source: UnlistedSource = events(made, user="who", item="what", domain=terms, **options)
    return source


def list_touched(source: UnlistedSource) -> list[Touched]:
    """What a source finds in each group: every item that counts, with both of its numbers."""
    with source.snapshot(_KEY) as snapshot:
        runs = snapshot.runs()
        found = snapshot.items([np.arange(items.sum()) for _, items in runs])
    users = [np.repeat(counts, items).tolist() for counts, items in runs]
    return [tuple(sorted(zip(each.items, n, each.scores, strict=True))) for each, n in zip(found, users, strict=True)]


def format_table(table: Sequence[Touched]) -> str:
    """What was found in a table, as a report spells it: of each item for how many users it counts, and its score."""
    return " ".join(f"({', '.join(f'{item}: {n} of {score}' for item, n, score in touched)})" for touched in table)


COUNTS = Fraction(8)
"""What the counts cost: so much that the rest of epsilon cannot hide what they cost too much."""

SLACK = 1e-9
"""Deltas are sums of floats, which are right to this share."""


@dataclass(frozen=True)
class DiscoveryTrial:
    """How those found are released: by which mechanism, how many, and what counts of them cost, 0 without any."""

    mechanism: Mechanism
    k: int
    counts: Fraction = Fraction(0)

    def __str__(self) -> str:
        return f"releases by {self.mechanism!r} with k = {self.k}" + (" and counts" if self.counts else "")


@dataclass(frozen=True)
class Compared:
    """What comparing all neighbours of one trial found.

    Attributes
    ----------
    pairs
        How many pairs of neighbouring tables.
    kept, worst
        The largest delta that kept sets need at the epsilon of discovery, and whole releases at all of it, as shares of
        what is promised.
    failures
        What is broken, and by which check.
    """

    pairs: int
    kept: float
    worst: float
    failures: list[Failure]


@dataclass(frozen=True)
class DiscoveryVerdict(OverTrials):
    """What was found for items that nobody listed.

    Attributes
    ----------
    tables
        What was compared.
    found
        What comparing found, for each trial.
    failures
        All that was found broken, and by which check.
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
        """The largest delta that kept sets need, as a share of what is promised."""
        return max(one.kept for one in self.found)

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        tables = self.tables
        what = f"{tables.items}", tables.each_user or "-", tables.adjacency, f"{tables.threshold}"
        return *what, f"{len(self.found)}", f"{self.pairs:,}", share(self.kept), share(self.worst), verdict_word(self)


@dataclass(frozen=True)
class DiscoveryTask:
    """Items that nobody listed, in small tables, and how those found are released.

    Attributes
    ----------
    tables
        The tables with all their neighbours.
    trials
        How those found are released.
    is_drawn
        Whether what is drawn is compared too, which is the same for all tables.
    """

    tables: SmallTables
    trials: tuple[DiscoveryTrial, ...]
    is_drawn: bool = False

    def examine(self) -> DiscoveryVerdict:
        """The verdict, over all the pairs of the trials."""
        read, failures = self.tables.read()
        pairs = list(self.tables.pair_up(read))
        found = tuple(_compare(self.tables, trial, pairs) for trial in self.trials)
        failures += [failure for one in found for failure in one.failures]
        return DiscoveryVerdict(self.tables, found, failures + (misdrawn() if self.is_drawn else []))


def discovery_tasks(adjacency: str | None = None) -> list[DiscoveryTask]:
    """All that is verified of items that nobody listed, under one adjacency or under both."""
    trials = DiscoveryTrial(DEFAULT, 1), DiscoveryTrial(OneShot("gumbel"), 2), DiscoveryTrial(DEFAULT, 3, COUNTS)
    kinds = [(1, None), (2, None), (3, None), (1, ONE), (1, MANY)]
    every = [SmallTables(items, each, groups) for (items, groups), each in product(kinds, ADJACENCIES)]
    chosen = [tables for tables in every if adjacency in (None, tables.adjacency)]
    return [DiscoveryTask(tables, trials, is_drawn=index == 0) for index, tables in enumerate(chosen)]


def _compare(tables: SmallTables, trial: DiscoveryTrial, pairs: list[tuple[Table, Table]]) -> Compared:
    """What comparing all neighbours finds where those found are released in one way."""
    source = _hold_nothing(tables)
    epsilon = EPSILON / defined.part_for_discovery(tables.items, trial.k)
    request = make_discovery_request(source, trial.k, epsilon, mechanism=trial.mechanism, counts=trial.counts or None)
    laws = ReleaseLaws(request, source)
    kept = [needed_delta(*laws.kept.compare(*pair), EPSILON) for pair in pairs]
    seen = [needed_delta(*laws.compare(*pair), epsilon + trial.counts) for pair in pairs]
    failures = [
        *_find_exceeded(tables, "kept sets", kept, pairs),
        *_find_exceeded(tables, str(trial), seen, pairs),
        *_find_misplanned(tables, laws.kept),
        *_find_misstated(tables, trial, request, epsilon),
        *_find_wrong_rate(tables, trial, laws.rate),
    ]
    delta = float(tables.delta)
    return Compared(len(pairs), max(kept) / delta, max(seen) / delta, failures)


def _hold_nothing(tables: SmallTables) -> HeldItems:
    nothing = FoundItems([], [])
    if tables.each_user is None:
        return HeldItems(tables.terms, tables.adjacency, nothing)
    return HeldGroups(tables.terms, tables.adjacency, nothing, tables.groups, tables.each_user, tables.shares)


def _find_exceeded(
    tables: SmallTables, what: str, needed: list[float], pairs: list[tuple[Table, Table]]
) -> list[Failure]:
    """Where two neighbours need more than delta."""
    worst = max(range(len(needed)), key=needed.__getitem__)
    ratio = needed[worst] / float(tables.delta)
    if ratio <= 1.0 + SLACK:
        return []
    both = " and ".join(map(format_table, pairs[worst]))
    return [Failure("delta", f"{what} need {share(ratio)} of delta at {both} with {tables}")]


def _find_misplanned(tables: SmallTables, kept: KeptLaws) -> list[Failure]:
    """Where the threshold or the chance of keeping an item is not that of the definition."""
    made, threshold = kept.discovery.threshold, tables.threshold
    if made != threshold:
        return [Failure("threshold", f"the threshold is {made}, by definition {threshold}, with {tables}")]
    rate = defined.noise_rate(EPSILON, tables.items, tables.adjacency, tables.shares)
    for users in range(threshold + 3):
        chance, right = kept.chance(users), defined.keep_chance(users, rate, threshold)
        if not math.isclose(chance, right, rel_tol=1e-9):
            what = f"an item of {users} people is kept with {chance:.6g}, by definition {right:.6g}, with {tables}"
            return [Failure("chance", what)]
    return []


def _find_misstated(
    tables: SmallTables, trial: DiscoveryTrial, request: DiscoveryRequest, epsilon: Fraction
) -> list[Failure]:
    """Where the release states another epsilon or delta than was asked for, or another part for finding the items."""
    promised = request.guarantee
    stated = promised.epsilon, promised.delta, promised.discovery_epsilon
    asked = epsilon + trial.counts, tables.delta, EPSILON
    if stated == asked:
        return []
    both = (f"epsilon = {whole}, delta = {delta}, {part} for discovery" for whole, delta, part in (stated, asked))
    return [Failure("total", f"{' stated, and asked for '.join(both)}, with {tables}")]


def _find_wrong_rate(tables: SmallTables, trial: DiscoveryTrial, rate: Fraction | None) -> list[Failure]:
    """Where the noise of the counts, of which a user may touch any number, is not that of the definition."""
    if not trial.counts:
        return []
    defined_rate = definition.counts_rate if tables.each_user is None else definition.counts_rate_by_group
    right = defined_rate(trial.counts / tables.shares, trial.k, adjacency=tables.adjacency)
    if rate == right:
        return []
    return [
        Failure("rate", f"noise of counts of those found has the rate {rate}, by definition {right}, with {tables}")
    ]


_RATE, _DELTA = Fraction(4), Fraction(1, 10**3)
"""With these few people are enough, so that every short string of bits can be walked."""

_RUNS = 1000


def misdrawn() -> list[Failure]:
    """What is drawn to be kept, judged on short strings of bits: no probability outside its bounds.

    Two items just below the threshold or at it, and one that counts for nobody.
    """
    threshold = defined.least_threshold(_RATE, _DELTA, 1, "add-remove", 1)
    return [failure for users in (threshold - 1, threshold) for failure in _walk_runs([users, 0], [2, 1], threshold)]


def _walk_runs(users: list[int], items: list[int], threshold: int) -> list[Failure]:
    found, runs = Discovery(_RATE, _DELTA, 1), (np.array(users), np.array(items))
    decided, undecided = walk(lambda entropy: tuple(found.sample_kept_ranks(entropy, *runs).tolist()), _RUNS)
    chances = [defined.keep_chance(n, _RATE, threshold) for n in np.repeat(*runs).tolist()]
    for kept in product((False, True), repeat=len(chances)):
        ranks = tuple(rank for rank, is_kept in enumerate(kept) if is_kept)
        right = math.prod(p if is_kept else 1 - p for p, is_kept in zip(chances, kept, strict=True))
        low, high = float(decided.get(ranks, 0)), float(decided.get(ranks, 0) + undecided)
        if not low - 1e-12 <= right <= high + 1e-12:
            chance = f"{low:.6g} to {high:.6g}, by definition {right:.6g}"
            return [Failure("drawn", f"the items {ranks} of {users} people are kept with probability {chance}")]
    return []
