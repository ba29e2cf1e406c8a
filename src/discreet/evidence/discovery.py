"""Verify releases of discovered items (partition selection), from rows to releases, between all neighbouring tables.

Every user with any items is added to some tables, removed, and replaced by every other user. The hockey-stick
divergence of the kept sets at the epsilon of discovery, and of whole releases at all of epsilon, must be at most delta.
The items that one user alone has must be kept with no more than their part of delta. The counts of users or their
weights, the noise, the threshold, the probability of keeping an item, the parts of epsilon and the noise of counts must
be those of the definition, and so must be the draws, on all short strings of bits. A shortfall given the list must keep
its own epsilon, purely, and its lead is over all items of the events, kept or not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import chain, product
from typing import Any, ClassVar

import numpy as np

from discreet.evidence import definition
from discreet.evidence.counts import COUNT, NoisyNumber
from discreet.evidence.discovery_tables import (
    EPSILON,
    KeptLaws,
    SmallTables,
    Table,
    Touched,
    WeightedTables,
    format_table,
)
from discreet.evidence.report import Failure, OverTrials, share, verdict_word
from discreet.evidence.visible_laws import enumerate_outcomes
from discreet.evidence.walk import walk
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.entropy import Entropy
from discreet.mechanisms.base import Mechanism, Prepared
from discreet.mechanisms.discovery import METHODS
from discreet.mechanisms.oneshot import OneShot
from discreet.mechanisms.registry import DEFAULT
from discreet.mechanisms.tally import Selection
from discreet.privacy import ADJACENCIES, Sensitivity
from discreet.release.discovery_request import DiscoveryRequest, make_discovery_request
from discreet.release.grouped import GroupedRelease
from discreet.release.release import Count, Release
from discreet.release.request import Randomness
from discreet.release.sketch_request import make_sketch_request
from discreet.sources.base import MANY, ONE
from discreet.sources.discovered import GAUSSIAN, LAPLACE, Discovered, FoundItems, UnlistedGroups, UnlistedSource

Seen = tuple[Any, Any]
"""The visible part of one group without counts: the items as listed, and the order."""

Centres = dict[NoisyNumber, int]
"""The centres of the counts of the visible items, and of their shortfall."""

Law = dict[Seen, tuple[float, Centres]]
"""The probability of each visible part, and the centres of its noisy numbers."""

COUNTS, SHORTFALL = Fraction(8), Fraction(9)
"""The epsilons of the counts and of the shortfall: large, so that an overspent one exceeds the rest of epsilon."""

SLACK = 1e-9
"""The relative error of a delta, which is a sum of floats."""

_SKETCHED = 1, 2, 4
"""The ranks of sketches. A user of all items can move the scores at each of them."""

_RATE, _DELTA = Fraction(4), Fraction(1, 10**3)
"""A rate and a delta at which few users are enough, so that every short string of bits can be walked."""

_RUNS = 1000
"""The number of bit strings that are walked. They decide 99.75% of the probability."""


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
    shortfall
        The largest log ratio of the shortfalls given the lists, as a share of their epsilon; 0 without shortfalls.
    failures
        The failed checks.
    """

    pairs: int
    kept: float
    worst: float
    shortfall: float
    failures: list[Failure]


@dataclass(frozen=True)
class DiscoveryTrial:
    """The release of the found items: mechanism, k, and the epsilons of counts and shortfall, 0 without them."""

    mechanism: Mechanism
    k: int
    counts: Fraction = Fraction(0)
    shortfall: Fraction = Fraction(0)

    def __str__(self) -> str:
        more = (" and counts" if self.counts else "") + (" and a shortfall" if self.shortfall else "")
        return f"releases by {self.mechanism!r} with k = {self.k}{more}"

    def compare(self, tables: SmallTables, pairs: list[tuple[Table, Table]]) -> Compared:
        """Compare all neighbours, and the terms of the release with the definition."""
        nothing, each_user = FoundItems([], []), tables.each_user
        source = HeldItems(tables.terms, tables.adjacency, nothing)
        if each_user is not None:
            source = HeldGroups(tables.terms, tables.adjacency, nothing, tables.groups, each_user, tables.shares)
        epsilon = definition.budget_for_discovery(EPSILON, tables.method, tables.items, self.k, tables.shares)
        request = make_discovery_request(
            source, self.k, epsilon,
            mechanism=self.mechanism, counts=self.counts or None, shortfall=self.shortfall or None,
        )  # fmt: skip
        laws, total = ReleaseLaws(request, source), epsilon + self.counts + self.shortfall
        kept = [needed_delta(*laws.kept.compare(*pair), EPSILON) for pair in pairs]
        seen = [needed_delta(*laws.compare(*pair), total) for pair in pairs]
        failures, delta = list[Failure](), float(tables.delta)

        def fail(check: str, what: str) -> None:
            failures.append(Failure(check, f"{what} with {tables}"))

        for name, needed in (("kept sets", kept), (str(self), seen)):
            worst = max(range(len(needed)), key=needed.__getitem__)
            ratio = needed[worst] / delta
            if ratio > 1.0 + SLACK:
                fail("delta", f"{name} need {share(ratio)} of delta at {' and '.join(map(format_table, pairs[worst]))}")
        if tables.new_items_delta is not None:
            alone = max(new_items_mass(*laws.kept.compare(*pair)) for pair in pairs)
            if alone > tables.new_items_delta * (1 + SLACK):
                fail("alone", f"items of one user alone need {share(alone / delta)} of delta")
        wrong = tables.find_wrong_noise(laws.kept)
        if wrong is not None:
            fail(*wrong)
        promised = request.guarantee
        stated = promised.epsilon, promised.delta, promised.discovery_epsilon
        asked = total, tables.delta, EPSILON
        if stated != asked:
            both = (
                f"epsilon = {whole}, delta = {delta}, {part} for discovery" for whole, delta, part in (stated, asked)
            )
            fail("total", f"{' stated, and asked for '.join(both)},")
        rates = set[Fraction]()
        if self.counts:
            # A user may touch any number of the items whose counts are released.
            defined_rate = definition.counts_rate if each_user is None else definition.counts_rate_by_group
            rates.add(defined_rate(self.counts / tables.shares, self.k, adjacency=tables.adjacency))
        if self.shortfall:
            rates.add(definition.shortfall_rate(self.shortfall / tables.shares, adjacency=tables.adjacency))
        if laws.rates != rates:
            drawn, defined = (" and ".join(map(str, sorted(each))) for each in (laws.rates, rates))
            fail("rate", f"noise of those found has the rates {drawn}, by definition {defined},")
        leads = 0.0
        if self.shortfall:
            moved = [laws.leads_apart(*pair) for pair in pairs]
            worst = max(range(len(moved)), key=moved.__getitem__)
            leads = float(moved[worst] / self.shortfall)
            if leads > 1.0:
                where = " and ".join(map(format_table, pairs[worst]))
                fail("shortfall", f"shortfalls have {share(leads)} of the epsilon that is theirs at {where}")
        if laws.misplaced is not None:
            fail("definition", laws.misplaced)
        return Compared(len(pairs), max(kept) / delta, max(seen) / delta, leads, failures)


@dataclass(frozen=True)
class DiscoveryVerdict(OverTrials):
    """The verdict on releases of discovered items from small tables."""

    headings: ClassVar[tuple[str, ...]] = (
        *("noise", "items that count", "each user's groups", "adjacency", "threshold", "trials", "pairs"),
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
        tables = self.tables
        what = tables.method, f"{tables.items}", tables.each_user or "-", tables.adjacency, f"{tables.threshold}"
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
        True if draws are compared too, which is the same for all tables of a method.
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
        if self.tables.each_user is None:
            failures += compare_sketches(self.tables, pairs)
        return DiscoveryVerdict(self.tables, found, failures + (misdrawn(self.tables.method) if self.is_drawn else []))


def discovery_tasks(adjacency: str | None = None) -> list[DiscoveryTask]:
    """Return all tasks on discovered items, under one adjacency or under both."""
    trials = (
        *(DiscoveryTrial(DEFAULT, 1), DiscoveryTrial(OneShot("gumbel"), 2), DiscoveryTrial(DEFAULT, 3, COUNTS)),
        *(DiscoveryTrial(DEFAULT, 1, shortfall=SHORTFALL), DiscoveryTrial(DEFAULT, 2, COUNTS, SHORTFALL)),
    )
    kinds = [(1, None), (2, None), (3, None), (1, ONE), (1, MANY)]
    tasks = []
    for method in (SmallTables, WeightedTables):
        every = [method(items, each, groups) for (items, groups), each in product(kinds, ADJACENCIES)]
        chosen = [tables for tables in every if adjacency in (None, tables.adjacency)]
        tasks += [DiscoveryTask(tables, trials, is_drawn=index == 0) for index, tables in enumerate(chosen)]
    return tasks


def compare_sketches(tables: SmallTables, pairs: list[tuple[Table, Table]]) -> list[Failure]:
    """Compare the sketches of all neighbours: their noise, and how far the scores move that it is added to."""
    source = HeldItems(tables.terms, tables.adjacency, FoundItems([], []))
    request = make_sketch_request(source, EPSILON, _SKETCHED)
    # A user may move the score at every rank.
    rate = definition.counts_rate(EPSILON, len(_SKETCHED), adjacency=tables.adjacency)
    failures, rates = list[Failure](), list[Fraction]()

    def note_rate(asked: Fraction) -> int:
        rates.append(asked)
        return 0

    def read(table: Table) -> list[int]:
        source.largest = tuple(sorted((score for _, _, score in table[0]), reverse=True))
        return [int(score) for score in request.draw(replace(Randomness.of(None), noise=note_rate)).noisy]

    def define(table: Table) -> list[int]:
        # Infinitely many items that nobody touched follow, with a score of 0.
        scores = sorted((score for _, _, score in table[0]), reverse=True) + [0] * max(_SKETCHED)
        return [scores[rank - 1] for rank in _SKETCHED]

    every = {table: (read(table), define(table)) for table in dict.fromkeys(chain.from_iterable(pairs))}
    promised = request.guarantee
    if promised.epsilon != EPSILON or promised.delta != 0:
        failures.append(Failure("total", f"a sketch states epsilon = {promised.epsilon}, delta = {promised.delta}"))
    if rates != [rate] * (len(_SKETCHED) * len(every)):
        failures.append(Failure("rate", f"a sketch draws noise of {set(rates)}, by definition {rate}, with {tables}"))
    for table, (here, right) in every.items():
        if here != right:
            failures.append(Failure("sketch", f"{here} is read, by definition {right}, at {format_table(table)}"))
            break
    for one, other in pairs:
        moved = sum(abs(x - y) for x, y in zip(every[one][0], every[other][0], strict=True))
        if moved * request.noise.rate > EPSILON:
            where = f"{format_table(one)} and {format_table(other)}"
            failures.append(Failure("sketch", f"scores move {moved} steps, beyond epsilon, at {where} with {tables}"))
            break
    return failures


def needed_delta(here: Floats, there: Floats, epsilon: Fraction) -> float:
    """Return the larger hockey-stick divergence of two laws at epsilon, over both directions."""
    factor = math.exp(epsilon)
    ways = ((here, there), (there, here))
    return max(float(np.maximum(p - factor * q, 0.0).sum()) for p, q in ways)


def new_items_mass(here: Floats, there: Floats) -> float:
    """Return the larger probability of what one law can have and the other cannot, over both directions."""
    return max(float(p[q == 0.0].sum()) for p, q in ((here, there), (there, here)))


class ReleaseLaws:
    """The laws of one group of a release of discovered items.

    An item is kept with the probability of `Discovery`, and the kept items go through the code of `top_k` with every
    selection in turn. Groups are independent.
    """

    def __init__(self, request: DiscoveryRequest, source: HeldItems) -> None:
        counted = request.count_mechanism
        # The floor at zero is post-processing and could only hide a difference.
        self._counted = None if counted is None else replace(counted, floor=False)
        self._led = request.shortfall_mechanism
        self.request, self._source = request, source
        discovery = request.share.discovery
        assert discovery is not None, "a request for discovered items has one"
        self.kept = KeptLaws(discovery)
        self._laws: dict[Touched, Law] = {}
        self._selections: dict[tuple[Touched, tuple[int, ...]], Law] = {}
        self.rates: set[Fraction] = set()
        self.misplaced: str | None = None

    def law(self, touched: Touched) -> Law:
        """Return the probability of every visible part of a group."""
        if touched not in self._laws:
            law: Law = {}
            scores = {item: score for item, _, score in touched}
            largest = tuple(sorted(scores.values(), reverse=True)[: self.request.k + 1])
            possible = [each for each in touched if self.kept.chance(each[1]) > 0.0]
            for kept in product((False, True), repeat=len(possible)):
                chances = [self.kept.chance(n) for _, n, _ in possible]
                p = math.prod(chance if is_kept else 1 - chance for chance, is_kept in zip(chances, kept, strict=True))
                held = tuple(each for each, is_kept in zip(possible, kept, strict=True) if is_kept)
                for seen, (mass, centres) in self._select(held, largest if self._led else ()).items():
                    # The lead is over all items of the events, whichever of them were kept.
                    lead = definition.lead_of_found(scores, seen[0]) if seen[0] and self._led else None
                    if centres.get(seen[0]) != lead:
                        names = " ".join(seen[0]) or "nothing"
                        what = f"the shortfall of {names} is around {centres.get(seen[0])}, by definition {lead},"
                        self.misplaced = f"{what} at {format_table([touched])}"
                        # A mixture of shortfalls has several centres; delta is computed around the one by definition.
                        centres = centres if lead is None else {**centres, seen[0]: lead}
                    law[seen] = (law[seen][0] if seen in law else 0.0) + p * mass, centres
            self._laws[touched] = law
        return self._laws[touched]

    def compare(self, table: Sequence[Touched], other: Sequence[Touched]) -> tuple[Floats, Floats]:
        """Return the probabilities of all cells that tell two tables apart, in all groups.

        A noisy number tells two centres apart only by its position: at or below both, between, or at or above both.
        Each number splits an outcome into a few cells, so the divergence is a finite sum.
        """
        here, there = np.ones(1), np.ones(1)
        for inside, outside in zip(table, other, strict=True):
            one, two, cells = self.law(inside), self.law(outside), list[tuple[float, float]]()
            for seen in one | two:
                (p, own), (q, others) = one.get(seen, (0.0, {})), two.get(seen, (0.0, {}))
                split = [(p, q)]
                for number in own.keys() & others.keys():
                    noisy = self._counted if isinstance(number, COUNT) else self._led
                    assert noisy is not None, "a number has its noise"
                    parts = tell_scores_apart(abs(own[number] - others[number]), noisy.rate)
                    split = [(p * low, q * high) for p, q in split for low, high in parts]
                cells += split
            inner, outer = zip(*cells, strict=True)
            here, there = np.outer(here, inner).ravel(), np.outer(there, outer).ravel()
        return here, there

    def leads_apart(self, table: Sequence[Touched], other: Sequence[Touched]) -> Fraction:
        """Return the largest log ratio of the shortfalls of all groups, given lists that either table may show."""
        total = Fraction(0)
        for inside, outside in zip(table, other, strict=True):
            here, there = ({item: score for item, _, score in touched} for touched in (inside, outside))
            lists = {seen[0] for seen in self.law(inside) | self.law(outside) if seen[0]}
            steps = [abs(definition.lead_of_found(here, y) - definition.lead_of_found(there, y)) for y in lists]
            total += (Fraction(0) if self._led is None else self._led.rate) * max(steps, default=0)
        return total

    def _select(self, held: Touched, largest: tuple[int, ...]) -> Law:
        """Return the law of the visible part if these items were kept, with numbers without noise."""
        if (held, largest) in self._selections:
            return self._selections[held, largest]
        # The items are in the order of the query, so that an order that is echoed would show.
        ranked = sorted(held, key=lambda each: (-each[1], each[0]))
        source = copy(self._source)
        source.held = FoundItems([item for item, _, _ in ranked], [score for _, _, score in ranked])
        source.largest = largest
        request = replace(self.request, source=source, count_mechanism=self._counted)
        law: Law = {}

        def draw_no_noise(rate: Fraction) -> int:
            self.rates.add(rate)
            return 0

        def release(draw: Callable[[Prepared], Selection]) -> Release:
            made = request.draw(Randomness(draw, draw_no_noise))
            if isinstance(made, GroupedRelease):
                made = list(made.values())[-1]
            assert isinstance(made, Release)
            return made

        for seen, (log, _) in enumerate_outcomes(release, request.k).items():
            centres: Centres = {}
            for number in seen[2:]:
                centres[number.item if isinstance(number, Count) else seen[0]] = number.value
            law[seen[0], seen[1]] = math.exp(log), centres
        self._selections[held, largest] = law
        return law


def tell_scores_apart(steps: int, rate: Fraction | None) -> list[tuple[float, float]]:
    """Return the probabilities of a noisy count at or below two scores, at each value between, and at or above both.

    The first of each pair has noise on the lower score, the second on the other, which is `steps` higher.
    """
    if rate is None or steps == 0:
        return [(1.0, 1.0)]
    at = [math.exp(definition.discrete_laplace_log(i, rate)) for i in range(1, steps)]
    near, far = definition.upper_tail(rate, 0), definition.upper_tail(rate, steps)
    return [(near, far), *zip(at, reversed(at), strict=True), (far, near)]


def misdrawn(method: str = LAPLACE) -> list[Failure]:
    """Check the draws of kept items against the definition, on all short strings of bits.

    Two items are just below the threshold or at it, and one counts for no user.
    """
    found, failures = METHODS[method](_RATE, _DELTA, 1), []
    threshold = definition.least_threshold(_RATE, _DELTA, 1, "add-remove", 1)
    keep = partial(definition.keep_chance, rate=_RATE, threshold=threshold)
    if method == GAUSSIAN:
        # sigma by definition, rounded up to 24 bits as the library does, so that T is the same.
        sigma = definition.round_up_to_bits(definition.least_sigma(_RATE, _DELTA, "add-remove"), 24)
        threshold = definition.least_weighted_threshold(sigma, _DELTA, 1, "add-remove")
        keep = partial(definition.weighted_keep_chance, sigma=sigma, threshold=threshold)
    for totals in ([threshold - 1, 0], [threshold, 0]):
        runs = np.array(totals), np.array([2, 1])

        def sample(entropy: Entropy, runs: tuple[Ranks, Ranks] = runs) -> tuple[int, ...]:
            return tuple(found.sample_kept_ranks(entropy, *runs).tolist())

        decided, undecided = walk(sample, _RUNS)
        chances = [keep(n) for n in np.repeat(*runs).tolist()]
        for kept in product((False, True), repeat=len(chances)):
            ranks = tuple(rank for rank, is_kept in enumerate(kept) if is_kept)
            right = math.prod(p if is_kept else 1 - p for p, is_kept in zip(chances, kept, strict=True))
            low, high = float(decided.get(ranks, 0)), float(decided.get(ranks, 0) + undecided)
            if not low - 1e-12 <= right <= high + 1e-12:
                chance = f"{low:.6g} to {high:.6g}, by definition {right:.6g}"
                what = f"the items {ranks} of {totals} are kept by {method} noise with probability {chance}"
                failures.append(Failure("drawn", what))
                break
    return failures


@dataclass(frozen=True)
class HeldSnapshot:
    """A snapshot with given items in each group, whatever is drawn to be kept."""

    held: list[FoundItems]
    largest: list[list[int]]

    def runs(self) -> list[tuple[Ranks, Ranks]]:
        return [(np.empty(0, np.int64), np.empty(0, np.int64))] * len(self.held)

    def items(self, kept: list[Ranks]) -> list[FoundItems]:
        return self.held

    def largest_scores(self, count: int) -> list[list[int]]:
        return [scores[:count] for scores in self.largest]

    def count_hidden(self) -> int:
        # A choice without noise is then for weights.
        return 10**9

    def take_shares(self) -> HeldSnapshot:
        return self


class HeldItems(UnlistedSource):
    """A source whose found items are given, whatever is drawn, and so are the largest scores of all its items."""

    largest: tuple[int, ...] = ()

    def __init__(self, terms: Discovered, adjacency: str, held: FoundItems) -> None:
        self.terms, self.adjacency, self.held = terms, adjacency, held
        self.sensitivity, self.grid = Sensitivity(), Fraction(1)

    def snapshot(self, key: str, with_uncounted: bool = False) -> AbstractContextManager[HeldSnapshot]:
        return nullcontext(HeldSnapshot([self.held], [list(self.largest)]))


class HeldGroups(HeldItems, UnlistedGroups):
    """A source with given items in the last of several groups, and none in the others."""

    def __init__(self, terms: Discovered, adjacency: str, held: FoundItems, groups: int, each_user: str, most: int):
        super().__init__(terms, adjacency, held)
        self.keys, self.names = tuple(range(groups)), ("group",)
        self.each_user, self.groups_per_user = each_user, most

    def snapshot(self, key: str, with_uncounted: bool = False) -> AbstractContextManager[HeldSnapshot]:
        others = len(self.keys) - 1
        held, largest = [*[FoundItems([], [])] * others, self.held], [*[list[int]()] * others, list(self.largest)]
        return nullcontext(HeldSnapshot(held, largest))
