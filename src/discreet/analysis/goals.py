"""What is good enough: the goals that a release is judged by, in terms of ranks.

A released set is described by h, how many of the best ranks it holds before the first one that it lacks, and t, its
worst rank, counted from 1; most goals are h >= some h0 and t <= some t0. Recall counts the released items that are
right. An item is right where it scores at least as much as the k-th best: of items tied with the k-th any is.
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

# Bounds on a probability from counts, and the tail of chi-square, by balls: no table, no rounding to trust.

_BITS = 128
_MOST_TRIES, _NARROW, _BEYOND = 100, 2.0**-46, 1e-3
_LEAST = 5.0
"""Outcomes expected less often than this are counted together, so that the chi-square law is a fair one."""


def check_confidence(value: Any) -> Fraction:
    """A confidence, exactly."""
    number = exact(value, "confidence")
    if not Fraction(1, 2) <= number < 1:
        raise InvalidValueError(f"confidence must be from 0.5 to less than 1, not {quote(value)}")
    return number


def draws_needed(half: float, alpha: float) -> int:
    """How many draws keep an average of numbers from 0 to 1 within `half` on one side, but for alpha (Hoeffding)."""
    return ceil(log(1.0 / alpha) / (2.0 * half**2))


def log_odds(probability: float) -> float:
    """The logarithm of p / (1 - p), kept within what floats tell apart."""
    inside = min(max(probability, 1e-12), 1.0 - 1e-12)
    return log(inside) - log1p(-inside)


def lower_bound(hits: int, draws: int, alpha: float) -> float:
    """A number below the probability of a hit, with confidence 1 - alpha (Clopper and Pearson)."""
    if hits == 0:
        return 0.0
    # Pr[at least `hits` of `draws`] = I_p(hits, draws - hits + 1) rises with p and reaches alpha at the bound.
    return _crossing(hits, draws - hits + 1, alpha)[0]


def upper_bound(hits: int, draws: int, alpha: float) -> float:
    """A number above the probability of a hit, with confidence 1 - alpha (Clopper and Pearson)."""
    if hits == draws:
        return 1.0
    # Pr[at most `hits` of `draws`] = 1 - I_p(hits + 1, draws - hits) falls to alpha at the bound.
    return _crossing(hits + 1, draws - hits, 1.0 - alpha)[1]


@lru_cache(maxsize=256)
def _crossing(a: int, b: int, level: float) -> tuple[float, float]:
    """An interval around the p at which the incomplete beta function I_p(a, b) reaches a level.

    Balls decide on which side of it a p is. Which p are tried is a matter of speed alone.
    """
    low, high, p = 0.0, 1.0, a / (a + b)
    with precision(_BITS):
        for _ in range(_MOST_TRIES):
            share = arb(p).beta_lower(a, b, regularized=True)
            if share < level:
                low = p
            elif share > level:
                high = p
            else:
                break
            if high - low <= _NARROW * high:
                break
            p = _step_across(p, float(share.mid()), level, a, b)
            p = p if low < p < high else (low + high) / 2.0
    return low, high


def _step_across(p: float, share: float, level: float, a: int, b: int) -> float:
    """Where I_p(a, b) reaches the level, by Newton's method for the log of the smaller tail, and a little beyond."""
    tail, wanted = (share, level) if level < 0.5 else (1.0 - share, 1.0 - level)
    if not 0.0 < tail < 1.0:
        return -1.0
    log_density = (a - 1) * log(p) + (b - 1) * log1p(-p) - (lgamma(a) + lgamma(b) - lgamma(a + b))
    slope = exp(min(log_density - log(tail), 700.0)) * (1.0 if level < 0.5 else -1.0)
    step = (log(wanted) - log(tail)) / slope if slope else 1.0
    return p + step * (1.0 + _BEYOND) + (_NARROW / 4.0 if step > 0.0 else -_NARROW / 4.0) * p


def chi_square_tail(statistic: float, freedom: int) -> float:
    """The probability that a chi-square variable exceeds a number."""
    if freedom == 0:
        return 1.0
    with precision(_BITS):
        return float(arb(statistic / 2.0).gamma_upper(arb(freedom / 2.0), regularized=True).mid())


def fit(counts: Mapping[Any, int], law: Mapping[Any, float]) -> float:
    """The probability of counts at least as far from a law as these; 0 where something impossible was seen."""
    if any(law.get(outcome, 0.0) == 0.0 for outcome in counts):
        return 0.0
    draws = sum(counts.values())
    cells: list[tuple[float, int]] = []
    rare, rare_seen = 0.0, 0
    for outcome, probability in law.items():
        expected, seen = draws * probability, counts.get(outcome, 0)
        if expected >= _LEAST:
            cells.append((expected, seen))
        else:
            rare, rare_seen = rare + expected, rare_seen + seen
    if rare > 0.0:
        cells.append((rare, rare_seen))
    return chi_square_tail(sum((seen - expected) ** 2 / expected for expected, seen in cells), len(cells) - 1)


GOALS = ("top", "great", "good", "optimal", "recall")
"""The goals by name."""

Region = tuple[int, int]
"""H at least the first number, t at most the second."""


@dataclass(frozen=True)
class Hits:
    """How many of the k released items are among the best `right` ranks.

    Attributes
    ----------
    right
        How many ranks are right: all that score at least as much as the k-th.
    least
        None for the expected share of k; else how many must be right, for the probability that so many are.
    """

    right: int
    least: int | None = None

    def rate(self, hits: int, k: int) -> float:
        """What so many hits count for, from 0 to 1."""
        return hits / k if self.least is None else float(hits >= self.least)


Wanted = Region | Hits
"""What a probability, or the expected share, is wanted of."""


def goals(tally: Tally, k: int, share: Fraction | None = None) -> dict[str, Wanted]:
    """The goals for k of d items; recall is the expected share, or at least this share being right."""
    d = tally.d
    great, good = (ceil(k / 10), min(d, 11 * k // 10)), (ceil(k / 100), min(d, 3 * k // 2))
    right = count_right_ranks(tally, k)
    optimal = (k, k)
    if right > k:
        # Of the items that share the k-th score, any will do.
        optimal = (_first(lambda rank: tally.gap(rank, k - 1) == 0, 0, k - 1), right)
    recall = Hits(right, None if share is None else ceil(share * k))
    return {"top": (k, k), "great": great, "good": good, "optimal": optimal, "recall": recall}


def count_right_ranks(tally: Tally, k: int) -> int:
    """How many items score at least as much as the k-th."""
    if k == tally.d or tally.gap(k - 1, k) > 0:
        return k
    return _first(lambda rank: tally.gap(k - 1, rank) > 0, k, tally.d)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The first rank from `low` on at which something holds, which then holds on; `high` if there is none before."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def is_reached(wanted: Wanted, ranks: Any, k: int) -> float:
    """What a set of ranks in ascending order counts for: 1 where it is good enough, 0 where not, or its share."""
    if isinstance(wanted, Hits):
        return wanted.rate(int(np.searchsorted(ranks, wanted.right)), k)
    h, t = describe_ranks(ranks)
    return float(h >= wanted[0] and t <= wanted[1])


def describe_ranks(ranks: Any) -> Region:
    """H and t of a set of ranks in ascending order: how many of the best it holds in a row, and the worst, from 1."""
    missing = np.flatnonzero(ranks != np.arange(len(ranks)))
    return int(missing[0]) if len(missing) else len(ranks), int(ranks[-1]) + 1


def check_goal(goal: Any, share: Any) -> Fraction | None:
    """The share that must be right, where one was given; the goal must be one, and must be recall with a share."""
    if goal not in GOALS:
        raise InvalidValueError(f"goal must be one of {', '.join(GOALS)}, not {quote(goal)}")
    if share is not None and goal != "recall":
        raise InvalidValueError(f"share must be left out with the goal {goal}: it says how much of recall is enough")
    return check_share(share)


def check_share(share: Any) -> Fraction | None:
    """The share of the list that must be right, exactly, or None for the expected share."""
    if share is None:
        return None
    number = exact(share, "share")
    if not 0 < number <= 1:
        raise InvalidValueError(f"share must be above 0 and at most 1, not {quote(share)}")
    return number


def name_goal(goal: str, share: Fraction | None) -> str:
    """What a goal is called in a table: recall by the share that must be right, where there is one."""
    return goal if goal != "recall" or share is None else f"{decimal(share)} right"


def split_edges(wanted: Iterable[Wanted]) -> list[int]:
    """The ranks t, from 0, at which the classes that count for something may begin or end."""
    return sorted({one.right if isinstance(one, Hits) else one[1] for one in wanted})
