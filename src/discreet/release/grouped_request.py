"""Request and draw k items of each of several groups, within one guarantee.

A user counts in at most g groups, and each group has a g-th of epsilon, of the selection and of the counts. Adding or
removing a user changes at most g groups, so the total cost is that of the g costliest groups. A user who is replaced
can leave g groups and join g others. Each of these 2g groups sees half of the change that the sensitivity of "swap"
allows for, and a linear mechanism loses half as much for it, so the total is the same.
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
from discreet.sources.base import GroupedSource


@dataclass(frozen=True, eq=False, repr=False)
class GroupedRequest:
    """A request for a list in each group; the scores stay unread in the source.

    Attributes
    ----------
    source
        The source of the scores.
    requests
        The request of each group, in the order of the source; its guarantee is the group's own share.
    guarantee
        The guarantee of the release of all groups.
    """

    source: GroupedSource
    requests: Sequence[Request]
    guarantee: Guarantee

    @property
    def k(self) -> int:
        """The number of items to release in each group."""
        return self.requests[0].k

    @property
    def d(self) -> int:
        """The number of items in the largest group."""
        return max(request.d for request in self.requests)

    @property
    def takes_all_items(self) -> bool:
        """True if every group is released whole, which needs no draw and costs nothing."""
        return all(request.takes_all_items for request in self.requests)

    @property
    def has_counts(self) -> bool:
        """True if the release has counts; either all groups have counts or none has."""
        return self.requests[0].count_mechanism is not None

    @property
    def groups(self) -> int:
        """The number of groups."""
        return len(self.requests)

    def describe(self) -> dict[str, Any]:
        """Return nothing: the source and the requests of the groups hold every public parameter."""
        return {}

    @property
    def workload(self) -> Workload:
        """The public sizes that determine how long the release takes."""
        typed = all(request.source.typed for request in self.requests)
        items, groups = sum(request.d for request in self.requests), len(self.requests)
        return Workload(typed, items, self.k * groups, self.requests[0].has_numbers, groups)

    def draw(self, randomness: Randomness) -> GroupedRelease:
        """Take one snapshot of all groups, draw one group after the other, and look up the items of all at once."""
        source, requests = self.source, self.requests
        items: list[list[Any] | Ranks]
        if self.takes_all_items and not self.has_counts:
            drawn = [Drawn() for _ in requests]
            # Groups that share a source share its list of items, which is read once.
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
                    drawn.append(request.draw_selection(tally, randomness))
                    picks.append(snapshot.pick(drawn[-1].selection))
                items = snapshot.items(picks)
        releases = {
            key: request.make_release(found, one, randomness)
            for key, request, found, one in zip(source.keys, requests, items, drawn, strict=True)
        }
        return GroupedRelease(releases, self.guarantee, source.each_user, source.groups_per_user, source.names)


def make_listed_request(scores: Any, k: Any, epsilon: Any, **terms: Any) -> Request | GroupedRequest:
    """Return the request that the arguments of `top_k` describe for scores of one public list or of several groups."""
    make = make_grouped_request if isinstance(scores, GroupedSource) else make_request
    return make(scores, k, epsilon, **terms)


def make_grouped_request(source: GroupedSource, k: Any, epsilon: Any, **terms: Any) -> GroupedRequest:
    """Return the request that the arguments of `top_k` describe for a source by group; `terms` are `Asked`'s."""
    asked = Asked(k, epsilon, **terms)
    known: dict[tuple[Any, ...], Terms] = {}
    requests = []
    for key, each in zip(source.keys, source.members, strict=True):
        # Terms depend on these public facts alone, so that groups with equal facts share their terms.
        facts = (
            each.d, each.grid, each.between_steps, each.sensitivity, each.fractional, each.max_items_per_user,
            each.adjacency,
        )  # fmt: skip
        if facts not in known:
            known[facts] = make_terms(each, asked, GroupShare(key, source.groups_per_user))
        requests.append(Request(each, *known[facts]))
    first, *others = [guarantee for _, guarantee, *_ in known.values()]
    for other in others:
        for name, one, another in (
            ("adjacency", first.adjacency, other.adjacency),
            ("sensitivity", first.sensitivity.sides, other.sensitivity.sides),
        ):
            if one != another:
                raise InvalidValueError(f"{name} must be the same for all groups, and is {one!r} and {another!r}")
    check_group_mechanism(first.mechanism, first.adjacency)
    return GroupedRequest(source, requests, _total_guarantee(requests, source.groups_per_user))


def _total_guarantee(requests: list[Request], groups_per_user: int) -> Guarantee:
    """Return the guarantee of all groups together: sums over the costliest groups that one user can be in."""
    promised = {id(request.guarantee): request.guarantee for request in requests}
    sizes = Counter(id(request.guarantee) for request in requests)

    def add_up(cost: Callable[[Guarantee], Fraction]) -> Fraction:
        costs = [(cost(guarantee), sizes[number]) for number, guarantee in promised.items()]
        return sum_of_largest(costs, groups_per_user)

    epsilon, counts = add_up(lambda each: each.epsilon), add_up(lambda each: each.counts_epsilon)
    shortfall = add_up(lambda each: each.shortfall_epsilon)
    # A group that is released whole spends all on its counts, others spend on both: then no split holds for all groups.
    is_split = add_up(lambda each: each.selection_epsilon) + counts + shortfall == epsilon
    rho, first = add_up(lambda each: each.zcdp), requests[0].guarantee
    # Groups of few items may have less noise; the total guarantee states the largest sensitivity.
    limit = max((each.sensitivity for each in promised.values()), key=lambda one: one.l1 or 0)
    parts = (counts, shortfall) if is_split else (Fraction(0), Fraction(0))
    whole = replace(first, epsilon=epsilon, sensitivity=limit, zcdp=rho)
    return replace(whole, counts_epsilon=parts[0], shortfall_epsilon=parts[1])
