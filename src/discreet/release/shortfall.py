"""Release how good a selection is: by how much the best item left out may be ahead of the weakest item on the list.

For a released set y and scores x, D(y | x) = (largest score not in y) - (smallest score in y). D <= 0 means that y is a
true top-k. For a fixed y, adding a user moves each of the two extremes up by at most `up` and down by at most `down`,
so that D has sensitivity down + up, and 2 (down + up) under swap, whatever d, k and the number of a user's items are.
D is released with discrete Laplace noise after y; the cost adds to that of the selection by sequential composition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np

from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.exact.discrete import interval_half_width
from discreet.mechanisms.tally import Selection, Tally
from discreet.privacy import Sensitivity, positive
from discreet.release.counts import MISS_PROBABILITY, round_half_up, to_score
from discreet.release.release import Shortfall

AUTO = "auto"
AUTO_SHARE = Fraction(1, 10)
"""The share of epsilon that "auto" spends on the shortfall.

A larger share makes the list worse and its bound tighter. Over 704 cases (11 shapes of scores, k from 1 to 1,000,
epsilon from 0.01 to 3) the expected bound exceeds that of the best share of each case by 20.2 / epsilon on average with
1/10, by 32.3 / epsilon with 1/20 and by 35.0 / epsilon with 1/5; the expected recall falls by 0.73, 0.35 and 2.00
percentage points. Shares that depend on k gain little or lose more recall: 19.7 / epsilon and 0.79 points with
1 / (4 + sqrt(k)), 16.1 / epsilon and 2.03 points with 1 / (1 + sqrt(k)). `python examples/shortfall_share.py` prints
the table.
"""


@dataclass(frozen=True)
class ShortfallMechanism:
    """The discrete Laplace mechanism of the shortfall; all of its fields are public.

    Attributes
    ----------
    grid
        The size of one step.
    rate
        The noise is n steps with probability proportional to exp(-rate |n|).
    epsilon
        The epsilon that the shortfall costs.
    between_steps
        True if scores may lie between two steps, so that D is up to half a step away from its rounded value.
    max_items_per_user
        The contribution bound of the scores, for the release to name; None without one.
    """

    grid: Fraction
    rate: Fraction
    epsilon: Fraction
    between_steps: bool = False
    max_items_per_user: int | None = None

    def add_noise(self, lead: Fraction, noise: Callable[[Fraction], int]) -> Shortfall:
        """Return the noisy shortfall of the exact lead D; `noise` draws a whole number for a rate."""
        # D is rounded once. Rounding the two scores separately could move D by a step more.
        steps, unit = round_half_up(lead, self.grid) + noise(self.rate), to_score(1, self.grid)
        wide, above = find_half_widths(self.rate)
        if self.between_steps:
            wide, above = wide + 1, above + 1
        return Shortfall(
            steps * unit,
            (steps - wide) * unit,
            (steps + wide) * unit,
            (steps + above) * unit,
            self.epsilon,
            self.max_items_per_user,
        )


@lru_cache(maxsize=256)
def find_half_widths(rate: Fraction) -> tuple[int, int]:
    """Return the steps from the noisy shortfall to the ends of its interval, and to its one-sided bound."""
    # P(N < -q) <= 5% is half of P(|N| > q) <= 10%.
    return interval_half_width(rate, MISS_PROBABILITY), interval_half_width(rate, 2 * MISS_PROBABILITY)


def make_shortfall_mechanism(
    sensitivity: Sensitivity,
    adjacency: str,
    grid: Fraction,
    epsilon: Fraction,
    between_steps: bool = False,
    max_items_per_user: int | None = None,
) -> ShortfallMechanism:
    """Return the mechanism of a shortfall at epsilon; `sensitivity` is that of adding one user."""
    rate = epsilon / shortfall_steps(sensitivity, adjacency, grid)
    return ShortfallMechanism(grid, rate, epsilon, between_steps, max_items_per_user)


def shortfall_steps(sensitivity: Sensitivity, adjacency: str, grid: Fraction) -> int:
    """Return the sensitivity of the rounded D in steps: ceil((down + up) / grid), and twice that under swap.

    A user who is replaced may leave one group for another, each of which then sees half of that, so that groups need
    nothing more.
    """
    steps = ceil(sensitivity.span / grid)
    return steps if adjacency == "add-remove" else 2 * steps


def find_lead(tally: Tally, selection: Selection) -> Fraction:
    """Return D exactly: the score of the first rank that is not selected minus that of the last rank that is.

    The selection is not empty, and has no subset that is still to be drawn.
    """
    first_left_out, last = selection.head, selection.head - 1
    if len(selection.ranks):
        chosen = np.sort(selection.draw_ranks())
        skipped = np.flatnonzero(chosen != np.arange(len(chosen)))
        first_left_out, last = int(skipped[0]) if len(skipped) else len(chosen), int(chosen[-1])
    return tally.gap(first_left_out, last)


def find_lead_of_found(largest: Iterable[int], released: list[int]) -> int:
    """Return D under partition selection: every item that nobody touched scores 0.

    `largest` are the largest scores of all items in the events in descending order, at least one more than are
    released; `released` are the scores of the released items.
    """
    # The scores left out are all scores without the released ones, whatever the items are.
    unmatched = Counter(released)
    left_out = 0
    for score in largest:
        if not unmatched[score]:
            left_out = max(0, score)
            break
        unmatched[score] -= 1
    return left_out - min(released)


def split_shortfall(
    epsilon: Fraction, shortfall: Any, grid: Fraction | None, k: int, d: int | None, where: str = ""
) -> tuple[Fraction, Fraction]:
    """Return what is left of epsilon for the rest of the release, and the epsilon of the shortfall.

    Raise unless the shortfall of k of d items on this grid can be released; `where` names a group.
    """
    if grid is None:
        raise InvalidTypeError(
            "scores must be of a type of whole numbers for a shortfall: round them, or use events with clip and "
            "resolution"
        )
    if k == d:
        raise InvalidValueError(
            f"shortfall must be left out where k is the number of items, {d:,}{where}: no item is left out that could "
            "be ahead of one on the list"
        )
    cost = parse_shortfall(shortfall)
    return (epsilon * (1 - AUTO_SHARE), epsilon * AUTO_SHARE) if cost is None else (epsilon, cost)


def parse_shortfall(shortfall: Any) -> Fraction | None:
    """Return the epsilon of the shortfall beside the others, or None for "auto", which takes its share of epsilon."""
    return None if isinstance(shortfall, str) and shortfall == AUTO else positive(shortfall, "shortfall")
