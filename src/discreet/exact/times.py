"""Arrival times of Poisson processes, as balls and as floats with error bounds (docs/proofs.md, section 9.2).

The i-th arrival of a process of rate r is at E = (sum of i standard exponentials) / r. A noise is a decreasing function
of E, written once in `discreet.mechanisms.noise` and evaluated on both representations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np
from flint import arb, ctx

from discreet.exact.arrays import Floats, Words
from discreet.exact.ball import FLOAT_MARGIN, ball
from discreet.exact.entropy import Entropy, Uniform

Real = TypeVar("Real")


class Time(Protocol[Real]):
    """A time E, with the functions of E that noises are made of."""

    @property
    def value(self) -> Real:
        """The time E."""

    @property
    def log2(self) -> Real:
        """The constant log 2."""

    def log(self) -> Real:
        """Return log E."""

    def tail(self) -> Real:
        """Return -log(1 - exp(-E))."""

    def lift(self) -> Real:
        """Return log(1 + exp(-E))."""

    def before_log2(self, early: Real, late: Real) -> Real:
        """Return `early` where E < log 2 and `late` elsewhere; the two must agree at log 2."""

    def scale_by(self, factor: Fraction) -> Time[Real]:
        """Return the time E times a factor; `before_log2` does not apply to it."""


class NoiseFormula(Protocol):
    """The part of a noise that a race uses."""

    @property
    def inverse(self) -> Callable[[Time[Any]], Any]:
        """The noise as a decreasing function of the time E."""

    @property
    def steepness(self) -> float:
        """A number c such that the noise changes by at most c (1 + E) times the change of log E."""


@dataclass(frozen=True, eq=False, repr=False)
class BallTime:
    """A time as a ball."""

    value: arb

    @property
    def log2(self) -> arb:
        return arb.const_log2()

    def log(self) -> arb:
        return self.value.log()

    def tail(self) -> arb:
        return -(-((-self.value).expm1())).log()

    def lift(self) -> arb:
        return (-self.value).exp().log1p()

    def before_log2(self, early: arb, late: arb) -> arb:
        if self.value < self.log2:
            return early
        if self.value > self.log2:
            return late
        return early.union(late)

    def scale_by(self, factor: Fraction) -> BallTime:
        return BallTime(self.value * ball(factor))


@dataclass(frozen=True, eq=False, repr=False)
class FloatTime:
    """Times as floats, by their logarithms, because the times themselves may underflow."""

    logarithm: Floats

    @property
    def value(self) -> Floats:
        return np.exp(self.logarithm)

    @property
    def log2(self) -> Floats:
        return np.full_like(self.logarithm, math.log(2.0))

    def log(self) -> Floats:
        return self.logarithm

    def tail(self) -> Floats:
        # -log(1 - e^-E) = -log E + E/2 - O(E^2) for small E
        value = self.value
        exact = -np.log(-np.expm1(-np.maximum(value, 1e-12)))
        return np.where(self.logarithm < -27.0, 0.5 * value - self.logarithm, exact)

    def lift(self) -> Floats:
        return np.log1p(np.exp(-self.value))

    def before_log2(self, early: Floats, late: Floats) -> Floats:
        return np.where(self.value < math.log(2.0), early, late)

    def scale_by(self, factor: Fraction) -> FloatTime:
        return FloatTime(self.logarithm + math.log(factor))


@dataclass(eq=False, repr=False)
class StreamTimes:
    """The uniforms U behind the arrivals of a stream, and running sums of -log U for each precision.

    Many winners can come from one stream; without running sums each of them would add up all arrivals before it.
    """

    uniforms: list[Uniform] = field(default_factory=list)
    sums: dict[int, list[arb]] = field(default_factory=dict)

    def first(self, count: int, words: Words, entropy: Entropy) -> list[Uniform]:
        """Return the uniforms of the first `count` arrivals; `words` holds the first word of each arrival."""
        self.uniforms += [Uniform(entropy, int(word)) for word in words[len(self.uniforms) : count]]
        return self.uniforms[:count]

    def total(self, count: int) -> arb:
        """Return a ball around the sum of the first `count` exponentials, at the precision in force.

        A precision that grows with the revealed bits shrinks the ball to a point.
        """
        sums = self.sums.setdefault(ctx.prec, [arb(0)])
        for uniform in self.uniforms[len(sums) - 1 : count]:
            sums.append(sums[-1] - uniform.ball().log())
        return sums[count]


def reveal_all(uniforms: Sequence[Uniform], words: int) -> int:
    """Extend each number to at least `words` words and return the number of bits in `words` words."""
    return max(uniform.reveal(words) for uniform in uniforms)


def evaluate_noise(noise: NoiseFormula, total: Floats, log_rate: Floats) -> tuple[Floats, Floats]:
    """Return the noise at the times E = total / exp(log_rate), and a bound on its error."""
    # log E = log(total) - log_rate has an error of at most a relative 2^-41 of its terms. The noise changes by at most
    # steepness (1 + E) times the change of log E, and computing it adds a relative 2^-41 of log E, E and itself.
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        log_total = np.log(total)
        time = FloatTime(log_total - log_rate)
        value = noise.inverse(time)
        off = noise.steepness * FLOAT_MARGIN * (np.abs(log_total) + np.abs(log_rate) + 64.0) * (1.0 + time.value)
    return value, off


def bound_exponentials(words: Words, word: int) -> tuple[Floats, Floats]:
    """Return lower and upper bounds on -log U for uniforms U whose first word is known."""
    # U lies in [w, w + 1] / 2^word. For U > 1/2 the distance from 1 is computed exactly, because -log U is close to it.
    from_one = np.uint64(2**word - 1) - words
    unit = 2.0**-word
    near_one = words >= np.uint64(2 ** (word - 1))
    with np.errstate(divide="ignore"):
        below = np.where(near_one, -np.log1p(-(from_one * unit)), -np.log((words + 1.0) * unit))
        beyond = np.where(near_one, -np.log1p(-(from_one + 1.0) * unit), -np.log(words * unit))
    return np.maximum(below, 0.0) * (1.0 - FLOAT_MARGIN), beyond * (1.0 + FLOAT_MARGIN)
