"""Noise on all scores where a user is held to few items: what it needs, with what is lost by holding them to it.

Fewer items of a user mean less noise, and scores that are not the true ones. A list from such scores is judged by the
scores of all items, so that both are in what is told. Computed from the events, so NOT private.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from discreet.analysis.comparison import Choice, ItemBound
from discreet.analysis.goals import GOALS, count_right_ranks
from discreet.analysis.joint_sets import make_analysis_request
from discreet.analysis.meters import MOST_VALUES
from discreet.analysis.search import MOST, Aim, Case, Scores, Search
from discreet.analysis.utility import Utility, at_epsilon
from discreet.mechanisms.histogram import Histogram
from discreet.sources.clipped import ClippableSource, ClippedSource

BOUNDS = (1, 2, 3, 5, 10, 30, 100)
"""How many items of a user are tried; the list is public, so that a plan says nothing by what it tries."""


def compare_bounds(
    read: Scores, k: int, aim: Aim, epsilon: Fraction | None, adjacency: Any, near: Fraction | None
) -> Iterator[tuple[Choice, Case]]:
    """What the histogram needs on events that have no bound yet, for each of several bounds; nothing for other scores.

    Parameters
    ----------
    read, k, aim, adjacency
        The scores, how many items are asked for, what is to be reached, and what a release must protect.
    epsilon
        Also tell what is reached with this one.
    near
        About which epsilon to look first.
    """
    source = read.source
    if not isinstance(source, ClippableSource) or not source.can_be_clipped or source.d > MOST_VALUES:
        return
    for most in BOUNDS:
        clipped = source.count_clipped(most)
        case = make_clipped_case(clipped, k, 1 if epsilon is None else epsilon, adjacency)
        needed = find_epsilon(case, aim, near)
        near = needed or near
        lost = clipped.truth.count_lost(case.tally, k, count_right_ranks(case.judged_by, k))
        yield Choice(Histogram(), {aim.goal: needed}, _reach(case, aim, epsilon), ItemBound(most, lost)), case
        if clipped.keeps_all:
            # More items of a user would only mean more noise.
            return


def make_clipped_case(source: ClippedSource, k: int, epsilon: Any, adjacency: Any = None) -> Case:
    """A list from the scores with a bound, judged by the scores of all items."""
    return Case(make_analysis_request(source, k, epsilon, Histogram(), None, adjacency), source.tally(), source.truth)


def find_epsilon(case: Case, aim: Aim, near: Fraction | None) -> Fraction | None:
    """The smallest epsilon with which a list reaches a goal; None where even hardly any noise is too much."""
    search = Search.of(case, aim)
    return search.smallest(near or Fraction(1)) if search.is_enough(MOST) else None


def _reach(case: Case, aim: Aim, epsilon: Fraction | None) -> Utility | None:
    return None if epsilon is None else at_epsilon(case.meter(GOALS, aim.share), epsilon, aim.share)
