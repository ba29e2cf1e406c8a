"""Bounds on a probability from counts, and the tail of chi-square, by balls: no table, no rounding to trust."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil, log, log1p
from typing import Any

from flint import arb

from discreet.errors import InvalidValueError, quote
from discreet.exact.ball import precision
from discreet.privacy import exact

_BITS = 128
_HALVINGS = 60
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
    """An interval around the p at which the incomplete beta function I_p(a, b) reaches a level."""
    low, high = 0.0, 1.0
    with precision(_BITS):
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            share = arb(middle).beta_lower(a, b, regularized=True)
            if share < level:
                low = middle
            elif share > level:
                high = middle
            else:
                break
    return low, high


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
