"""Another number of items that costs far less than the one asked for, because the scores have a gap there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet.analysis.search import Aim, Case, Search, find_number_below

_GAPS = 3
_MUCH_LESS = Fraction(7, 10)
"""Another k is worth telling where it costs this much or less."""


@dataclass(frozen=True)
class OtherK:
    """Another number of items that costs far less, because the scores have a gap there."""

    k: int
    epsilon: Fraction


def find_other_k(case: Case, aim: Aim, needed: Fraction) -> OtherK | None:
    """The k from half of this one to half as many again that costs least, if that is much less: tried at large gaps."""
    tally, k = case.judged_by, case.request.k
    around = np.arange(max(1, k // 2), min(tally.d - 1, k + k // 2) + 1)
    gaps = tally.gaps(around - 1, around, Fraction(1))
    widest = [int(one) for one in around[np.argsort(-gaps, kind="stable")][:_GAPS] if one != k]
    best: OtherK | None = None
    for other in sorted(widest, key=lambda one: abs(one - k)):
        enough = _MUCH_LESS * needed if best is None else best.epsilon
        search = _search_for(case, other, aim)
        if search.is_enough(enough):
            cost = search.smallest(enough)
            if cost is not None and (best is None or cost < best.epsilon) and _is_gap(case, other, aim, cost):
                best = OtherK(other, cost)
    return best


def _search_for(case: Case, k: int, aim: Aim) -> Search:
    return Search.of(replace(case, request=replace(case.request, k=k)), aim)


def _is_gap(case: Case, k: int, aim: Aim, cost: Fraction) -> bool:
    """Whether one item fewer would cost no less: where the scores fall evenly, fewer items always do."""
    return k == 1 or not _search_for(case, k - 1, aim).is_enough(find_number_below(cost))
