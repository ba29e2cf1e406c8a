"""How far behind the best an element may be that still wins, in units of the noise, except with a given probability."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from discreet.exact.ball import ball, log_binomial


def subsets_height(d: int, k: int, level: Fraction, noise: str) -> arb:
    """How far behind the best a subset may be, in units of the noise, except with probability `level`."""
    return arb(0) if k == d else _height(log_binomial(d, k) - ball(level).log(), noise)


def rounds_height(d: int, k: int, level: Fraction, noise: str) -> arb:
    """How far behind the best left an item may be in every round, times k, except with probability `level`."""
    return arb(0) if k == d else k * _height(arb(d).log() - _each_round(level, k).log(), noise)


def _each_round(level: Fraction, k: int) -> arb:
    """A ball around 1 - (1 - level)^(1/k)."""
    one_minus = ball(-level).log1p() if level < Fraction(1, 2) else ball(1 - level).log()
    return -(one_minus / k).expm1()


def _height(log_ratio: arb, noise: str) -> arb:
    """A v such that exp(log_ratio) p(v) <= 1, where p(v) is the chance of one element, v behind, to beat another.

    For log_ratio = L >= log 2, and with Z the noise of the one in front, p(v) = E[1 - F(Z + v)].
    Gumbel: 1 / (1 + e^v). Exponential: e^-v / 2. Half-logistic: 1 - F(w) <= 2 e^-w, and E[2 e^-Z] = 4 log 2 - 2 < 1.
    Laplace: e^-v (2+v)/4, and (2+v)/4 <= (1+L)/2 as log((1+L)/2) <= L. Logistic: 1 - F(w) <= min(1, e^-w), whose mean
    is e^-v (v + log(1 + e^-v)), and v + log 2 <= 1 + 2L as log(1+2L) <= L + 0.2.
    """
    if noise == "laplace":
        return log_ratio + ((1 + log_ratio) / 2).log()
    if noise == "logistic":
        return log_ratio + (1 + 2 * log_ratio).log()
    return log_ratio
