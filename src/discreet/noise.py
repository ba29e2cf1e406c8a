"""The noises, each one small value that holds all that is known about it. To add one is to write it here.

A noise is given by G(E) = F^-1(exp(-E)), its inverse distribution function in the race time E = -log U of an element
(design: section 3). The smaller the time, the larger the noise, and the first of n arrivals comes at Exp(1)/n. The
formula is written once and runs on floats, which only propose, and on balls, which decide.

The slope of the log density of every noise is at least -1, which is what makes selections and their order private
(docs/proofs.md, section 2). The other facts are optional: code that needs one that a noise does not have, refuses.
`discreet.noise_registry` holds the facts of a noise against each other, and takes noises from outside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.errors import InvalidValueError, quote
from discreet.exact.arrays import Floats
from discreet.exact.times import Time

_RADIUS, _NODES = 0.25, 64

Formula = Callable[[Any, Any], Any]
"""A function of x = exp(-w), given as p and q with x = p/q so that x may be infinite: on floats, or on balls."""


@dataclass(frozen=True, eq=False)
class Piece:
    """F(w) where exp(-w) = p/q; 1 - F(w); and the slope -dF/dx there, times 1/q^2: slope * (q dp - p dq) is -dF."""

    below: Formula
    above: Formula
    slope: Formula


@dataclass(frozen=True, eq=False)
class Distribution:
    """The distribution function F in x = exp(-w), with one formula for w >= 0 and one for w <= 0; None stands for zero.

    Every integral over a race of such noises is then one of an analytic function between few points. The density must
    be log-concave, log F analytic in x for |x| <= 1/4, and where the formulas differ without a floor, F(0) = 1/2.
    """

    upper: Piece
    lower: Piece | None

    @property
    def has_seam(self) -> bool:
        """Whether the formula changes at zero."""
        return self.upper is not self.lower

    def evaluate(self, w: Floats) -> tuple[Floats, Floats, Floats]:
        """F(w), 1 - F(w) and the density, in floats."""
        p, q = np.exp(np.minimum(-w, 0.0)), np.exp(np.minimum(w, 0.0))
        if not self.has_seam or (w.size and w.min() > 0.0):
            return _evaluate_piece(self.upper, p, q)
        # Each formula is used on its own side of zero alone, and put at zero elsewhere.
        one = np.ones_like(w)
        upper = _evaluate_piece(self.upper, p, one)
        if self.lower is None:
            return np.where(w > 0, upper[0], 0.0), np.where(w > 0, upper[1], 1.0), np.where(w > 0, upper[2], 0.0)
        lower = _evaluate_piece(self.lower, one, q)
        below, above, density = (np.where(w > 0, high, low) for high, low in zip(upper, lower, strict=True))
        return below, above, density

    @cached_property
    def log_series(self) -> Floats:
        """The coefficients of log F(w) as a series in exp(-w), from the power 0 on."""
        powers = np.arange(_NODES // 2)
        return np.asarray(self.circle_coefficients()[powers].real / _RADIUS**powers, np.float64)

    def circle_coefficients(self) -> NDArray[np.complex128]:
        """The Fourier coefficients of log F on a circle around x = 0: the first half are those of its series.

        The second half belongs to negative powers, and is zero where log F is analytic inside (Cauchy).
        """
        x = _RADIUS * np.exp(2j * np.pi * np.arange(_NODES) / _NODES)
        return np.fft.fft(np.log(self.upper.below(x, np.ones(_NODES)))) / _NODES


@dataclass(frozen=True, eq=False)
class PairwiseTail:
    """Bounds on p(v), the chance of an element that is v behind another to have the larger noisy value.

    With Z the noise of the one in front, p(v) = E[1 - F(Z + v)].

    Attributes
    ----------
    chance
        A ball around a number that is at least p(v), for v >= 0.
    height
        For L >= log 2, a ball around a v such that exp(L) p(v) <= 1.
    """

    chance: Callable[[arb], arb]
    height: Callable[[arb], arb]


@dataclass(frozen=True, eq=False)
class Noise:
    """One noise.

    Attributes
    ----------
    name
        What mechanisms, files and the command line call it.
    inverse
        G(E), as a formula on times.
    distribution
        F, for what is integrated and not drawn; None where it is not known in this form.
    pairwise_tail
        Bounds on who wins among two, for bounds without data; None where none are known.
    max_stable
        Whether the largest of n noises is one noise raised by log n. Then an element wins with probability
        proportional to exp(value), n equal ones count n times, and the values left after the largest is taken away are
        as good as fresh ones: a race is the exponential mechanism, and the noise is Gumbel's (Yellott, 1977).
    steepness
        A number c such that G moves by at most c (1 + E) times the change of log E.
    """

    name: str
    inverse: Callable[[Time[Any]], Any]
    distribution: Distribution | None = None
    pairwise_tail: PairwiseTail | None = None
    max_stable: bool = False
    steepness: float = 1.0

    @property
    def has_floor(self) -> bool:
        """Whether it is known that no value is below zero."""
        return self.distribution is not None and self.distribution.lower is None

    def zcdp(self, epsilon: Fraction) -> Fraction:
        """The rho for which one winner, drawn with epsilon, is rho-zCDP."""
        # An exponential mechanism has range epsilon (Cesar and Rogers, 2021); of others only epsilon is known.
        return epsilon**2 / (8 if self.max_stable else 2)

    def __reduce__(self) -> tuple[Callable[[Any], Noise], tuple[str]]:
        """A copy, and what comes out of a pickle, is the noise of that name: formulas do not travel."""
        return check_noise, (self.name,)

    def require_distribution(self) -> Distribution:
        """Its distribution function; raises where it is not known."""
        if self.distribution is None:
            raise InvalidValueError(f"noise must be one whose distribution function is known, not {quote(self.name)}")
        return self.distribution

    def require_pairwise_tail(self) -> PairwiseTail:
        """Its bounds on who wins among two; raises where none are known."""
        if self.pairwise_tail is None:
            raise InvalidValueError(f"noise must be one whose tail is bounded, not {quote(self.name)}")
        return self.pairwise_tail


def _evaluate_piece(piece: Piece, p: Floats, q: Floats) -> tuple[Floats, Floats, Floats]:
    with np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore"):
        # Rounding may carry a formula past 1, where there is no logarithm of what is left.
        above = np.minimum(piece.above(p, q), 1.0)
        return piece.below(p, q), above, np.nan_to_num(piece.slope(p, q) * p * q)


def _exp(value: Any) -> Any:
    return np.exp(value) if isinstance(value, np.ndarray) else value.exp()


def _expm1(value: Any) -> Any:
    return np.expm1(value) if isinstance(value, np.ndarray) else value.expm1()


def _decaying_chance(v: arb) -> arb:
    """(1+v) e^-v, which is at least the p(v) of each noise below."""
    return (1 + v) * (-v).exp()


# Gumbel: -log E; F = exp(-x)
_GUMBEL = Piece(
    lambda p, q: _exp(-p / q),
    lambda p, q: -_expm1(-p / q),
    lambda p, q: _exp(-p / q) / q**2,
)
GUMBEL = Noise(
    "gumbel",
    lambda time: -time.log(),
    Distribution(_GUMBEL, _GUMBEL),
    # p(v) = 1 / (1 + e^v)
    PairwiseTail(_decaying_chance, lambda ratio: ratio),
    max_stable=True,
)
# exponential: -log(1 - e^-E); F = 1 - x
EXPONENTIAL = Noise(
    "exponential",
    lambda time: time.tail(),
    Distribution(Piece(lambda p, q: (q - p) / q, lambda p, q: p / q, lambda p, q: 1 / q**2), None),
    # p(v) = e^-v / 2
    PairwiseTail(_decaying_chance, lambda ratio: ratio),
)
# Laplace: -log 2 - log(1 - e^-E) for E < log 2, and log 2 - E after; F = 1 - x/2 for x <= 1, and 1/(2x) after
LAPLACE = Noise(
    "laplace",
    lambda time: time.before_log2(time.tail() - time.log2, time.log2 - time.value),
    Distribution(
        Piece(lambda p, q: (2 * q - p) / (2 * q), lambda p, q: p / (2 * q), lambda p, q: 1 / (2 * q**2)),
        Piece(lambda p, q: q / (2 * p), lambda p, q: (2 * p - q) / (2 * p), lambda p, q: 1 / (2 * p**2)),
    ),
    # p(v) = e^-v (2+v)/4, and at v = L + log((1+L)/2), (2+v)/4 <= (1+L)/2 as log((1+L)/2) <= L
    PairwiseTail(_decaying_chance, lambda ratio: ratio + ((1 + ratio) / 2).log()),
)
# logistic: -E - log(1 - e^-E); F = 1/(1 + x)
_LOGISTIC = Piece(lambda p, q: q / (p + q), lambda p, q: p / (p + q), lambda p, q: 1 / (p + q) ** 2)
LOGISTIC = Noise(
    "logistic",
    lambda time: time.tail() - time.value,
    Distribution(_LOGISTIC, _LOGISTIC),
    # 1 - F(w) <= min(1, e^-w), whose mean is e^-v (v + log(1 + e^-v)), and at v = L + log(1+2L), v + log 2 <= 1 + 2L
    # as log(1+2L) <= L + 0.2
    PairwiseTail(_decaying_chance, lambda ratio: ratio + (1 + 2 * ratio).log()),
)
# half-logistic: log(1 + e^-E) - log(1 - e^-E); F = (1 - x)/(1 + x)
HALF_LOGISTIC = Noise(
    "half-logistic",
    lambda time: time.lift() + time.tail(),
    Distribution(
        Piece(lambda p, q: (q - p) / (q + p), lambda p, q: 2 * p / (p + q), lambda p, q: 2 / (p + q) ** 2), None
    ),
    # 1 - F(w) <= 2 e^-w, and E[2 e^-Z] = 4 log 2 - 2 < 1, so that p(v) <= e^-v
    PairwiseTail(_decaying_chance, lambda ratio: ratio),
)

NOISES = {noise.name: noise for noise in (GUMBEL, EXPONENTIAL, LAPLACE, LOGISTIC, HALF_LOGISTIC)}


def check_noise(name: Any) -> Noise:
    """The noise of this name, which must be one."""
    if not isinstance(name, str) or name not in NOISES:
        raise InvalidValueError(f"noise must be one of {', '.join(NOISES)}, not {quote(name)}")
    return NOISES[name]


def noise_of(mechanism: Any) -> Noise:
    """The noise that a mechanism draws by: that of the exponential mechanism where it has no choice of noises."""
    return NOISES[getattr(mechanism, "noise", GUMBEL.name)]
