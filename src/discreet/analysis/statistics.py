"""Bounds on a probability from counts, and the tail of chi-square, by balls: no table, no rounding to trust."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, lgamma, log, log1p
from typing import Any

from flint import arb

from discreet.errors import InvalidValueError, quote
from discreet.exact.ball import precision
from discreet.privacy import exact

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
