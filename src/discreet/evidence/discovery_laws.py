"""The exact law of a release of items that nobody listed, and the delta that two of them need.

An item is kept with the probability that the library's `Discovery` has for it, the kept ones go through `top_k`'s own
way to a release with every choice in turn, and what is seen of several groups is seen independently. A noisy count
tells two scores apart by no more than where it lies to them: at or below both, between, or at or above both. So each
count of an outcome splits it into a few cells, and the divergence is a finite sum, with counts as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from discreet import topk
from discreet.discovery_request import DiscoveryRequest
from discreet.discovery_terms import Discovered
from discreet.evidence.definition import discrete_laplace_log
from discreet.evidence.discovery_definition import upper_tail
from discreet.evidence.visible_laws import enumerate_outcomes
from discreet.exact.arrays import Floats
from discreet.exact.ball import precision
from discreet.grouped_release import GroupedRelease
from discreet.mechanisms.base import Prepared
from discreet.mechanisms.discovery import Discovery
from discreet.privacy import Sensitivity
from discreet.release import Release
from discreet.selection import Selection
from discreet.sources.unlisted import FoundItems, KeepItems, UnlistedGroups, UnlistedSource

Touched = tuple[tuple[str, int, int], ...]
"""The items of one group that were found to count: of each for how many users, and its score among all."""

Seen = tuple[Any, Any]
"""What is seen of one group but for counts: the items as listed, and the order."""

Centres = dict[Any, int]
"""What the counts of the items that are seen are centred at."""

Law = dict[Seen, tuple[float, Centres]]
"""The probability of what is seen, and where its counts lie."""

_BITS = 112


class HeldItems(UnlistedSource):
    """Items that count as found, whatever is drawn."""

    def __init__(self, terms: Discovered, adjacency: str, held: FoundItems) -> None:
        self.terms, self.adjacency, self.held = terms, adjacency, held
        self.sensitivity, self.grid = Sensitivity(), Fraction(1)

    def find_items(self, key: str, keep: KeepItems) -> list[FoundItems]:
        return [self.held]


class HeldGroups(HeldItems, UnlistedGroups):
    """The same in the last of several groups, where none are found in the others."""

    def __init__(self, terms: Discovered, adjacency: str, held: FoundItems, groups: int, each_user: str, most: int):
        super().__init__(terms, adjacency, held)
        self.keys, self.names = tuple(range(groups)), ("group",)
        self.each_user, self.groups_per_user = each_user, most

    def find_items(self, key: str, keep: KeepItems) -> list[FoundItems]:
        return [FoundItems([], [])] * (len(self.keys) - 1) + [self.held]


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
            for seen, (share, centres) in self._select(held).items():
                law[seen] = (law[seen][0] if seen in law else 0.0) + p * share, centres
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
        made = topk.draw_any(request, draw, self._draw_no_noise)
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
