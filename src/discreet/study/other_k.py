"""Another number of items that costs far less than the one asked for, because the scores have a gap there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet.analysis.search import Aim, Case, Search, hardest_case

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

    def ask_for(size: int) -> Case:
        return replace(case, request=replace(case.request, k=size))

    def need(size: int) -> Fraction | None:
        found = hardest_case([ask_for(size)], aim, needed)
        return None if found is None else found[0]

    cheap = [other for other in widest if Search.of(ask_for(other), aim).is_enough(_MUCH_LESS * needed)]
    costs = {other: cost for other in cheap if (cost := need(other)) is not None}
    # Where the scores fall evenly, fewer items always cost less: it is a gap where one fewer would cost no less.
    found = [OtherK(other, cost) for other, cost in costs.items() if other == 1 or (need(other - 1) or cost) >= cost]
    return min(found, key=lambda one: (one.epsilon, abs(one.k - k)), default=None)
