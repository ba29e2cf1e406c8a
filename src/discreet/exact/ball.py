"""Reals as balls that hold them, comparisons that are certain, and floats that are proven to lie above.

A ball (Arb, through python-flint) is an interval with the true value inside. A comparison is repeated with more
precision, and more random bits where a random number takes part, until the balls are apart; only then does it decide.

Floats enter in one way: as upper bounds. The assumption is that NumPy's `log`, `log1p`, `exp` and `expm1` are right
to a relative 2^-44, a thousand units in the last place where its own tests allow four; `+ - * /` and conversions round
to nearest. A value computed from terms of one sign by fewer than a hundred such steps is then right to a relative
2^-42, and `bound_above` adds four times that. Python's own `log` and `lgamma` are taken to be right to a relative 2^-44
too, where a float decides that a random number is far from a probability.
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


class EnvelopeError(InternalError):
    """A bound that a draw relies on turned out to be too low: the draw must be thrown away."""


START = 96
"""The precision in bits at which a comparison is first tried."""

LARGEST = sys.float_info.max
"""The largest float, which stands for all numbers beyond it."""

RELATIVE = 2.0**-40
"""What `bound_above` adds, relative to the value: far more than the rounding of what it is given."""

MAX_SCANNED = 10**5
"""The most elements that a slow sampler visits one by one, at some 50 microseconds each."""

_lock = threading.RLock()


def _after_fork() -> None:
    """Gives a child process a lock of its own: the parent's may be held by a thread that the child does not have."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Works with balls of `bits` bits; the setting is global in python-flint, so one thread at a time."""
    with _lock:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def float_above(value: Fraction) -> float:
    """The least float that is not below a rational, which is zero or more; inf where there is none."""
    try:
        nearest = value.numerator / value.denominator
    except OverflowError:
        return math.inf
    # Python compares a float with a Fraction exactly.
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)


def float_below(value: Fraction) -> float:
    """The largest float that is not above a rational, which is zero or more."""
    above = float_above(value)
    return above if above == value else math.nextafter(above, 0.0)


def ball(value: Fraction | int) -> arb:
    """A ball around a rational."""
    return arb(fmpq(value.numerator, value.denominator))


def log_binomial(n: int, r: int) -> arb:
    """A ball around log C(n, r)."""
    if r == 0 or r == n:
        return arb(0)
    # log C(n, r) = log n! - log r! - log (n-r)!
    return arb(n + 1).lgamma() - arb(r + 1).lgamma() - arb(n - r + 1).lgamma()


def log_binomial_upper(r: Ranks, rest: Ranks) -> Floats:
    """Log C(r + rest, r), at least the true value but for rounding, and at most 0.002 above it.

    A bound for the sampler, whose remainders err to one side by design; `log_binomial_float` is the accurate one.
    1/(12 m) - 1/(360 m^3) < c(m) < 1/(12 m) for the c of `log_binomial_stirling`.
    """
    a = np.maximum(r.astype(np.float64), 1.0)
    b = np.maximum(rest.astype(np.float64), 1.0)
    value = log_binomial_stirling(a, b)
    a_low, b_low = 1.0 / a, 1.0 / b
    # c(a+b) - c(a) - c(b), with the first too large and the others too small
    a_low -= a_low * a_low * a_low / 30.0
    b_low -= b_low * b_low * b_low / 30.0
    value += (1.0 / (a + b) - a_low - b_low) / 12.0
    value[np.logical_or(r == 0, rest == 0)] = 0.0
    return value


def log_binomial_stirling(a: Floats, b: Floats) -> Floats:
    """Log C(a + b, a) but for c(a+b) - c(a) - c(b), the remainders of Stirling's series, for a and b from 1.

    Written without cancellation: a log(1 + b/a) + b log(1 + a/b) + log((1/a + 1/b) / 2 pi) / 2, whose large terms are
    positive.
    """
    ratio = b / a
    value = a * np.log1p(ratio)
    value += b * np.log1p(1.0 / ratio)
    value += 0.5 * np.log((1.0 / a + 1.0 / b) / (2.0 * np.pi))
    return value


def log_binomial_float(r: Ranks, rest: Ranks) -> Floats:
    """Log C(r + rest, r), right to a relative 2^-50 or so.

    Accurate where `log_binomial_upper` is a bound; both are Stirling's series, and differ in its remainders.
    """
    a, b = np.maximum(r, 1).astype(np.float64), np.maximum(rest, 1).astype(np.float64)
    value = log_binomial_stirling(a, b)
    value += _remainder(a + b) - _remainder(a) - _remainder(b)
    return np.where((r == 0) | (rest == 0), 0.0, value)


def log_factorial_float(n: Ranks) -> Floats:
    """Log n!, right to a relative 2^-43 or so."""
    m = np.maximum(n, 1).astype(np.float64)
    return m * np.log(m) - m + 0.5 * np.log(2.0 * np.pi * m) + _remainder(m)


def log_binomial_ratio(m: Ranks, r: Ranks, rest: Ranks) -> Floats:
    """Log of C(r + rest, r) / C(m + r + rest, r), right to a relative 2^-48, however close it is to 0; m and r from 1.

    Stirling's series again. With A = m + r + rest, x = m/A, y = r/A and 1-z = (1-x-y) / ((1-x) (1-y)), the factorials
    leave r log(1-x) + m log(1-y) - (rest + 1/2) log(1-z) and their remainders.
    """
    a, b, c = m.astype(np.float64), r.astype(np.float64), np.maximum(rest, 1).astype(np.float64)
    total = a + b + c
    # log(1-x) = -log(1 + m / (r + rest)), and so on
    value = (c + 0.5) * np.log1p(a / c * (b / total)) - b * np.log1p(a / (b + c)) - a * np.log1p(b / (a + c))
    value += (_remainder(b + c) - _remainder(total)) - (_remainder(c) - _remainder(a + c))
    return np.where(rest == 0, -log_binomial_float(r, m), value)


_SERIES_FROM = 20
"""From here on Stirling's series is right to 2^-56."""


def _remainder(m: Floats) -> Floats:
    """Log m! - (m log m - m + log(2 pi m) / 2): the series where it is right, by a table below."""
    few = float(m.min(initial=_SERIES_FROM)) < _SERIES_FROM
    far = np.maximum(m, _SERIES_FROM) if few else m
    inverse = 1.0 / (far * far)
    terms = 1.0 / 360.0 - inverse * (1.0 / 1260.0 - inverse * (1.0 / 1680.0 - inverse / 1188.0))
    series = (1.0 / 12.0 - inverse * terms) / far
    return np.where(m < _SERIES_FROM, _NEAR[np.minimum(m, _SERIES_FROM).astype(np.int64)], series) if few else series


def _near() -> Floats:
    table = np.zeros(_SERIES_FROM + 1)
    with precision(128):
        for m in range(1, _SERIES_FROM + 1):
            whole = arb(m)
            table[m] = float((whole + 1).lgamma() - (whole * whole.log() - whole + (2 * arb.pi() * whole).log() / 2))
    return table


_NEAR = _near()


def bound_above(value: Floats) -> Floats:
    """A float certainly above a quantity that `value` approximates to a relative (or absolute) 2^-41."""
    return value + RELATIVE * (np.abs(value) + 64.0)


def bound_below(value: Floats) -> Floats:
    """A float certainly below a quantity that `value` approximates to a relative (or absolute) 2^-41."""
    return value - RELATIVE * (np.abs(value) + 64.0)


def sample_bernoulli_exp(
    entropy: Entropy, log_probability: Callable[[], arb], bounds: tuple[float, float] = (-inf, inf)
) -> bool:
    """Return True with probability exactly exp(log_probability).

    Floats that are certainly below and above `log_probability` spare most of its computation. Raise EnvelopeError if
    the probability is certainly above 1.
    """
    uniform = entropy.uniform()
    low, high = bounds
    if low > 0.0:
        raise EnvelopeError
    # Floats decide only where they also prove that the probability is at most 1.
    if high <= 0.0:
        unit = 2.0**-uniform.bits
        share = uniform.numerator * unit
        if (share + unit) * (1.0 + RELATIVE) < math.exp(low):
            return True
        if share * (1.0 - RELATIVE) > math.exp(high):
            return False
    return is_below_exp(uniform, log_probability)


def is_below_exp(uniform: Uniform, log_probability: Callable[[], arb]) -> bool:
    """Return True if a uniform number is below exp(log_probability); otherwise as `is_below`."""
    return is_below(uniform, lambda: log_probability().exp())


def is_below(uniform: Uniform, probability: Callable[[], arb]) -> bool:
    """Return True if a uniform number is below a probability, which happens with just that probability.

    Raise EnvelopeError if the probability is certainly above 1.
    """
    for bits in _rounds(uniform.reveal, _double_precision):
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

    `reveal(words)` extends the random numbers in them to so many words each, where they have fewer, and returns how
    many bits that is.
    """
    for bits in _rounds(reveal, _double_precision):
        with precision(bits):
            one, other = left(), right()
            if one < other:
                return True
            if one > other:
                return False
    raise InternalError


def find_floor(value: Callable[[], arb], reveal: Callable[[int], int]) -> int:
    """Return the largest whole number below a real that is no whole number itself; `reveal` is as for `is_less`."""
    # A large value takes many random bits, so that precision must not double with every word of them.
    for bits in _rounds(reveal, lambda known: START + 2 * known):
        with precision(bits):
            found = value().floor().unique_fmpz()
        if found is not None:
            return int(found)
    raise InternalError


MAX_PRECISION = 1 << 20
"""The most bits that a comparison is tried with. Scores of 5,000 digits take about 2^15, and chance adds few."""


def _rounds(reveal: Callable[[int], int], precision_for: Callable[[int], int]) -> Iterator[int]:
    """Yield the precision of each round of one comparison, after revealing a word more of its random numbers.

    The precision follows from the rounds of this comparison alone: bits that an earlier one revealed do not raise it.
    The rounds end where `MAX_PRECISION` bits do not decide.
    """
    words, known = 1, 0
    while (bits := precision_for(known)) <= MAX_PRECISION:
        yield bits
        words += 1
        known = reveal(words)


def _double_precision(known: int) -> int:
    """Return the precision for random numbers of so many bits: it doubles with every 64 of them."""
    return START << max(0, known // 64 - 1)


def sum_exponentials(uniforms: list[Uniform]) -> arb:
    """A ball around the sum of -log U, a sum of independent standard exponentials."""
    total = arb(0)
    for uniform in uniforms:
        total -= uniform.ball().log()
    return total


@contextmanager
def precise(d: int, bits: int = 128) -> Iterator[None]:
    """Balls of `bits` good bits where logarithms of factorials of numbers up to d cancel."""
    with precision(bits + 2 * d.bit_length()):
        yield


def round_up(value: Callable[[], arb], d: int) -> float:
    """A float at or above the value."""
    with precise(d):
        result = value()
        return 0.0 if result == 0 else nextafter(float(result.upper()), inf)


def round_down(chance: Callable[[], arb], d: int) -> float:
    """A float below the chance, and zero or more."""
    with precise(d):
        return max(0.0, nextafter(float(chance().lower()), -inf))
