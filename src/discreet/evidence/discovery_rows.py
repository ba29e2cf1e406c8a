"""The rows of `verify --all` on items that nobody listed: from rows to releases, between all neighbouring tables.

Every user with any items is added to some tables, taken out again, and replaced by every other one. The kept sets must
need no more than delta at the epsilon of discovery, and what is seen of a whole release no more at all of epsilon: the
hockey-stick divergence of the two laws, which are enumerated. What is found, the threshold, the chance of keeping an
item, the parts of epsilon and the noise of counts must be those of the definition, and so must be what is drawn, on all
short strings of bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import ClassVar

import numpy as np

from discreet.discovery_request import DiscoveryRequest, make_discovery_request
from discreet.evidence import definition
from discreet.evidence import discovery_definition as defined
from discreet.evidence.discovery_laws import HeldGroups, HeldItems, KeptLaws, ReleaseLaws, needed_delta
from discreet.evidence.discovery_tables import EPSILON, SmallTables, Table, format_table
from discreet.evidence.report import Failure, OverTrials, share, verdict_word
from discreet.evidence.walk import walk
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.discovery import Discovery
from discreet.mechanisms.oneshot import OneShot
from discreet.mechanisms.registry import DEFAULT
from discreet.privacy import ADJACENCIES
from discreet.sources.groups import MANY, ONE
from discreet.sources.unlisted import FoundItems

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
