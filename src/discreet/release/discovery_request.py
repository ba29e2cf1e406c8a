"""Request and draw at most k items by partition selection: find items that nobody listed, then select among them.

Finding the items is (e1, delta)-private and the selection among them is e2-private; their composition is
(e1 + e2, delta)-private. With groups, each group has its share of e2, and of e1 and delta what its method says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.errors import InvalidValueError
from discreet.exact.entropy import Entropy
from discreet.mechanisms.partition_selection import PartitionSelection
from discreet.mechanisms.registry import DEFAULT
from discreet.mechanisms.tally import Tally
from discreet.mechanisms.weighted_discovery import WeightedDiscovery
from discreet.privacy import positive, whole_number
from discreet.release.counts import CountMechanism, check_counts, make_count_mechanism, split_budget
from discreet.release.grouped import AnyRelease, GroupedRelease
from discreet.release.guarantee import Guarantee
from discreet.release.release import Release
from discreet.release.request import (
    Asked,
    Drawn,
    Randomness,
    Request,
    Workload,
    check_group_mechanism,
    check_items,
    check_source_adjacency,
)
from discreet.release.shortfall import (
    ShortfallMechanism,
    find_lead_of_found,
    make_shortfall_mechanism,
    split_shortfall,
)
from discreet.sources.arrays.array import ArraySource
from discreet.sources.discovered import (
    Discovered,
    FoundItems,
    UnlistedGroups,
    UnlistedSnapshot,
    UnlistedSource,
)


@dataclass(frozen=True, eq=False, repr=False)
class DiscoveryRequest:
    """A request for partition selection; items and scores stay unread in the source.

    Attributes
    ----------
    source
        The source of the items and scores.
    k
        The largest number of items to release in each group.
    guarantee
        The guarantee of the whole release.
    share
        The guarantee of one group by itself; equal to `guarantee` without groups.
    count_mechanism
        The mechanism of the counts, or None without counts.
    shortfall_mechanism
        The mechanism of the shortfall, or None without one.
    """

    source: UnlistedSource
    k: int
    guarantee: Guarantee
    share: Guarantee
    count_mechanism: CountMechanism | None = None
    shortfall_mechanism: ShortfallMechanism | None = None
    d: ClassVar[None] = None
    requests: ClassVar[tuple[Request, ...]] = ()

    @property
    def groups(self) -> int | None:
        """The number of groups, or None without groups."""
        return len(self.source.keys) if isinstance(self.source, UnlistedGroups) else None

    @property
    def workload(self) -> Workload:
        """The workload, whose size is private: nothing public determines how long the release takes."""
        return Workload(False, 0, self.k, self.count_mechanism is not None)

    def describe(self) -> dict[str, Any]:
        """Return nothing: the source and the guarantee hold every public parameter."""
        return {}

    def draw(self, randomness: Randomness) -> AnyRelease:
        """Take a snapshot, draw the items to keep, look them up, and release the top-k of those in each group."""
        source, discovery, entropy = self.source, self.share.discovery, randomness.entropy
        assert discovery is not None  # every guarantee of a DiscoveryRequest has one
        with np.errstate(all="ignore"):
            needs_all = self.shortfall_mechanism is not None
            with source.snapshot(draw_key(entropy), with_uncounted=needs_all) as snapshot:
                found, method = find_items(snapshot, discovery, self.k, randomness)
                # One more than may be released: at least one of the largest scores is then left out.
                largest = snapshot.largest_scores(self.k + 1) if needs_all else [[] for _ in found]
            releases = [
                self._release_found(each, randomness, scores, method)
                for each, scores in zip(found, largest, strict=True)
            ]
        if not isinstance(source, UnlistedGroups):
            return releases[0]
        by_key = dict(zip(source.keys, releases, strict=True))
        return GroupedRelease(by_key, self.guarantee, source.each_user, source.groups_per_user, source.names)

    def _release_found(
        self, found: FoundItems, randomness: Randomness, largest: Sequence[int] = (), method: str | None = None
    ) -> Release:
        """Return the release of the kept items; at most k items are all released, without an order.

        The kept items and the method are the output of a private mechanism, so they may be public. `largest` are the
        k + 1 largest scores of all items, kept or not, where a shortfall is released.
        """
        grid, takes_all = self.source.grid, len(found.items) <= self.k
        kept = ArraySource(np.array(found.scores, np.int64), found.items, grid, grid)
        request = Request(kept, self.k, self.share, self.count_mechanism, None, self.shortfall_mechanism)
        released = found.scores
        items: list[Any]
        if takes_all:
            items, drawn = found.items, Drawn(scores=[score * grid for score in found.scores])
        else:
            with kept.snapshot() as snapshot:
                drawn = request.draw_selection(snapshot.tally, randomness)
                items = list(snapshot.items(drawn.selection))
                if self.shortfall_mechanism is not None:
                    ranks = drawn.selection.draw_ranks().tolist()
                    released = [int(snapshot.tally.exact(rank) / grid) for rank in ranks]
        counted, noise, mechanism = self.count_mechanism, randomness.noise, self.share.mechanism
        counts = None if counted is None or noise is None else counted.add_noise(items, drawn.scores, noise)
        order = items if mechanism.ordered and not takes_all else None
        listed = check_items(items, self.k, may_be_fewer=takes_all or mechanism.may_release_fewer)
        shortfall = None
        if self.shortfall_mechanism is not None and noise is not None and released:
            lead = find_lead_of_found(largest, released) * grid
            shortfall = self.shortfall_mechanism.add_noise(lead, noise)
        # There is a choice of a method for a mechanism without a choice alone.
        chosen = drawn.chosen if method is None else method
        return Release(listed, order, None, self.share, randomness.private, counts, self.k, chosen, shortfall)


def make_discovery_request(
    source: UnlistedSource, k: Any, epsilon: Any, discovered: Discovered | None = None, **terms: Any
) -> DiscoveryRequest:
    """Return the request for partition selection that the arguments of `top_k` describe; `terms` are `Asked`'s.

    `discovered` are terms of partition selection in place of those of the source.
    """
    asked = Asked(k, epsilon, **terms)
    if asked.sensitivity is not None:
        raise InvalidValueError("sensitivity must be left out, because the source knows its own")
    chosen, counts, split = asked.check_mechanism(), asked.counts, asked.split
    if chosen.releases_values:
        raise InvalidValueError(
            f"mechanism must not be {chosen!r} for items that are to be found: of those found a user may have touched "
            "any number, and its noise is for all scores together"
        )
    has_counts = counts is not None or split is not None
    if has_counts:
        check_counts(source.grid, counts, split)
    size = whole_number(k, "k", 1, 2**62, "2^62")
    neighbours = check_source_adjacency(source.adjacency, asked.adjacency)
    grouped = isinstance(source, UnlistedGroups)
    if grouped:
        check_group_mechanism(chosen, neighbours)
    groups = source.groups_per_user if isinstance(source, UnlistedGroups) else 1
    budget = positive(epsilon, "epsilon")
    rest = bound = Fraction(0)
    if asked.shortfall is not None:
        budget, bound = split_shortfall(budget, asked.shortfall, source.grid, size, None)
    if has_counts:
        budget, rest = split_budget(budget, budget, counts, split)
    sought = discovered or source.terms
    if grouped or chosen != DEFAULT:
        # The alternative to Gaussian noise is one list of the largest sums of shares, without an order.
        sought = sought.without_choice()
    found = sought.plan(size, budget, adjacency=neighbours, max_groups_per_user=groups)
    part, own = found.share_of_group(), source.sensitivity
    selection = (budget - found.epsilon) / groups
    # The cost of one group without finding its items.
    beside = selection + (rest + bound) / groups
    beside_rho = (rest / groups) ** 2 / 2 + (bound / groups) ** 2 / 2
    rho = chosen.zcdp(selection, size)
    limit, counts_share = own.under(neighbours), rest / groups
    share = Guarantee(
        part.epsilon + beside, neighbours, limit, chosen, part.compose_zcdp(rho) + beside_rho, counts_share, part,
        bound / groups,
    )  # fmt: skip
    whole = replace(
        share, epsilon=budget + rest + bound, zcdp=found.compose_zcdp(groups * rho) + groups * beside_rho,
        counts_epsilon=rest, discovery=found, shortfall_epsilon=bound,
    )  # fmt: skip
    counted, shortfall = None, None
    if rest:
        reach = own, neighbours, source.grid, size, None
        counted = make_count_mechanism(*reach, rest / groups, floor=own.down == 0, grouped=grouped)
    if bound:
        shortfall = make_shortfall_mechanism(own, neighbours, source.grid, bound / groups)
    return DiscoveryRequest(source, size, whole, share, counted, shortfall)


def find_items(
    snapshot: UnlistedSnapshot, discovery: PartitionSelection, k: int, randomness: Randomness
) -> tuple[list[FoundItems], str | None]:
    """Draw the items to keep in each group, look them up, and return them with the method if there was a choice.

    If the choice is for the alternative, they are those with the k largest noisy sums that reach its threshold.
    """
    other, noise = discovery.alternative, randomness.noise
    assert noise is not None, "a release has noise to draw"
    if other is not None and discovery.prefers_alternative(snapshot.count_hidden(), noise):
        shared = snapshot.take_shares()
        ((sums, items),) = shared.runs()
        if not len(sums):
            return [FoundItems([], [])], other.method
        tally = Tally.of_runs(sums.tolist(), items.tolist(), Fraction(1))
        return shared.items([other.keep(randomness.select(other.prepare(tally, k)))]), other.method
    kept = [discovery.sample_kept_ranks(randomness.entropy, users, items) for users, items in snapshot.runs()]
    return snapshot.items(kept), None if other is None else WeightedDiscovery.method


def draw_key(entropy: Entropy) -> str:
    """Draw the key of the hash that decides which items of a user count, one for each release."""
    return f"{entropy.bits(64):016x}"
