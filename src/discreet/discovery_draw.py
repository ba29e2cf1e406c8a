"""From items that nobody listed to a release: which of them are kept, and the top-k of those."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

from discreet.discovery_request import DiscoveryRequest
from discreet.exact.entropy import Entropy
from discreet.grouped_release import AnyRelease, GroupedRelease
from discreet.mechanisms.base import Prepared
from discreet.release import Release
from discreet.selection import Selection
from discreet.sources.arrays.array import ArraySource
from discreet.sources.base import Chosen
from discreet.sources.unlisted import FoundItems, UnlistedGroups
from discreet.tally import Tally
from discreet.topk import check_items

Draw = Callable[[Prepared], Selection]
Noise = Callable[[Fraction], int]


def draw_discovery_release(
    request: DiscoveryRequest, draw: Draw, noise: Noise | None, private: bool, entropy: Entropy
) -> AnyRelease:
    """The release of what is found and then selected by `draw`, by group where the request is."""
    source, discovery = request.source, request.share.discovery
    assert discovery is not None  # a request for items that nobody listed has one
    with np.errstate(all="ignore"):
        found = source.find_items(draw_key(entropy), partial(discovery.sample_kept_ranks, entropy))
        releases = [_release_found(request, each, draw, noise, private) for each in found]
    if not isinstance(source, UnlistedGroups):
        return releases[0]
    by_key = dict(zip(source.keys, releases, strict=True))
    return GroupedRelease(by_key, request.guarantee, source.each_user, source.groups_per_user, source.names)


def draw_key(entropy: Entropy) -> str:
    """Returns a key for the hash that decides which items of a user count; one for a release and its snapshot."""
    return f"{entropy.bits(64):016x}"


def _release_found(
    request: DiscoveryRequest, found: FoundItems, draw: Draw, noise: Noise | None, private: bool
) -> Release:
    """The release of the items that were kept: all of them where they are no more than k, and then in no order."""
    takes_all = len(found.items) <= request.k
    chosen: list[str | None] = [None]
    items, scores = _take_all(request, found) if takes_all else _select(request, found, draw, chosen)
    has_order = request.share.mechanism.ordered and not takes_all
    counted = request.count_mechanism
    counts = None if counted is None or noise is None else counted.add_noise(list(items), scores, noise)
    order = list(items) if has_order else None
    listed = check_items(items, request.k, may_be_fewer=takes_all or request.share.mechanism.may_release_fewer)
    return Release(listed, order, None, request.share, private, counts, request.k, chosen[-1])


def _take_all(request: DiscoveryRequest, found: FoundItems) -> Chosen:
    return found.items, [score * request.source.grid for score in found.scores]


def _select(request: DiscoveryRequest, found: FoundItems, draw: Draw, chosen: list[str | None]) -> Chosen:
    """What is selected of the items that were kept, which are as good as public, as of scores that are handed in.

    Which candidate it is by is noted in `chosen`, where the mechanism has any.
    """
    promised, grid = request.share, request.source.grid

    def choose(tally: Tally) -> Selection:
        made = promised.mechanism.prepare(tally, request.k, promised.selection_epsilon, promised.sensitivity)
        selection = draw(made)
        chosen.append(selection.chosen)
        return selection

    scores = ArraySource(np.array(found.scores, np.int64), found.items, grid, grid)
    return scores.select_items(choose, scored=request.count_mechanism is not None)
