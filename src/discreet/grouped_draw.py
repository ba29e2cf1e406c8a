"""From scores by group to a release of each group, drawn one after the other."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from discreet.grouped_release import GroupedRelease
from discreet.grouped_request import GroupedRequest
from discreet.mechanisms.base import Prepared
from discreet.progress import count_steps
from discreet.selection import Selection
from discreet.sources.base import Chosen
from discreet.tally import Tally
from discreet.topk import Drawn, choose_ranks, make_release


def draw_grouped_release(
    request: GroupedRequest,
    draw: Callable[[Prepared], Selection],
    noise: Callable[[Fraction], int] | None = None,
    private: bool = True,
) -> GroupedRelease:
    """The releases of all groups, drawn one after the other, and after that their counts."""
    source, requests = request.source, request.requests
    drawn = [Drawn() for _ in requests]
    if request.takes_all_items and not request.has_counts:
        # Groups of one domain have one source that knows it.
        sources = {id(each.source): each.source for each in requests}
        listed = {number: one.every_item() for number, one in sources.items()}
        every: list[Chosen] = [(listed[id(each.source)], []) for each in requests]
    else:
        with np.errstate(all="ignore"), count_steps("drawing", "groups", len(requests)) as advance:

            def choose(group: int, tally: Tally) -> Selection:
                advance(group)
                return choose_ranks(requests[group], draw, drawn[group], tally)

            every = source.select_items(choose, request.has_counts)
    releases = {
        key: make_release(each, chosen, one, noise, private)
        for key, each, chosen, one in zip(source.keys, requests, every, drawn, strict=True)
    }
    return GroupedRelease(releases, request.guarantee, source.each_user, source.groups_per_user, source.names)
