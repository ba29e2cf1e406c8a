"""Verify the private choice between two methods of partition selection, and the one by shares of one vote of each user.

A release tells the choice and its list, and the laws of both together are compared for neighbouring tables. With the
probability of the choice it has the noisy sums of shares from the threshold on, of which its list is a function, and
otherwise a list by weights. The number that the choice is made by, and the sums of shares, must be those of the
definition, and so must be rates and thresholds. A release is made by the code of `top_k` with every order of the noisy
sums, reaching the threshold or not, and must tell its method.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count, permutations, product
from typing import Any, ClassVar

import numpy as np

from discreet.evidence import definition
from discreet.evidence.discovery import (
    SLACK,
    Compared,
    DiscoveryTask,
    DiscoveryVerdict,
    HeldItems,
    HeldSnapshot,
    ReleaseLaws,
    needed_delta,
    new_items_mass,
)
from discreet.evidence.discovery_tables import KEY, Person, Touched, WeightedTables, format_table, open_events
from discreet.evidence.report import Failure, share
from discreet.exact.arrays import Floats, Ranks
from discreet.mechanisms.adaptive_discovery import AdaptiveDiscovery
from discreet.mechanisms.base import Prepared
from discreet.mechanisms.histogram import PreparedHistogram
from discreet.mechanisms.tally import Selection
from discreet.privacy import ADJACENCIES
from discreet.release.discovery_request import DiscoveryRequest, make_discovery_request
from discreet.release.release import Release
from discreet.release.request import Randomness
from discreet.sources.discovered import AUTO, GAUSSIAN, FoundItems

TERMS = (2, Fraction(2), Fraction(1, 10**3)), (4, Fraction(1, 2), Fraction(1, 10**6))
"""The items of a user that count, and the epsilon and delta of a release. With fewer than four no item hides users."""

_PART = Fraction(1, 25)
"""The part of epsilon for the choice, by definition."""

_SIZES = 1, 2
"""The numbers of items of the releases."""

Shares = dict[str, tuple[int, int]]
"""For some items the sum of their shares in sixths of a vote, and the number of users for whom they count."""


@dataclass(frozen=True)
class ChoiceTable:
    """The items of a table by both methods."""

    touched: Touched
    shares: Shares

    @property
    def hidden(self) -> int:
        """The number that decides without noise."""
        return definition.hidden_users([(Fraction(sixths, 6), users) for sixths, users in self.shares.values()])

    @property
    def sums(self) -> list[int]:
        """The sums of shares above 0, the largest first."""
        return sorted((sixths for sixths, _ in self.shares.values() if sixths), reverse=True)

    def __str__(self) -> str:
        return f"{format_table([self.touched])}, {self.shares}"


@dataclass(frozen=True)
class ChoiceTables(WeightedTables):
    """Small tables for the choice.

    Attributes
    ----------
    budget, own_delta
        The epsilon and the delta of a release.
    """

    budget: Fraction = Fraction(2)
    own_delta: Fraction = Fraction(1, 10**3)

    method: ClassVar[str] = AUTO

    def __str__(self) -> str:
        return f"choice at epsilon = {self.budget}, {super().__str__()}"

    @property
    def delta(self) -> Fraction:
        return self.own_delta

    @property
    def method_epsilon(self) -> Fraction:
        """The epsilon of either method after the choice, by definition."""
        return self.budget * (1 - _PART)

    @property
    def rate(self) -> Fraction:
        """The rate of the noise on sums of sixths by definition."""
        return self.method_epsilon / (12 if self.adjacency == "swap" else 6)

    @property
    def cutoff(self) -> int:
        """The threshold in sixths of a vote by definition."""
        return definition.least_shared_threshold(self.method_epsilon, self.delta, self.items, self.adjacency)

    @property
    def threshold(self) -> int:
        """The number of users of one item each that reach the threshold."""
        return math.ceil(self.cutoff / 6)

    def bases(self) -> list[list[Person]]:
        if self.items < 4:
            return super().bases()
        # The last item hides users at the margin of the choice, and has votes of its own just below the threshold.
        last, few = self._names[-1], self.threshold - 1
        hidden: list[Person] = [tuple((0, item) for item in self._names)] * (self.find_lead(0) + 2 * few)
        return [*super().bases(), hidden + [((0, last),)] * few]

    @property
    def _names(self) -> str:
        return "abcd"[: min(4, self.items + 1)]

    def read_both(self) -> tuple[list[ChoiceTable], list[Failure]]:
        """Return every base with every user, as the library reads it in one query, and departures from definitions."""
        rows: list[tuple[str, str]] = []
        tables = list(product(range(len(self.bases())), range(len(self.users()))))
        for (i, base), (j, user) in product(enumerate(self.bases()), enumerate(self.users())):
            # No item or user is in two tables. Users of a base have names by which the same items have shares.
            for n, person in enumerate([*base, user]):
                items = [f"{i}-{j}/{item}" for _, item in person]
                names = (f"{i}-{j}-{n}-{salt}" for salt in count())
                who = next(name for name in names if keeps_order(name, items, self.items))
                rows += [(who, item) for item in items * 2]
        source = open_events([(0, who, 0, item) for who, item in rows], self.terms)
        with source.snapshot(KEY) as snapshot:
            found: Any = snapshot
            read = {row["item"]: row for row in found.scores.to_pyarrow().to_pylist()}
            counted, (runs,) = snapshot.count_hidden(), snapshot.take_shares().runs()
        right = definition.count_shares(rows, KEY, self.items)
        ((weights),) = definition.count_people(((who, 0, item) for who, item in rows), self.items, KEY, 1, False, True)
        defined = {
            item: {"item": item, "score": weight, "total": n, "shared": 6 * right[item][0], "counted": right[item][1]}
            for item, (weight, n) in weights.items()
            if weight
        }
        failures = []
        for item in read.keys() | defined.keys():
            if read.get(item) != defined.get(item):
                failures = [Failure("people", f"{read.get(item)} is found, by definition {defined.get(item)}")]
        hidden = definition.hidden_users(right.values())
        sums = sorted((6 * votes for votes, _ in right.values() if votes), reverse=True)
        if counted != hidden:
            failures.append(Failure("people", f"the choice is made by {counted}, by definition {hidden}"))
        if np.repeat(*runs).tolist() != sums:
            failures.append(Failure("people", "the sums of shares of all items are not those of the definition"))
        made = []
        for i, j in tables:
            own = [row for item, row in sorted(read.items()) if item.startswith(f"{i}-{j}/")]
            short = [(row["item"].partition("/")[2], row) for row in own]
            touched = tuple((name, row["score"], row["total"]) for name, row in short)
            shares = {name: (row["shared"], row["counted"]) for name, row in short}
            made.append(ChoiceTable(touched, shares))
        return made, failures

    def compare_both(self, k: int, pairs: list[tuple[ChoiceTable, ChoiceTable]]) -> Compared:
        """Compare releases of k items from all neighbours, and their terms with the definition."""
        source = HeldItems(self.terms, self.adjacency, FoundItems([], []))
        request = make_discovery_request(source, k, self.budget)
        discovery = request.share.discovery
        assert isinstance(discovery, AdaptiveDiscovery), "the terms have a choice"
        weighted, failures = ReleaseLaws(request, source), list[Failure]()
        apart = [tell_sums_apart(discovery, one, other) for one, other in pairs]
        seen = [
            self.mix_laws(discovery, pair, sums, weighted.compare([pair[0].touched], [pair[1].touched]))
            for pair, sums in zip(pairs, apart, strict=True)
        ]

        def fail(check: str, what: str) -> None:
            failures.append(Failure(check, f"{what} with {self}"))

        delta, own = float(self.delta), self.method_epsilon
        kept, needed = ([needed_delta(*pair, e) for pair in laws] for laws, e in ((apart, own), (seen, self.budget)))
        for name, each in (("sums of shares", kept), (f"releases with k = {k}", needed)):
            worst = max(range(len(each)), key=each.__getitem__)
            if each[worst] > delta * (1.0 + SLACK):
                where = " and ".join(map(str, pairs[worst]))
                fail("delta", f"{name} need {share(each[worst] / delta)} of delta at {where}")
        alone = max(new_items_mass(*pair) for pair in apart)
        if alone > delta * (1.0 + SLACK) / (2 if self.adjacency == "swap" else 1):
            fail("alone", f"items of one user alone need {share(alone / delta)} of delta")
        moved = max(abs(one.hidden - other.hidden) for one, other in pairs)
        if moved * discovery.choice_rate > self.budget * _PART:
            fail("choice", f"a number that moves by {moved} has noise of the rate {discovery.choice_rate}")
        for hidden in {table.hidden for pair in pairs for table in pair}:
            lead = self.find_lead(hidden)
            for noise in (lead - 1, lead):
                is_chosen = discovery.prefers_alternative(hidden, {discovery.choice_rate: noise}.__getitem__)
                if is_chosen != (noise < lead):
                    fail("choice", f"shares are taken: {is_chosen}, with noise {noise} and {hidden} users hidden")
        methods = {seen[1] for pair in pairs for table in pair for seen in weighted.law(table.touched)}
        if methods != {GAUSSIAN}:
            fail("told", f"{methods} are told to be the methods of releases by weights")
        terms = {
            "rate": (discovery.alternative.step_rate, self.rate),
            "threshold": (discovery.alternative.cutoff, self.cutoff),
            "choice": (discovery.choice_rate, definition.choice_rate(self.budget * _PART, self.adjacency)),
            "total": ((request.guarantee.epsilon, request.guarantee.delta), (self.budget, self.delta)),
            "noise": (weighted.rates, {discovery.choice_rate}),
        }
        for check, (made, right) in terms.items():
            if made != right:
                fail(check, f"{made}, by definition {right}, is the {check}")
        for total in range(self.cutoff + 9):
            chance = float(discovery.alternative.keep_probability(total).mid())
            if not math.isclose(chance, right := definition.value_tail(self.cutoff, total, self.rate), rel_tol=1e-9):
                fail("chance", f"an item of {total} sixths is kept with {chance:.6g}, by definition {right:.6g},")
        wrong = self.find_wrong_noise(weighted.kept)
        if wrong is not None:
            fail(*wrong)
        for sums in {tuple(table.sums) for pair in pairs for table in pair}:
            failures += check_release(request, source, sums)
        return Compared(len(pairs), max(kept) / delta, max(needed) / delta, 0.0, failures[:9])

    def mix_laws(
        self,
        discovery: AdaptiveDiscovery,
        pair: tuple[ChoiceTable, ChoiceTable],
        sums: tuple[Floats, Floats],
        weighted: tuple[Floats, Floats],
    ) -> tuple[Floats, Floats]:
        """Return the laws of the choice and the release from a pair of tables."""
        chances = [definition.upper_tail(discovery.choice_rate, 1 - self.find_lead(table.hidden)) for table in pair]
        here, there = (
            np.concatenate([chance * first, (1.0 - chance) * second])
            for chance, first, second in zip(chances, sums, weighted, strict=True)
        )
        return here, there

    def find_lead(self, hidden: int) -> int:
        """Return the least noise with which shares are not taken, by definition."""
        return definition.choice_lead(hidden, self.budget * _PART, self.adjacency)

    @property
    def sigma(self) -> float:
        # Three quarters of the rest finds items.
        return definition.least_sigma(self.method_epsilon * Fraction(3, 4), self.delta, self.adjacency)


def keeps_order(who: str, items: list[str], most: int) -> bool:
    """Return True if the first of some items have shares for a user, and the first `most` of them count."""
    by_hash = definition.order_items(who, items, KEY)
    return all(set(by_hash[:size]) == set(items[:size]) for size in (min(3, most), most))


def tell_sums_apart(discovery: AdaptiveDiscovery, table: ChoiceTable, other: ChoiceTable) -> tuple[Floats, Floats]:
    """Return the probabilities of all noisy sums of shares from the threshold on, rounded, from two tables.

    Below both true sums the ratio of the densities is constant, and beyond both it is, so that a tail is one outcome.
    """
    rate, cutoff = discovery.alternative.step_rate, discovery.alternative.cutoff
    here, there = np.ones(1), np.ones(1)
    for item in table.shares.keys() | other.shares.keys():
        sums = [each.shares.get(item, (0, 0))[0] for each in (table, other)]
        if sums[0] != sums[1]:
            low, high = (max(cutoff, each) for each in (min(sums), max(sums)))
            values = dict.fromkeys([cutoff, *range(low, high + 2)])
            tails = [[1.0, *(definition.value_tail(value, n, rate) for value in values), 0.0] for n in sums]
            here, there = (
                np.outer(law, -np.diff(tail)).ravel() for law, tail in zip((here, there), tails, strict=True)
            )
    return here, there


def check_release(request: DiscoveryRequest, source: HeldItems, sums: Sequence[int]) -> list[Failure]:
    """Release items of such sums, with every order of the noisy sums, and compare with those that reach T."""
    discovery = request.share.discovery
    assert isinstance(discovery, AdaptiveDiscovery), "the terms have a choice"
    other, items = discovery.alternative, [f"{rank}" for rank in range(len(sums))]
    held = HeldShares(source.terms, source.adjacency, FoundItems(items, list(sums)))
    places = min(request.k, len(items))
    for order, reached in product(permutations(range(len(items)), places), range(places + 1)):
        values, drawn = [other.cutoff] * reached + [other.cutoff - 1] * (places - reached), list[Any]()

        def draw(prepared: Prepared, order: Any = order, values: Any = values, drawn: list[Any] = drawn) -> Selection:
            assert isinstance(prepared, PreparedHistogram)
            tally = prepared.tally
            drawn += [prepared.weight, prepared.noise.name, prepared.k, [tally.exact(rank) for rank in range(tally.d)]]
            return Selection(np.array(order, np.int64), values=GivenValues(values))

        released = replace(request, source=held).draw(Randomness(draw, lambda _: 0))
        assert isinstance(released, Release)
        defined = [other.step_rate, "laplace", places, list(sums)] if places else []
        if drawn != defined:
            return [Failure("draw", f"{drawn} is drawn from {sums}")]
        right = sorted(items[rank] for rank in order[:reached])
        if released.items != right or released.order is not None:
            return [Failure("release", f"{released.items} is released of {sums}, by definition {right}")]
        if released.chosen != "few-items":
            return [Failure("told", f"{released.chosen} is told to be the method of shares")]
    return []


@dataclass(frozen=True)
class GivenValues:
    """Given noisy sums."""

    values: list[int]

    def to_steps(self, grid: Fraction) -> list[int]:
        return self.values


@dataclass(frozen=True)
class SharesSnapshot(HeldSnapshot):
    """A snapshot of items by sums of shares, in descending order, for which the choice is without noise."""

    def count_hidden(self) -> int:
        return 0

    def runs(self) -> list[tuple[Ranks, Ranks]]:
        values, counts = np.unique(np.array(self.held[0].scores, np.int64), return_counts=True)
        return [(values[::-1], counts[::-1])]

    def items(self, kept: list[Ranks]) -> list[FoundItems]:
        (ranks,), (held,) = kept, self.held
        return [FoundItems(*([each[rank] for rank in ranks.tolist()] for each in held))]


class HeldShares(HeldItems):
    """A source of given items by sums of shares."""

    def snapshot(self, key: str, with_uncounted: bool = False) -> AbstractContextManager[HeldSnapshot]:
        return nullcontext(SharesSnapshot([self.held], []))


@dataclass(frozen=True)
class ChoiceTask(DiscoveryTask):
    """The choice in small tables."""

    tables: ChoiceTables

    def examine(self) -> DiscoveryVerdict:
        """Compare the neighbours of all tables and return the verdict."""
        read, failures = self.tables.read_both()
        # Tables with each user come one after the other.
        given: Any = read
        pairs: Any = list(self.tables.pair_up(given))
        found = tuple(self.tables.compare_both(k, pairs) for k in _SIZES)
        failures += [failure for one in found for failure in one.failures]
        return DiscoveryVerdict(self.tables, found, failures)


def choice_tasks(adjacency: str | None = None) -> list[ChoiceTask]:
    """Return all tasks on the choice, under one adjacency or under both."""
    chosen = [each for each in ADJACENCIES if adjacency in (None, each)]
    return [
        ChoiceTask(ChoiceTables(items, each, budget=budget, own_delta=delta), ())
        for (items, budget, delta), each in product(TERMS, chosen)
    ]
