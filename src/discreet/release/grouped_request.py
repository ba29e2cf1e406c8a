"""GroupedRequest: k items of each of several groups, and what their release promises in all.

A user counts in at most g groups, and each group has a g-th of epsilon, of the selection and of the counts. Adding or
removing a user changes g groups at most, so that the whole costs what the g costliest groups cost together. A user who
is replaced can leave g groups and come to g others: each of these 2g sees half of the change that the sensitivity of
"swap" allows for, and a mechanism that is linear charges it half, so that the whole costs the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.errors import InvalidValueError
from discreet.exact.arrays import Ranks
from discreet.jobs import count_steps
from discreet.privacy import sum_of_largest
from discreet.release.grouped import GroupedRelease
from discreet.release.guarantee import Guarantee
from discreet.release.padding import Workload
from discreet.release.request import (
    Asked,
    Drawn,
    GroupShare,
    Randomness,
    Request,
    Terms,
    check_group_mechanism,
    make_request,
    make_terms,
)
from discreet.sources.base import GroupedSource, Source


@dataclass(frozen=True, eq=False, repr=False)
class GroupedRequest:
    """What a release by group is asked for; the scores are in the source alone, unread.

    Attributes
    ----------
    source
        Where the scores come from.
    requests
        What is asked of each group, in the order of the source; its guarantee is the group's own share.
    guarantee
        What the release of all groups promises.
    """

    source: GroupedSource
    requests: Sequence[Request]
    guarantee: Guarantee

    @property
    def k(self) -> int:
        """How many items of each group to release."""
        return self.requests[0].k

    @property
    def d(self) -> int:
        """How many items the largest of the groups has."""
        return max(request.d for request in self.requests)

    @property
    def takes_all_items(self) -> bool:
        """Whether every group is released whole, which needs no draw and costs nothing."""
        return all(request.takes_all_items for request in self.requests)

    @property
    def has_counts(self) -> bool:
        """Whether the release has counts, which it has for all groups or for none."""
        return self.requests[0].count_mechanism is not None

    @property
    def workload(self) -> Workload:
        """What says how long the release takes."""
        typed = all(request.source.typed for request in self.requests)
        items, groups = sum(request.d for request in self.requests), len(self.requests)
        return Workload(typed, items, self.k * groups, self.requests[0].has_numbers, groups)

    def draw(self, randomness: Randomness) -> GroupedRelease:
        """Take one snapshot of all groups, draw them one after the other, and look up the items of all at once."""
        source, requests = self.source, self.requests
        items: list[list[Any] | Ranks]
        if self.takes_all_items and not self.has_counts:
            drawn = [Drawn() for _ in requests]
            # Groups of one domain share a source that lists it: each is asked once.
            sources = {id(request.source): request.source for request in requests}
            listed = {number: one.every_item() for number, one in sources.items()}
            items = [listed[id(request.source)] for request in requests]
        else:
            drawn, picks = [], []
            with (
                np.errstate(all="ignore"),
                source.snapshot() as snapshot,
                count_steps("drawing", "groups", len(requests)) as advance,
            ):
                for group, (request, tally) in enumerate(zip(requests, snapshot.tallies(), strict=True)):
                    advance(group)
                    drawn.append(request.draw_ranks(tally, randomness))
                    picks.append(snapshot.pick(drawn[-1].selection))
                items = snapshot.items(picks)
        releases = {
            key: request.make_release(found, one, randomness)
            for key, request, found, one in zip(source.keys, requests, items, drawn, strict=True)
        }
        return GroupedRelease(releases, self.guarantee, source.each_user, source.groups_per_user, source.names)


def make_listed_request(scores: Any, k: Any, epsilon: Any, **terms: Any) -> Request | GroupedRequest:
    """The same for scores of a public list of items, which items that are to be found do not have."""
    make = make_grouped_request if isinstance(scores, GroupedSource) else make_request
    return make(scores, k, epsilon, **terms)


def make_grouped_request(source: GroupedSource, k: Any, epsilon: Any, **terms: Any) -> GroupedRequest:
    """The request that the arguments of `top_k` describe for a source by group; the terms are those of `Asked`."""
    asked = Asked(k, epsilon, **terms)
    known: dict[tuple[Any, ...], Terms] = {}
    requests = []
    for key, member in zip(source.keys, source.members, strict=True):
        facts = _public_facts(member)
        if facts not in known:
            share = GroupShare(key, source.groups_per_user)
            known[facts] = make_terms(member, asked, share)
        requests.append(Request(member, *known[facts]))
    _check_alike([guarantee for _, guarantee, *_ in known.values()])
    return GroupedRequest(source, requests, _total_guarantee(requests, source.groups_per_user))


def _public_facts(member: Source) -> tuple[Any, ...]:
    """What the terms of a release depend on: groups that are alike in it share their terms."""
    steps = member.grid, member.between_steps
    moved = member.sensitivity, member.fractional, member.max_items_per_user
    return member.d, *steps, *moved, member.adjacency


def _check_alike(guarantees: list[Guarantee]) -> None:
    """Raises unless one user means the same in all groups, and each can be charged half of a replacement."""
    first = guarantees[0]
    for other in guarantees[1:]:
        for name, one, another in (
            ("adjacency", first.adjacency, other.adjacency),
            ("sensitivity", first.sensitivity.sides, other.sensitivity.sides),
        ):
            if one != another:
                raise InvalidValueError(f"{name} must be the same for all groups, and is {one!r} and {another!r}")
    check_group_mechanism(first.mechanism, first.adjacency)


def _total_guarantee(requests: list[Request], groups_per_user: int) -> Guarantee:
    """What all groups promise together: sums over the costliest ones that a user can be in."""
    promised = {id(request.guarantee): request.guarantee for request in requests}
    sizes = Counter(id(request.guarantee) for request in requests)

    def add_up(cost: Callable[[Guarantee], Fraction]) -> Fraction:
        costs = [(cost(guarantee), sizes[number]) for number, guarantee in promised.items()]
        return sum_of_largest(costs, groups_per_user)

    epsilon, counts = add_up(lambda each: each.epsilon), add_up(lambda each: each.counts_epsilon)
    # Where a group that is released whole spends on its counts what others spend on both, no one split is that of all.
    is_split = add_up(lambda each: each.selection_epsilon) + counts == epsilon
    rho, first = add_up(lambda each: each.zcdp), requests[0].guarantee
    # Groups of few items may have less noise; what is said of all is the most.
    limit = max((each.sensitivity for each in promised.values()), key=lambda one: one.l1 or 0)
    parts = counts if is_split else Fraction(0)
    return replace(first, epsilon=epsilon, sensitivity=limit, zcdp=rho, counts_epsilon=parts)
