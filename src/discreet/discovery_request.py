"""DiscoveryRequest: at most k items that nobody listed, found first and then selected, and what that promises.

Finding them is (e1, delta)-private, the selection among those found is e2-private, and so the two are (e1 + e2, delta).
With groups each has its share of all three.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from discreet.counts import CountMechanism, check_counts, make_count_mechanism, split_budget
from discreet.errors import InvalidValueError
from discreet.guarantee import Guarantee
from discreet.padding import Workload
from discreet.privacy import positive, whole_number
from discreet.request import Asked, check_group_mechanism, check_source_adjacency
from discreet.sources.unlisted import UnlistedGroups, UnlistedSource


@dataclass(frozen=True, eq=False, repr=False)
class DiscoveryRequest:
    """What a release of items that nobody listed is asked for; they are in the source alone, unread.

    Attributes
    ----------
    source
        Where the items and scores come from.
    k
        How many items to release at most, in each group.
    guarantee
        What the release promises in all.
    share
        What the release of one group promises; the same where there are no groups.
    count_mechanism
        What makes the counts of the release, or None where it has none.
    """

    source: UnlistedSource
    k: int
    guarantee: Guarantee
    share: Guarantee
    count_mechanism: CountMechanism | None = None

    @property
    def groups(self) -> int | None:
        """How many groups there are, or None."""
        return len(self.source.keys) if isinstance(self.source, UnlistedGroups) else None

    @property
    def workload(self) -> Workload:
        """What says how long the release takes: nothing that is public does."""
        return Workload(False, 0, self.k, self.count_mechanism is not None)


def make_discovery_request(source: UnlistedSource, k: Any, epsilon: Any, **terms: Any) -> DiscoveryRequest:
    """The request that the arguments of `top_k` describe for items that nobody listed; the terms are `Asked`'s."""
    asked = Asked(k, epsilon, **terms)
    if asked.sensitivity is not None:
        raise InvalidValueError("sensitivity must be left out, because the source knows its own")
    chosen, counts, split = asked.check_mechanism(), asked.counts, asked.split
    if chosen.releases_values:
        raise InvalidValueError(
            f"mechanism must not be {chosen!r} for items that are to be found: of those found a user may have touched "
            "any number, and its noise is for all scores together"
        )
    check_counts(source.grid, counts, split)
    size = whole_number(k, "k", 1, 2**62, "2^62")
    neighbours = check_source_adjacency(source.adjacency, asked.adjacency)
    grouped = isinstance(source, UnlistedGroups)
    if grouped:
        check_group_mechanism(chosen, neighbours)
    groups = source.groups_per_user if isinstance(source, UnlistedGroups) else 1
    budget, rest = split_budget(positive(epsilon, "epsilon"), counts, split, everything=False)
    found = source.terms.plan(size, budget, adjacency=neighbours, max_groups_per_user=groups)
    part, own = found.share_of_group(), source.sensitivity
    selection = (budget - found.epsilon) / groups
    rho = part.zcdp + chosen.zcdp(selection, size) + (rest / groups) ** 2 / 2
    limit = own.under(neighbours)
    share = Guarantee((budget + rest) / groups, neighbours, limit, chosen, rho, rest / groups, part)
    whole = replace(share, epsilon=budget + rest, zcdp=groups * rho, counts_epsilon=rest, discovery=found)
    if not rest:
        return DiscoveryRequest(source, size, whole, share)
    reach = own, neighbours, source.grid, size, None
    counted = make_count_mechanism(*reach, rest / groups, floor=own.down == 0, grouped=grouped)
    return DiscoveryRequest(source, size, whole, share, counted)
