"""Goals that a release is judged by, in terms of ranks, and confidence bounds for sampled probabilities.

A released set has h, the number of best ranks it holds before the first one it lacks, and t, its worst rank, from 1;
most goals are regions h >= h0, t <= t0. Recall counts the released items that are right: those that score at least as
much as the k-th best, so of items tied with the k-th any is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, lgamma, log, log1p
from typing import Any

import numpy as np
from flint import arb

from discreet.errors import InvalidValueError, quote
from discreet.exact.ball import precision
from discreet.mechanisms.tally import Tally
from discreet.privacy import exact
from discreet.text import decimal

GOALS = ("top", "great", "good", "optimal", "recall")
"""The names of the goals."""

Region = tuple[int, int]
"""The least h and the largest t of a goal, or h and t of a set."""

_BITS = 128
"""The working precision, ample for results in double precision."""

_MOST_TRIES, _NARROW, _BEYOND = 100, 2.0**-46, 1e-3
"""Limits of the root search: its steps, its relative width, and the share by which a Newton step overshoots."""

_LEAST_EXPECTED = 5.0
"""Outcomes expected less often than this are pooled: below it the chi-square approximation is poor."""


@dataclass(frozen=True)
class Hits:
    """The number of released items among the best `right` ranks, as a goal.

    Attributes
    ----------
    right
        The number of right ranks: all that score at least as much as the k-th.
    least
        None to ask for the expected share of k; otherwise ask for the probability of at least this many hits.
    """

    right: int
    least: int | None = None

    def rate(self, hits: int, k: int) -> float:
        """Return the value of a number of hits, from 0 to 1."""
        return hits / k if self.least is None else float(hits >= self.least)


Wanted = Region | Hits
"""A goal: a region, whose probability is asked for, or hits."""


def goals(tally: Tally, k: int, share: Fraction | None = None) -> dict[str, Wanted]:
    """Return the goals for k of d items; recall is the expected share, or the probability of at least `share`."""
    d = tally.d
    great, good = (ceil(k / 10), min(d, 11 * k // 10)), (ceil(k / 100), min(d, 3 * k // 2))
    right = count_right_ranks(tally, k)
    optimal = (k, k)
    if right > k:
        # Any of the items tied with the k-th may be released.
        optimal = (_first(lambda rank: tally.gap(rank, k - 1) == 0, 0, k - 1), right)
    recall = Hits(right, None if share is None else ceil(share * k))
    return {"top": (k, k), "great": great, "good": good, "optimal": optimal, "recall": recall}


def count_right_ranks(tally: Tally, k: int) -> int:
    """Return the number of items that score at least as much as the k-th."""
    if k == tally.d or tally.gap(k - 1, k) > 0:
        return k
    return _first(lambda rank: tally.gap(k - 1, rank) > 0, k, tally.d)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first rank in [low, high) at which a monotone condition holds, or `high`."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def is_reached(wanted: Wanted, ranks: Any, k: int) -> float:
    """Return 1 if a set of ascending ranks reaches the goal and 0 if not, or its share of right ranks."""
    if isinstance(wanted, Hits):
        return wanted.rate(int(np.searchsorted(ranks, wanted.right)), k)
    h, t = describe_ranks(ranks)
    return float(h >= wanted[0] and t <= wanted[1])


def describe_ranks(ranks: Any) -> Region:
    """Return (h, t) of a set of ascending ranks."""
    missing = np.flatnonzero(ranks != np.arange(len(ranks)))
    return int(missing[0]) if len(missing) else len(ranks), int(ranks[-1]) + 1


def check_goal(goal: Any, share: Any) -> Fraction | None:
    """Return the share that must be right, exactly; raise for an unknown goal, or a share without the goal recall."""
    if goal not in GOALS:
        raise InvalidValueError(f"goal must be one of {', '.join(GOALS)}, not {quote(goal)}")
    if share is not None and goal != "recall":
        raise InvalidValueError(f"share must be left out with the goal {goal}: it says how much of recall is enough")
    return check_share(share)


def check_share(share: Any) -> Fraction | None:
    """Return the share of the list that must be right, exactly, or None for the expected share."""
    if share is None:
        return None
    number = exact(share, "share")
    if not 0 < number <= 1:
        raise InvalidValueError(f"share must be above 0 and at most 1, not {quote(share)}")
    return number


def name_goal(goal: str, share: Fraction | None) -> str:
    """Return the name of a goal in a table: for recall with a share, that share."""
    return goal if goal != "recall" or share is None else f"{decimal(share)} right"


def split_edges(wanted: Iterable[Wanted]) -> list[int]:
    """Return the worst ranks t, from 0, at which some goal changes."""
    return sorted({one.right if isinstance(one, Hits) else one[1] for one in wanted})


def check_confidence(value: Any) -> Fraction:
    """Return a confidence, exactly."""
    number = exact(value, "confidence")
    if not Fraction(1, 2) <= number < 1:
        raise InvalidValueError(f"confidence must be from 0.5 to less than 1, not {quote(value)}")
    return number


def draws_needed(half: float, alpha: float) -> int:
    """Return the draws for which an average in [0, 1] is off by `half` on one side with chance alpha (Hoeffding)."""
    return ceil(log(1.0 / alpha) / (2.0 * half**2))


def log_odds(probability: float) -> float:
    """Return log(p / (1 - p)), with p clipped to [1e-12, 1 - 1e-12]."""
    inside = min(max(probability, 1e-12), 1.0 - 1e-12)
    return log(inside) - log1p(-inside)


def lower_bound(hits: int, draws: int, alpha: float) -> float:
    """Return a lower bound on the probability of a hit, with confidence 1 - alpha (Clopper and Pearson)."""
    if hits == 0:
        return 0.0
    # Pr[at least `hits` of `draws`] = I_p(hits, draws - hits + 1) rises with p and reaches alpha at the bound.
    return _crossing(hits, draws - hits + 1, alpha)[0]


def upper_bound(hits: int, draws: int, alpha: float) -> float:
    """Return an upper bound on the probability of a hit, with confidence 1 - alpha (Clopper and Pearson)."""
    if hits == draws:
        return 1.0
    # Pr[at most `hits` of `draws`] = 1 - I_p(hits + 1, draws - hits) falls to alpha at the bound.
    return _crossing(hits + 1, draws - hits, 1.0 - alpha)[1]


@lru_cache(maxsize=256)
def _crossing(a: int, b: int, level: float) -> tuple[float, float]:
    """Return an interval around the p at which the incomplete beta function I_p(a, b) reaches a level.

    Balls decide on which side a p is, so the steps affect the speed and not the result.
    """
    low, high, p = 0.0, 1.0, a / (a + b)
    with precision(_BITS):
        for _ in range(_MOST_TRIES):
            ball = arb(p).beta_lower(a, b, regularized=True)
            if ball < level:
                low = p
            elif ball > level:
                high = p
            else:
                break
            if high - low <= _NARROW * high:
                break
            # Newton's method for the log of the smaller tail, a little beyond the root so that both ends move.
            share = float(ball.mid())
            tail, wanted = (share, level) if level < 0.5 else (1.0 - share, 1.0 - level)
            if 0.0 < tail < 1.0:
                log_density = (a - 1) * log(p) + (b - 1) * log1p(-p) - (lgamma(a) + lgamma(b) - lgamma(a + b))
                slope = exp(min(log_density - log(tail), 700.0)) * (1.0 if level < 0.5 else -1.0)
                step = (log(wanted) - log(tail)) / slope if slope else 1.0
                p = p + step * (1.0 + _BEYOND) + (_NARROW / 4.0 if step > 0.0 else -_NARROW / 4.0) * p
            else:
                p = -1.0
            p = p if low < p < high else (low + high) / 2.0
    return low, high


def fit(counts: Mapping[Any, int], law: Mapping[Any, float]) -> float:
    """Return the p-value of Pearson's chi-square test of counts against a law; 0 if an impossible outcome was seen."""
    if any(law.get(outcome, 0.0) == 0.0 for outcome in counts):
        return 0.0
    draws = sum(counts.values())
    cells: list[tuple[float, int]] = []
    rare, rare_seen = 0.0, 0
    for outcome, probability in law.items():
        expected, seen = draws * probability, counts.get(outcome, 0)
        if expected >= _LEAST_EXPECTED:
            cells.append((expected, seen))
        else:
            rare, rare_seen = rare + expected, rare_seen + seen
    if rare > 0.0:
        cells.append((rare, rare_seen))
    return chi_square_tail(sum((seen - expected) ** 2 / expected for expected, seen in cells), len(cells) - 1)


def chi_square_tail(statistic: float, freedom: int) -> float:
    """Return the probability that a chi-square variable exceeds a number."""
    if freedom == 0:
        return 1.0
    with precision(_BITS):
        return float(arb(statistic / 2.0).gamma_upper(arb(freedom / 2.0), regularized=True).mid())
