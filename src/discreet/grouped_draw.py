"""From scores by group to a release of each group, drawn one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from discreet.grouped_release import GroupedRelease
from discreet.grouped_request import GroupedRequest
from discreet.mechanisms.base import Prepared
from discreet.progress import count_steps
from discreet.request import Request
from discreet.selection import Selection
from discreet.sources.base import Chosen
from discreet.tally import Tally
from discreet.topk import Drawn, make_release, select_from


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

            def choose(group: int, tallies: Sequence[Tally]) -> Iterator[Selection]:
                some = requests[group : group + len(tallies)]
                for i, prepared in enumerate(_prepare_each(some, tallies), group):
                    advance(i)
                    yield select_from(requests[i], draw, drawn[i], prepared)

            every = source.select_items(choose, request.has_counts)
    releases = {
        key: make_release(each, chosen, one, noise, private)
        for key, each, chosen, one in zip(source.keys, requests, every, drawn, strict=True)
    }
    return GroupedRelease(releases, request.guarantee, source.each_user, source.groups_per_user, source.names)


def _prepare_each(requests: Sequence[Request], tallies: Sequence[Tally]) -> Sequence[Prepared | None]:
    """The mechanism on each of some groups, at once where their terms are the same; None where all is selected."""
    terms = requests[0].guarantee
    if any(each.guarantee is not terms or each.takes_all_items for each in requests):
        return [each.prepare_draw(tally) for each, tally in zip(requests, tallies, strict=True)]
    return terms.mechanism.prepare_each(tallies, requests[0].k, terms.selection_epsilon, terms.sensitivity)
