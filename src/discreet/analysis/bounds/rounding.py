"""Balls of enough precision for logarithms of binomials, and floats on the side on which a bound stays true."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf, nextafter

from flint import arb

from discreet.exact.ball import precision


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
