"""The noise distributions, each a value that holds all that is known of it. CONTRIBUTING.md tells how to add one.

A noise is given by G(E) = F^-1(exp(-E)), its inverse distribution function in the race time E = -log U of an element;
the formula is written once and evaluated on floats, which propose, and on balls, which decide. The slope of the log
density of every noise is at least -1, which makes selections and their order private (docs/proofs.md, section 2). All
other facts are optional: code that needs a missing one refuses. `register_noise` adds a noise from outside.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np
from flint import acb, arb
from numpy.typing import NDArray

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.exact.arrays import Floats
from discreet.exact.ball import precision
from discreet.exact.times import BallTime, Time

_RADIUS, _NODES = 0.25, 64
"""The radius of the circle on which log F is expanded, and the number of points on it."""

_TIMES = [2.0 ** (i / 4) for i in range(-160, 21)]
"""Race times from 1e-12 to 32, beyond which there is one element in 1e12 or 1e13."""

_STEP = 1 / 64
_GRID = np.arange(-60.0, 60.0, _STEP) + _STEP / 2
"""Values of noise at midpoints, none at a seam; all but a share of exp(-45) lie in between."""

_MIDDLES, _SIZES = (0.125, 0.5, 1.0), (0.25, 0.5, 1.0, 2.0, 4.0)
"""The centres and half widths of the squares on which formulas must be analytic."""

Formula = Callable[[Any, Any], Any]
"""A function of x = exp(-w), given as p and q with x = p/q so that x may be infinite; on floats or on balls."""


@dataclass(frozen=True, eq=False)
class Piece:
    """F(w) at exp(-w) = p/q; 1 - F(w); and the slope -dF/dx times 1/q^2, so that slope (q dp - p dq) is -dF."""

    below: Formula
    above: Formula
    slope: Formula


@dataclass(frozen=True, eq=False)
class Distribution:
    """The distribution function F in x = exp(-w), with one formula for w >= 0 and one for w <= 0; None stands for zero.

    Every integral over a race of such noises is then one of an analytic function between few points. The density must
    be log-concave, log F analytic in x for |x| <= 1/4, and F(0) = 1/2 if the formulas differ and there is no floor.
    """

    upper: Piece
    lower: Piece | None

    @property
    def has_seam(self) -> bool:
        """True if the formula changes at zero."""
        return self.upper is not self.lower

    def evaluate(self, w: Floats) -> tuple[Floats, Floats, Floats]:
        """Return F(w), 1 - F(w) and the density, in floats."""
        p, q = np.exp(np.minimum(-w, 0.0)), np.exp(np.minimum(w, 0.0))
        if not self.has_seam or (w.size and w.min() > 0.0):
            return _evaluate_piece(self.upper, p, q)
        # Each formula is evaluated on its own side of zero, and at zero for the other side.
        one = np.ones_like(w)
        upper = _evaluate_piece(self.upper, p, one)
        if self.lower is None:
            return np.where(w > 0, upper[0], 0.0), np.where(w > 0, upper[1], 1.0), np.where(w > 0, upper[2], 0.0)
        lower = _evaluate_piece(self.lower, one, q)
        below, above, density = (np.where(w > 0, high, low) for high, low in zip(upper, lower, strict=True))
        return below, above, density

    @cached_property
    def log_series(self) -> Floats:
        """The coefficients of log F(w) as a power series in exp(-w)."""
        powers = np.arange(_NODES // 2)
        return np.asarray(self.circle_coefficients()[powers].real / _RADIUS**powers, np.float64)

    def circle_coefficients(self) -> NDArray[np.complex128]:
        """Return the Fourier coefficients of log F on a circle around x = 0; the first half gives its power series.

        The second half belongs to negative powers, and is zero if log F is analytic inside (Cauchy).
        """
        x = _RADIUS * np.exp(2j * np.pi * np.arange(_NODES) / _NODES)
        return np.fft.fft(np.log(self.upper.below(x, np.ones(_NODES)))) / _NODES


@dataclass(frozen=True, eq=False)
class PairwiseTail:
    """Bounds on p(v), the probability that an element v behind another has the larger noisy value.

    With Z the noise of the one in front, p(v) = E[1 - F(Z + v)].

    Attributes
    ----------
    chance
        A ball around an upper bound on p(v), for v >= 0.
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
        The name in mechanisms, in files and on the command line.
    inverse
        G(E), as a formula on times.
    distribution
        F, for integrals; None if it is not known in this form.
    pairwise_tail
        Bounds on the winner of two, for bounds without data; None if none are known.
    max_stable
        True if the largest of n noises is one noise plus log n. An element then wins with probability proportional to
        exp(value), n equal elements count n times, and the values that remain after the largest is removed are
        distributed like fresh ones: a race is the exponential mechanism, and the noise is Gumbel's (Yellott, 1977).
    steepness
        A number c such that G changes by at most c (1 + E) times the change of log E.
    """

    name: str
    inverse: Callable[[Time[Any]], Any]
    distribution: Distribution | None = None
    pairwise_tail: PairwiseTail | None = None
    max_stable: bool = False
    steepness: float = 1.0

    @property
    def has_floor(self) -> bool:
        """True if it is known that no value is below zero."""
        return self.distribution is not None and self.distribution.lower is None

    def zcdp(self, epsilon: Fraction) -> Fraction:
        """Return the rho for which one winner, drawn with epsilon, is rho-zCDP."""
        # The privacy loss of an exponential mechanism has range epsilon (Cesar and Rogers, 2021), of others 2 epsilon.
        return epsilon**2 / (8 if self.max_stable else 2)

    def __reduce__(self) -> tuple[Callable[[Any], Noise], tuple[str]]:
        """Pickle a noise by its name, because formulas cannot be pickled."""
        return check_noise, (self.name,)

    def require_distribution(self) -> Distribution:
        """Return the distribution function; raise if it is not known."""
        if self.distribution is None:
            raise InvalidValueError(f"noise must be one whose distribution function is known, not {quote(self.name)}")
        return self.distribution

    def require_pairwise_tail(self) -> PairwiseTail:
        """Return the bounds on the winner of two; raise if none are known."""
        if self.pairwise_tail is None:
            raise InvalidValueError(f"noise must be one whose tail is bounded, not {quote(self.name)}")
        return self.pairwise_tail


def _evaluate_piece(piece: Piece, p: Floats, q: Floats) -> tuple[Floats, Floats, Floats]:
    with np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore"):
        # Rounding may carry 1 - F above 1, and the logarithm of the rest would not exist.
        above = np.minimum(piece.above(p, q), 1.0)
        return piece.below(p, q), above, np.nan_to_num(piece.slope(p, q) * p * q)


def _apply(function: str, value: Any) -> Any:
    """Return a function of floats, by NumPy, or of balls, by their method."""
    return getattr(np, function)(value) if isinstance(value, np.ndarray) else getattr(value, function)()


def _decaying_chance(v: arb) -> arb:
    """Return (1+v) e^-v, which is at least p(v) for each noise below."""
    return (1 + v) * (-v).exp()


# Gumbel: -log E; F = exp(-x)
_GUMBEL = Piece(
    lambda p, q: _apply("exp", -p / q),
    lambda p, q: -_apply("expm1", -p / q),
    lambda p, q: _apply("exp", -p / q) / q**2,
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
    """Return the noise of this name; raise if there is none."""
    if not isinstance(name, str) or name not in NOISES:
        raise InvalidValueError(f"noise must be one of {', '.join(NOISES)}, not {quote(name)}")
    return NOISES[name]


def noise_of(mechanism: Any) -> Noise:
    """Return the noise of a mechanism: Gumbel if it has no choice of noises."""
    return NOISES[getattr(mechanism, "noise", GUMBEL.name)]


def register_noise(noise: Noise) -> None:
    """Add a noise to those that mechanisms take by name; raise if two of its facts contradict each other."""
    if not isinstance(noise, Noise):
        raise InvalidTypeError(f"noise must be a Noise, not {quote(noise)}")
    if not isinstance(noise.name, str) or not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", noise.name):
        raise InvalidValueError(f"noise must have a name of small letters and hyphens, not {quote(noise.name)}")
    if noise.name in NOISES:
        raise InvalidValueError(f"noise must have a name that no other has, not {quote(noise.name)}")
    check_facts(noise)
    NOISES[noise.name] = noise


def check_facts(noise: Noise) -> None:
    """Raise if facts of a noise contradict each other, or the requirements on every noise.

    The checks at some points find slips and prove nothing: whoever writes a noise must have shown that the slope of its
    log density is at least -1.
    """
    with precision(256):
        points = [(arb(time), noise.inverse(BallTime(arb(time)))) for time in _TIMES]
        _check_inverse(noise, points)
        if noise.distribution is not None:
            _check_agreement(noise.distribution, points)
    if noise.distribution is not None:
        _check_shape(noise.distribution)
        _check_analytic(noise.distribution)
        if noise.pairwise_tail is not None:
            _check_pairwise_tail(noise.pairwise_tail, noise.distribution)


def _require(holds: object, what: str) -> None:
    if not holds:
        raise InvalidValueError(f"noise must {what}")


def _check_inverse(noise: Noise, points: list[tuple[arb, arb]]) -> None:
    for (early, large), (late, small) in pairwise(points):
        _require(small < large, "have an inverse that falls with the time")
        most = arb(noise.steepness) * (late / early).log() * (1 + late)
        _require(not large - small > most, f"move by at most its steepness, which {noise.steepness} is not")
    # The slope of the log density is at least -1 if F is convex in x = exp(-w), as -dF/dx = f(w) exp(w). Then the
    # difference quotients (F(x') - F(x)) / (x' - x) of neighbouring points do not decrease.
    slopes = [
        ((-late).exp() - (-early).exp()) / ((-small).exp() - (-large).exp())
        for (early, large), (late, small) in pairwise(points)
    ]
    private = not any(following < slope for slope, following in pairwise(slopes))
    _require(private, "have a log density whose slope is at least -1, or selections with it are not private")
    if noise.max_stable:
        shifts = [value + time.log() for time, value in points]
        _require(all(shift.overlaps(shifts[0]) for shift in shifts), "be Gumbel's to be max-stable")


def _check_agreement(distribution: Distribution, points: list[tuple[arb, arb]]) -> None:
    """Check F(G(E)) = exp(-E), 1 - F and the slope."""
    known = []
    for time, value in points:
        piece = distribution.lower if value < 0 else distribution.upper
        _require(piece is not None, "have no value below the floor of its distribution")
        if piece is not None:
            x, one = (-value).exp(), arb(1)
            below, above, slope = piece.below(x, one), piece.above(x, one), piece.slope(x, one)
            same = below.overlaps((-time).exp()) and above.overlaps(-((-time).expm1()))
            _require(same, "have a distribution function whose inverse is its inverse")
            known.append((x, below, slope))
    for (x, below, slope), (further, less, gentler) in pairwise(known):
        chord = (below - less) / (further - x)
        _require(not (chord > slope or chord < gentler), "have a distribution function with the slope that it states")


def _check_analytic(distribution: Distribution) -> None:
    """Check that each formula is analytic wherever it has a finite value on a square; integrals rely on that.

    Its mean over a circle in the square is then its value in the middle; a root or a logarithm with a branch cut
    through the circle fails.
    """
    pieces = [piece for piece in (distribution.upper, distribution.lower) if piece is not None]
    formulas = [formula for piece in pieces for formula in (piece.below, piece.above, piece.slope)]
    with precision(256):
        # Evenly spaced points of the unit circle, none of them real.
        circle = [acb(arb(2 * i + 1) / 64).exp_pi_i() for i in range(64)]
        for formula, middle, size in product(formulas, _MIDDLES, _SIZES):
            on_square = formula(acb(arb(middle, size), arb(0, size)), acb(1))
            if not (on_square.real.is_finite() and on_square.imag.is_finite()):
                continue
            around = [formula(acb(middle) + size / 2 * turn, acb(1)) for turn in circle]
            off = abs(sum(around, acb(0)) / len(around) - formula(acb(middle), acb(1)))
            _require(
                not off > 1e-12 * (1.0 + max(float(abs(value).upper()) for value in around)),
                "have a distribution function that is analytic wherever it has a value: a root or a logarithm of "
                "complex balls takes analytic=True",
            )


def _check_shape(distribution: Distribution) -> None:
    """Check the requirements of `Distribution`."""
    below, above, density = distribution.evaluate(_GRID)
    light = below[_GRID < -45.0].max() < np.exp(-42.0) and above[_GRID > 45.0].max() < np.exp(-42.0)
    _require(light, "have a distribution whose tails fall as fast as exp(-|w|)")
    logs = np.log(density[density > 0.0])
    _require(np.diff(logs, 2).max() < 1e-9, "have a distribution whose density is log-concave")
    # The second half of the coefficients belongs to negative powers.
    negative = np.abs(distribution.circle_coefficients())[_NODES // 2 :]
    _require(negative.max() < 1e-12, "have a distribution whose logarithm is a series in exp(-w)")
    if distribution.has_seam and distribution.lower is not None:
        middle = distribution.evaluate(np.array([-1e-12, 1e-12]))[0]
        _require(np.abs(middle - 0.5).max() < 1e-9, "have a distribution that is 1/2 where its formula changes")


def _check_pairwise_tail(tail: PairwiseTail, distribution: Distribution) -> None:
    """Check the bounds on the winner of two at some distances, by a sum over the grid."""
    _, _, density = distribution.evaluate(_GRID)
    for distance in range(0, 31, 2):
        stated = float(tail.chance(arb(distance)).upper())
        _require(_beats(distribution, density, distance) <= stated * 1.001, "have a pairwise tail that is no less")
    for ratio in range(1, 30, 2):
        height = float(tail.height(arb(ratio)).upper())
        enough = np.exp(ratio) * _beats(distribution, density, height) <= 1.001
        _require(enough, "have a pairwise tail whose heights are high enough")


def _beats(distribution: Distribution, density: Floats, distance: float) -> float:
    """Return the approximate probability that an element beats another that is `distance` in front."""
    _, above, _ = distribution.evaluate(_GRID + distance)
    return float((density * above).sum() * _STEP)
