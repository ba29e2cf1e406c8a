"""Quantiles of the true shortfall max(D, 0) of a release: the lead of the best item left out over the weakest released.

A set that holds the best h ranks, lacks the next one and has worst rank t, both from 0, has D = x[h] - x[t]. So the
classes of the canonical mechanism have one D each. For a race, P(D <= v) is a sum of probabilities of regions: with
e(h) the number of ranks that score at most v below rank h, and R(h, e) the probability that all ranks below h are
released and none from e on,

    P(D <= v) = R(k, k) + sum over h < k with e(h) > k of R(h, e(h)) - R(h + 1, e(h)),

in which neighbouring h with the same e cancel. Other mechanisms, and races with many such regions, are drawn from; an
order statistic of the draws is then an upper confidence bound on the quantile.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise
from math import ceil, log
from typing import Any

import numpy as np

from discreet.analysis.canonical_odds import Rows
from discreet.analysis.goals import Region, describe_ranks, lower_bound
from discreet.analysis.meters import make_race_odds
from discreet.analysis.race_odds import RaceOdds
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.entropy import as_entropy
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.tally import Tally
from discreet.text import count_with_commas, decimal, decimal_above, repr_with_decimals

_MOST_COMPUTED = 10
"""Up to this k the shortfall of a race is computed, in about 2 s: each step of a search has up to 2 k - 1 integrals."""

_GOAL = 1e-5
"""The error wanted of the probability of a region."""

_ROW_GOAL = 1e-9
"""The error wanted of the probabilities of rows of classes."""

_DRAWS, _SURE = 300, Fraction(99, 100)
"""The draws of a plan without a formula, and the confidence of both bounds; they need 104."""

MEDIAN, MOST = Fraction(1, 2), Fraction(19, 20)
"""The levels of the two quantiles."""

_ROUNDING = 1.0 + 2.0**-48
"""Sums of two gaps are right to a relative 2^-49, so that equal ones are at most this factor apart."""


@dataclass(frozen=True, repr=False)
class ShortfallQuantiles:
    """Quantiles of the true shortfall max(D, 0) of a release, in units of the scores.

    Attributes
    ----------
    median
        The shortfall is at most this in half of all releases.
    most
        The shortfall is at most this in 19 of 20 releases.
    confidence
        None if both are computed. If releases were drawn, the probability that both are at least the true quantiles.
    """

    median: Fraction
    most: Fraction
    confidence: Fraction | None = None

    def __repr__(self) -> str:
        return repr_with_decimals(self, decimal)

    def to_dict(self) -> dict[str, Any]:
        """Return the quantiles as JSON data; exact numbers are strings."""
        sure = None if self.confidence is None else str(self.confidence)
        return {"median": str(self.median), "most": str(self.most), "confidence": sure}

    def describe(self, unit: str = "") -> str:
        """Return both quantiles in a few words.

        Examples
        --------
        >>> ShortfallQuantiles(Fraction(0), Fraction(40)).describe(" people")
        'typically 0, at most 40 people in 19 of 20 releases'
        """
        median, most = (
            count_with_commas(int(figure)) if figure.denominator == 1 else decimal_above(figure)
            for figure in (self.median, self.most)
        )
        drawn = "" if self.confidence is None else ", by draws"
        return f"typically {median}, at most {most}{unit} in 19 of 20 releases{drawn}"


def find_shortfall(
    mechanism: Mechanism, prepared: Any, judged_by: Tally, standings: Ranks | None = None
) -> ShortfallQuantiles | None:
    """Return the quantiles by a formula as `compute_shortfall` does, or else from draws, with the same seed each time.

    None if too many of the draws are empty.
    """
    computed = compute_shortfall(mechanism, prepared, judged_by, standings)
    if computed is not None:
        return computed
    entropy = as_entropy(random.Random(0))  # noqa: S311  # nothing here is released
    drawn = (prepared.draw(entropy) for _ in range(_DRAWS))
    ranked = drawn if standings is None else (standings[ranks] for ranks in drawn)
    return find_shortfall_of_draws(judged_by, ranked, float(1 - _SURE) / 2.0, _SURE)


def compute_shortfall(
    mechanism: Mechanism, prepared: Any, judged_by: Tally, standings: Ranks | None = None
) -> ShortfallQuantiles | None:
    """Return the quantiles for a prepared mechanism by a formula; None if there is none, or it takes too long.

    `judged_by` are the scores that decide, and `standings` the rank by them of each rank of the scores that are drawn
    from, if those are others.
    """
    if mechanism.form is Form.CLASSES and standings is None:
        # A row holds worst ranks whose gain hardly differs; the last of them has the largest lead.
        rows = Rows.of(prepared, {}, _ROW_GOAL)
        return find_shortfall_of_classes(judged_by, rows.h, rows.t2, rows.probability, rows.top, rows.error)
    if mechanism.form is Form.RACE and prepared.k <= _MOST_COMPUTED:
        return find_shortfall_of_race(judged_by, make_race_odds(prepared, _GOAL, standings))
    return None


def find_shortfall_of_classes(
    tally: Tally, h: Ranks, t: Ranks, probability: Floats, top: float, error: float
) -> ShortfallQuantiles:
    """Return the quantiles from classes of sets (h, t), from 0, with their probabilities, and that of the top-k."""
    order = np.argsort(tally.gaps(h, t, Fraction(1)), kind="stable")
    reached = top + np.cumsum(probability[order])

    def find(level: Fraction) -> Fraction:
        # The error is on the safe side.
        wanted = float(level) + error
        if top >= wanted:
            return Fraction(0)
        place = int(order[min(int(np.searchsorted(reached, wanted)), len(order) - 1)])
        return tally.gap(int(h[place]), int(t[place]))

    return ShortfallQuantiles(find(MEDIAN), find(MOST))


def find_shortfall_of_race(tally: Tally, odds: RaceOdds) -> ShortfallQuantiles:
    """Return the quantiles for the k largest of independent noisy values, judged by the scores of a tally.

    A quantile is the least lead v with P(D <= v) at or above the level by more than the error of the integrals.
    """
    leads, chance_of = _Leads(tally, odds.k), cache(odds.rate)

    def reaches(lead: float, level: Fraction) -> bool:
        chances = [(sign, chance_of(region)) for sign, region in list_regions(leads.count_within(lead), odds.k)]
        return sum(sign * each.value - each.error for sign, each in chances) >= float(level)

    def find(level: Fraction, low: float) -> float:
        """Return the least lead that reaches the level, from `low` on."""
        if reaches(low, level):
            return low
        high = leads.largest
        while (least := leads.next_above(low)) < high:
            middle = max(least, (low + high) / 2.0)
            if reaches(middle, level):
                # There is no lead between this one and the middle.
                found = leads.last_upto(middle)
                if found >= high:
                    break
                high = found
            else:
                low = middle
        return high

    median = find(MEDIAN, 0.0)
    return ShortfallQuantiles(Fraction(median), Fraction(find(MOST, median)))


@dataclass(frozen=True, eq=False)
class _Leads:
    """The leads x[h] - x[t] that a set of k ranks can have, for h < k <= t, as floats."""

    tally: Tally
    k: int

    @cached_property
    def _below(self) -> Floats:
        """The distance of each rank from the best one: x[h] - x[t] <= v if and only if below[t] <= below[h] + v."""
        return self.tally.gaps(np.zeros(self.tally.d, np.int64), np.arange(self.tally.d), Fraction(1))

    @property
    def largest(self) -> float:
        """Return the largest lead."""
        return float(self._below[-1])

    def count_within(self, lead: float) -> Ranks:
        """Return, for each of the best k ranks, the number of ranks that score at most `lead` below it."""
        return np.searchsorted(self._below, (self._below[: self.k] + lead) * _ROUNDING, side="right")

    def next_above(self, lead: float) -> float:
        """Return the least lead above a number, or the largest of all."""
        after = np.maximum(self.count_within(lead), self.k)
        h = np.flatnonzero(after < self.tally.d)
        return float((self._below[after[h]] - self._below[h]).min(initial=self.largest))

    def last_upto(self, lead: float) -> float:
        """Return the largest lead up to a number, or 0."""
        last = self.count_within(lead) - 1
        h = np.flatnonzero(last >= self.k)
        return float((self._below[last[h]] - self._below[h]).max(initial=0.0))


def list_regions(ends: Ranks, k: int) -> list[tuple[int, Region]]:
    """Return the regions, with signs, whose probabilities add up to P(D <= v).

    `ends` is, for each rank below k, the number of ranks that score at most v below it; it does not decrease.
    """
    starts = np.flatnonzero(np.append(True, ends[1:] > ends[:-1]))
    runs = [(int(h), int(ends[h])) for h in starts if ends[h] > k]
    if not runs:
        return [(1, (k, k))]
    # The last run ends with R(k, e), which is R(k, k): both sets of all best k ranks cancel.
    regions = [(1, runs[0])]
    for (_, end), run in pairwise(runs):
        regions += [(-1, (run[0], end)), (1, run)]
    return regions


def count_draws_for_shortfall(alpha: float) -> int:
    """Return the least number of draws whose largest is at least the 95% quantile except with probability alpha."""
    return ceil(log(alpha) / log(MOST))


def find_shortfall_of_draws(
    tally: Tally, draws: Iterable[Ranks], alpha: float, confidence: Fraction
) -> ShortfallQuantiles | None:
    """Return upper bounds on the quantiles from drawn ranks, each of which fails with probability alpha.

    Empty selections have no shortfall and are left out; None if too few remain for a bound.
    """
    regions = [describe_ranks(np.sort(ranks)) for ranks in draws if len(ranks)]
    if len(regions) < count_draws_for_shortfall(alpha):
        return None
    leads = sorted(max(tally.gap(h, t - 1), Fraction(0)) if h < t else Fraction(0) for h, t in regions)

    def find(level: Fraction) -> Fraction:
        # The m-th smallest of n draws is below the quantile only if m of n are, with probability P(Bin(n, level) >= m).
        low, high = 0, len(leads)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if lower_bound(middle, len(leads), alpha) >= level else (middle, high)
        return leads[high - 1]

    return ShortfallQuantiles(find(MEDIAN), find(MOST), confidence)
