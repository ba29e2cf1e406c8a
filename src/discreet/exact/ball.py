"""Comparisons of reals that are certain, by interval arithmetic, and floats that are proven upper or lower bounds.

A ball (Arb, through python-flint) is an interval that contains the true value. A comparison is repeated with more
precision, and with more random bits where a random number takes part, until the balls are disjoint (docs/proofs.md,
section 9.1).

Floats only bound. The proofs assume that NumPy's `log`, `log1p`, `exp` and `expm1`, and Python's `log`, `lgamma` and
`erfc`, have a relative error of at most 2^-44 (a thousand units in the last place, where NumPy's own tests allow four),
and that `+ - * /` and conversions round to nearest. A value computed from terms of one sign in fewer than a hundred
such steps then has a relative error below 2^-42, and `bound_above` adds four times that.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from math import inf, nextafter

import numpy as np
from flint import arb, ctx, fmpq

from discreet.errors import InternalError
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.entropy import Entropy, Uniform

START_PRECISION = 96
"""Bits of precision of the first attempt at a comparison."""

MAX_PRECISION = 1 << 20
"""Bits of precision of the last attempt. Scores of 5,000 digits need about 2^15, and the random bits add few."""

LARGEST = sys.float_info.max
"""The largest float. It stands for every number beyond it."""

FLOAT_MARGIN = 2.0**-40
"""The relative margin of `bound_above` and `bound_below`: four times the largest rounding error of their input."""

MAX_SCANNED = 10**5
"""The most elements that a sampler without bounds visits one by one, at about 50 microseconds each."""

_STIRLING_FROM = 20
"""From this argument on the five terms of Stirling's series used here have an error below 2^-56."""


class EnvelopeError(InternalError):
    """An upper bound that a draw relies on is too low; the draw must be discarded."""


# Comparisons


def sample_bernoulli_exp(
    entropy: Entropy, log_probability: Callable[[], arb], bounds: tuple[float, float] = (-inf, inf)
) -> bool:
    """Return True with probability exactly exp(log_probability).

    Raise EnvelopeError if the probability is certainly above 1. `bounds` are floats certainly below and above
    `log_probability`; they avoid most evaluations of it.
    """
    uniform = entropy.uniform()
    low, high = bounds
    if low > 0.0:
        raise EnvelopeError
    # Floats decide only where they also prove that the probability is at most 1.
    if high <= 0.0:
        unit = 2.0**-uniform.bits
        share = uniform.numerator * unit
        if (share + unit) * (1.0 + FLOAT_MARGIN) < math.exp(low):
            return True
        if share * (1.0 - FLOAT_MARGIN) > math.exp(high):
            return False
    return is_below_exp(uniform, log_probability)


def is_below_exp(uniform: Uniform, log_probability: Callable[[], arb]) -> bool:
    """Return True if `uniform` is below exp(log_probability); see `is_below`."""
    return is_below(uniform, lambda: log_probability().exp())


def is_below(uniform: Uniform, probability: Callable[[], arb]) -> bool:
    """Return True if `uniform` is below `probability`, an event of exactly that probability.

    Raise EnvelopeError if the probability is certainly above 1.
    """
    for bits in _precisions(uniform.reveal, _double_precision):
        with precision(bits):
            share, drawn = probability(), uniform.ball()
            if share > 1:
                raise EnvelopeError
            if drawn < share:
                return True
            if drawn > share:
                return False
    raise InternalError


def is_less(left: Callable[[], arb], right: Callable[[], arb], reveal: Callable[[int], int]) -> bool:
    """Return True if left < right, for two reals that differ.

    `reveal(words)` extends the random numbers in both to at least `words` words and returns that number of bits.
    """
    for bits in _precisions(reveal, _double_precision):
        with precision(bits):
            one, other = left(), right()
            if one < other:
                return True
            if one > other:
                return False
    raise InternalError


def find_floor(value: Callable[[], arb], reveal: Callable[[int], int]) -> int:
    """Return the floor of a real that is not a whole number; `reveal` is as for `is_less`."""
    # A large value needs many random bits, so precision grows linearly with them and does not double.
    for bits in _precisions(reveal, lambda known: START_PRECISION + 2 * known):
        with precision(bits):
            found = value().floor().unique_fmpz()
        if found is not None:
            return int(found)
    raise InternalError


def _precisions(reveal: Callable[[int], int], precision_for: Callable[[int], int]) -> Iterator[int]:
    """Yield the precision of each attempt at one comparison up to MAX_PRECISION, revealing one more word per attempt.

    Bits that an earlier comparison revealed do not raise the precision of this one.
    """
    words, known = 1, 0
    while (bits := precision_for(known)) <= MAX_PRECISION:
        yield bits
        words += 1
        known = reveal(words)


def _double_precision(known: int) -> int:
    """Return the precision for random numbers of `known` bits; it doubles with every 64 bits."""
    return START_PRECISION << max(0, known // 64 - 1)


# Precision, a global setting of python-flint

_lock = threading.RLock()


def _replace_lock() -> None:
    """Give a forked child a new lock: a thread that exists only in the parent may hold the old one."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_replace_lock)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with balls of `bits` bits, one thread at a time."""
    with _lock:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


@contextmanager
def precise(d: int, bits: int = 128) -> Iterator[None]:
    """Compute with balls that keep `bits` bits after log factorials of numbers up to d cancel."""
    with precision(bits + 2 * d.bit_length()):
        yield


# Balls


def ball(value: Fraction | int) -> arb:
    """Return a ball around a rational."""
    return arb(fmpq(value.numerator, value.denominator))


def log_binomial(n: int, r: int) -> arb:
    """Return a ball around log C(n, r)."""
    if r == 0 or r == n:
        return arb(0)
    # log C(n, r) = log n! - log r! - log (n-r)!
    return arb(n + 1).lgamma() - arb(r + 1).lgamma() - arb(n - r + 1).lgamma()


def sum_exponentials(uniforms: list[Uniform]) -> arb:
    """Return a ball around the sum of -log U, a sum of independent standard exponentials."""
    total = arb(0)
    for uniform in uniforms:
        total -= uniform.ball().log()
    return total


# Floats that bound


def float_above(value: Fraction) -> float:
    """Return the least float that is at least a non-negative rational; inf if there is none."""
    try:
        nearest = value.numerator / value.denominator
    except OverflowError:
        return math.inf
    # Python compares a float with a Fraction exactly.
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)


def float_below(value: Fraction) -> float:
    """Return the largest float that is at most a non-negative rational."""
    above = float_above(value)
    return above if above == value else math.nextafter(above, 0.0)


def round_up(value: Callable[[], arb], d: int) -> float:
    """Return a float at or above a value; d is as for `precise`."""
    with precise(d):
        result = value()
        return 0.0 if result == 0 else nextafter(float(result.upper()), inf)


def round_down(chance: Callable[[], arb], d: int) -> float:
    """Return a non-negative float below a probability; d is as for `precise`."""
    with precise(d):
        return max(0.0, nextafter(float(chance().lower()), -inf))


def bound_above(value: Floats) -> Floats:
    """Return floats certainly above the quantities that `value` approximates to a relative (or absolute) 2^-41."""
    return value + FLOAT_MARGIN * (np.abs(value) + 64.0)


def bound_below(value: Floats) -> Floats:
    """Return floats certainly below the quantities that `value` approximates to a relative (or absolute) 2^-41."""
    return value - FLOAT_MARGIN * (np.abs(value) + 64.0)


def log_binomial_upper(r: Ranks, rest: Ranks) -> Floats:
    """Return an upper bound on log C(r + rest, r), up to rounding, that is at most 0.002 too high."""
    a = np.maximum(r.astype(np.float64), 1.0)
    b = np.maximum(rest.astype(np.float64), 1.0)
    value = log_binomial_stirling(a, b)
    # c(a+b) - c(a) - c(b) with 1/(12 m) - 1/(360 m^3) < c(m) < 1/(12 m): upper bound of the first, lower of the others
    a_low, b_low = 1.0 / a, 1.0 / b
    a_low -= a_low * a_low * a_low / 30.0
    b_low -= b_low * b_low * b_low / 30.0
    value += (1.0 / (a + b) - a_low - b_low) / 12.0
    value[np.logical_or(r == 0, rest == 0)] = 0.0
    return value


def log_binomial_float(r: Ranks, rest: Ranks) -> Floats:
    """Return log C(r + rest, r) with a relative error of about 2^-50."""
    a, b = np.maximum(r, 1).astype(np.float64), np.maximum(rest, 1).astype(np.float64)
    value = log_binomial_stirling(a, b)
    value += _remainder(a + b) - _remainder(a) - _remainder(b)
    return np.where((r == 0) | (rest == 0), 0.0, value)


def log_binomial_ratio(m: Ranks, r: Ranks, rest: Ranks) -> Floats:
    """Return log(C(r + rest, r) / C(m + r + rest, r)) for m, r >= 1; the relative error is 2^-48 even close to 0."""
    a, b, c = m.astype(np.float64), r.astype(np.float64), np.maximum(rest, 1).astype(np.float64)
    total = a + b + c
    # With A = m + r + rest, x = m/A, y = r/A and 1-z = (1-x-y) / ((1-x) (1-y)), Stirling's series leaves
    # r log(1-x) + m log(1-y) - (rest + 1/2) log(1-z) and the remainders, where log(1-x) = -log(1 + m / (r + rest)).
    value = (c + 0.5) * np.log1p(a / c * (b / total)) - b * np.log1p(a / (b + c)) - a * np.log1p(b / (a + c))
    value += (_remainder(b + c) - _remainder(total)) - (_remainder(c) - _remainder(a + c))
    return np.where(rest == 0, -log_binomial_float(r, m), value)


def log_factorial_float(n: Ranks) -> Floats:
    """Return log n! with a relative error of about 2^-43."""
    m = np.maximum(n, 1).astype(np.float64)
    return m * np.log(m) - m + 0.5 * np.log(2.0 * np.pi * m) + _remainder(m)


def log_binomial_stirling(a: Floats, b: Floats) -> Floats:
    """Return log C(a + b, a) without the remainders c(a+b) - c(a) - c(b) of Stirling's series, for a, b >= 1."""
    # a log(1 + b/a) + b log(1 + a/b) + log((1/a + 1/b) / 2 pi) / 2: the large terms are positive and do not cancel.
    ratio = b / a
    value = a * np.log1p(ratio)
    value += b * np.log1p(1.0 / ratio)
    value += 0.5 * np.log((1.0 / a + 1.0 / b) / (2.0 * np.pi))
    return value


def _remainder(m: Floats) -> Floats:
    """Return c(m) = log m! - (m log m - m + log(2 pi m) / 2): by the series, or by a table for small m."""
    few = float(m.min(initial=_STIRLING_FROM)) < _STIRLING_FROM
    far = np.maximum(m, _STIRLING_FROM) if few else m
    # c(m) = 1/(12 m) - 1/(360 m^3) + 1/(1260 m^5) - 1/(1680 m^7) + 1/(1188 m^9)
    inverse = 1.0 / (far * far)
    terms = 1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse * (1.0 / 1680.0 - inverse / 1188.0))
    series = (1.0 / 12.0 - inverse * terms) / far
    if not few:
        return series
    return np.where(m < _STIRLING_FROM, _REMAINDERS[np.minimum(m, _STIRLING_FROM).astype(np.int64)], series)


_REMAINDERS = np.zeros(_STIRLING_FROM + 1)
"""c(m) for m from 1 to _STIRLING_FROM."""
with precision(128):
    for _m in range(1, _STIRLING_FROM + 1):
        _n = arb(_m)
        _REMAINDERS[_m] = float((_n + 1).lgamma() - (_n * _n.log() - _n + (2 * arb.pi() * _n).log() / 2))
