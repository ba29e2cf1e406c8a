"""DiscoveryRequest: at most k items that nobody listed, found first and then selected, and what that promises.

Finding them is (e1, delta)-private, the selection among those found is e2-private, and so the two are (e1 + e2, delta).
With groups each has its share of all three.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.errors import InvalidValueError
from discreet.exact.entropy import Entropy
from discreet.privacy import positive, whole_number
from discreet.release.counts import CountMechanism, check_counts, make_count_mechanism, split_budget
from discreet.release.grouped import AnyRelease, GroupedRelease
from discreet.release.guarantee import Guarantee
from discreet.release.padding import Workload
from discreet.release.release import Release
from discreet.release.request import (
    Asked,
    Drawn,
    Randomness,
    Request,
    check_group_mechanism,
    check_items,
    check_source_adjacency,
)
from discreet.sources.arrays.array import ArraySource
from discreet.sources.discovered import FoundItems, UnlistedGroups, UnlistedSource


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

    def draw(self, randomness: Randomness) -> AnyRelease:
        """Take a snapshot, draw which items are kept, look them up, and release the top-k of those in each group."""
        source, discovery, entropy = self.source, self.share.discovery, randomness.entropy
        assert discovery is not None  # a request for items that nobody listed has one
        with np.errstate(all="ignore"):
            with source.snapshot(draw_key(entropy)) as snapshot:
                kept = [discovery.sample_kept_ranks(entropy, users, items) for users, items in snapshot.runs()]
                found = snapshot.items(kept)
            releases = [self._release_found(each, randomness) for each in found]
        if not isinstance(source, UnlistedGroups):
            return releases[0]
        by_key = dict(zip(source.keys, releases, strict=True))
        return GroupedRelease(by_key, self.guarantee, source.each_user, source.groups_per_user, source.names)

    def _release_found(self, found: FoundItems, randomness: Randomness) -> Release:
        """Return the release of the kept items: of all of them, without an order, where they are at most k.

        The kept items are the output of a private mechanism, so their scores are selected from as any others.
        """
        grid, takes_all = self.source.grid, len(found.items) <= self.k
        kept = ArraySource(np.array(found.scores, np.int64), found.items, grid, grid)
        request = Request(kept, self.k, self.share, self.count_mechanism)
        items: list[Any]
        if takes_all:
            items, drawn = found.items, Drawn(scores=[score * grid for score in found.scores])
        else:
            with kept.snapshot() as snapshot:
                drawn = request.draw_ranks(snapshot.tally, randomness)
                items = list(snapshot.items(drawn.selection))
        counted, noise, mechanism = self.count_mechanism, randomness.noise, self.share.mechanism
        counts = None if counted is None or noise is None else counted.add_noise(items, drawn.scores, noise)
        order = items if mechanism.ordered and not takes_all else None
        listed = check_items(items, self.k, may_be_fewer=takes_all or mechanism.may_release_fewer)
        return Release(listed, order, None, self.share, randomness.private, counts, self.k, drawn.chosen)


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


def draw_key(entropy: Entropy) -> str:
    """Draw a key for the hash that decides which items of a user count; one for a release and its snapshot."""
    return f"{entropy.bits(64):016x}"
