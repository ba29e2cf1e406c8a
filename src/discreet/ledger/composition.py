"""What many releases cost together: by the sum of their epsilons, and by zCDP.

Pure: epsilons add (basic composition). zCDP: rhos add, and rho-zCDP is (epsilon, delta)-DP for every alpha > 1 with

    epsilon = rho alpha + log(1 / (alpha delta)) / (alpha - 1) + log(1 - 1 / alpha)

(Canonne, Kamath and Steinke 2020, Proposition 12). A release with a delta is delta-approximately rho-zCDP, and the
deltas add as well. Both hold when each release is chosen after seeing the ones before,
and so does the better of the two: on outcomes where the sum stays within the budget the ratio of probabilities is at
most e^epsilon, and all others are outcomes of a process that stops at the rho of the budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.exact.ball import ball, precision
from discreet.text import repr_with_decimals, round_up

_STEP = 10**9
"""A converted epsilon is rounded up to a multiple of one billionth."""

_FLAT = 700.0
"""Exponents beyond this leave the range of floats."""


@dataclass(frozen=True, repr=False)
class Composition:
    """What releases come to.

    Attributes
    ----------
    epsilon
        The sum of their epsilons.
    rho
        The sum of their zCDP parameters.
    delta
        The sum of their deltas.
    """

    epsilon: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def __repr__(self) -> str:
        return repr_with_decimals(self, round_up)

    def plus(self, other: Composition) -> Composition:
        """These releases and others."""
        delta = self.delta + other.delta if other.delta else self.delta  # mostly zero, and exact sums take time
        return Composition(self.epsilon + other.epsilon, self.rho + other.rho, delta)

    def by_zcdp(self, conversion: Fraction | None) -> Fraction | None:
        """The epsilon by zCDP, converted at a delta that comes beside those of the releases; None without one."""
        return None if conversion is None else zcdp_to_epsilon(self.rho, conversion)

    def spent(self, conversion: Fraction | None) -> Fraction:
        """The epsilon, by the better of the two."""
        other = self.by_zcdp(conversion)
        return self.epsilon if other is None else min(self.epsilon, other)

    def fits(self, epsilon: Fraction, conversion: Fraction | None, release_delta: Fraction = Fraction(0)) -> bool:
        """Whether all of this is within epsilon and the sum of two deltas that were fixed beforehand."""
        if self.delta > release_delta:
            return False
        return self.epsilon <= epsilon or self.spent(conversion) <= epsilon


def zcdp_to_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """The smallest epsilon for which rho-zCDP is shown to be (epsilon, delta)-DP, rounded up.

    Examples
    --------
    >>> float(zcdp_to_epsilon(Fraction(1, 8), Fraction(1, 10**6)))
    2.419093177
    """
    if rho == 0:
        return Fraction(0)
    # Every alpha gives a true bound, so a float may choose it; a ball decides what it is.
    a = Fraction(_best_order(_log(rho), _log(delta)))
    with precision(256 + 2 * max(abs(part.bit_length()) for part in (*a.as_integer_ratio(), int(rho)))):
        alpha = ball(1 + a)
        epsilon = ball(rho) * alpha - (alpha * ball(delta)).log() / ball(a) + (ball(a) / alpha).log()
        mantissa, exponent = epsilon.upper().man_exp()
    above = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return Fraction(max(0, math.ceil(above * _STEP)), _STEP)


def _best_order(log_rho: float, log_delta: float) -> float:
    """The alpha - 1 that is best, nearly.

    The derivative of epsilon by alpha is rho + log(alpha delta) / (alpha - 1)^2: below zero up to the one alpha where
    rho (alpha - 1)^2 + log alpha = log(1 / delta), and above zero after it.
    """
    low, high = -_FLAT, _FLAT
    for _ in range(100):
        middle = (low + high) / 2
        grown = math.exp(min(_FLAT, log_rho + 2 * middle)) + math.log1p(math.exp(middle))
        low, high = (middle, high) if grown < -log_delta else (low, middle)
    return math.exp(low)


def _log(number: Fraction) -> float:
    return math.log(number.numerator) - math.log(number.denominator)
