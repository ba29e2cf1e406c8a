"""Takes a noise from outside, after its facts have been held against each other at some points.

The checks find a slip and prove nothing: privacy rests on whoever writes a noise to have shown that the slope of its
log density is at least -1. With x = exp(-w) that slope is at least -1 where F is a convex function of x, for
-dF/dx = f(w) exp(w): so a noise that is too narrow has three points (x, F) that are not convex.
"""

from __future__ import annotations

import re
from itertools import pairwise, product

import numpy as np
from flint import acb, arb

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.exact.arrays import Floats
from discreet.exact.ball import precision
from discreet.exact.times import BallTime
from discreet.noise import NOISES, Distribution, Formula, Noise, PairwiseTail

_TIMES = [2.0 ** (i / 4) for i in range(-160, 21)]
"""From 1e-12 to 32: beyond, there is one element in 1e12 or 1e13."""

_STEP = 1 / 64
_GRID = np.arange(-60.0, 60.0, _STEP) + _STEP / 2
"""Values of noise: all but one in exp(45) are between, and none is at a seam."""


def register_noise(noise: Noise) -> None:
    """Adds a noise to those that mechanisms take by name; raises where two of its facts do not agree."""
    if not isinstance(noise, Noise):
        raise InvalidTypeError(f"noise must be a Noise, not {quote(noise)}")
    if not isinstance(noise.name, str) or not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", noise.name):
        raise InvalidValueError(f"noise must have a name of small letters and hyphens, not {quote(noise.name)}")
    if noise.name in NOISES:
        raise InvalidValueError(f"noise must have a name that no other has, not {quote(noise.name)}")
    check_facts(noise)
    NOISES[noise.name] = noise


def check_facts(noise: Noise) -> None:
    """Raises where facts of a noise contradict each other, or what every noise must be."""
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
    # (F(x') - F(x)) / (x' - x) of neighbouring points does not fall where F is convex in x.
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
    """F(G(E)) = exp(-E), with 1 - F and the slope to it."""
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
    """Where a formula has a finite value on a square of the plane, it must be analytic there: integrals rely on that.

    Then its mean over a circle in the square is the value in the middle, which a root or a logarithm with a cut through
    the circle does not have.
    """
    pieces = [piece for piece in (distribution.upper, distribution.lower) if piece is not None]
    formulas = [formula for piece in pieces for formula in (piece.below, piece.above, piece.slope)]
    with precision(256):
        for formula, middle, size in product(formulas, _MIDDLES, _SIZES):
            _require(
                _has_mean_value(formula, middle, size),
                "have a distribution function that is analytic wherever it has a value: a root or a logarithm of "
                "complex balls takes analytic=True",
            )


def _has_mean_value(formula: Formula, middle: float, size: float) -> bool:
    """Whether a formula has no value on a square, or one in its middle that is the mean over a circle."""
    if not _is_finite(formula(acb(arb(middle, size), arb(0, size)), acb(1))):
        return True
    around = [formula(acb(middle) + size / 2 * turn, acb(1)) for turn in _turns()]
    off = abs(sum(around, acb(0)) / len(around) - formula(acb(middle), acb(1)))
    return not off > 1e-12 * (1.0 + max(float(abs(value).upper()) for value in around))


_MIDDLES, _SIZES = (0.125, 0.5, 1.0), (0.25, 0.5, 1.0, 2.0, 4.0)


def _turns(count: int = 64) -> list[acb]:
    """Points on the circle around zero, evenly spaced and none of them real."""
    return [acb(arb(2 * i + 1) / count).exp_pi_i() for i in range(count)]


def _is_finite(value: acb) -> bool:
    return bool(value.real.is_finite() and value.imag.is_finite())


def _check_shape(distribution: Distribution) -> None:
    """What integrals over the distribution rely on: see `Distribution`."""
    below, above, density = distribution.evaluate(_GRID)
    light = below[_GRID < -45.0].max() < np.exp(-42.0) and above[_GRID > 45.0].max() < np.exp(-42.0)
    _require(light, "have a distribution whose tails fall as fast as exp(-|w|)")
    logs = np.log(density[density > 0.0])
    _require(np.diff(logs, 2).max() < 1e-9, "have a distribution whose density is log-concave")
    negative = np.abs(distribution.circle_coefficients())[_POWERS:]
    _require(negative.max() < 1e-12, "have a distribution whose logarithm is a series in exp(-w)")
    if distribution.has_seam and distribution.lower is not None:
        middle = distribution.evaluate(np.array([-1e-12, 1e-12]))[0]
        _require(np.abs(middle - 0.5).max() < 1e-9, "have a distribution that is 1/2 where its formula changes")


_POWERS = 32
"""How many coefficients belong to powers from 0 on."""


def _check_pairwise_tail(tail: PairwiseTail, distribution: Distribution) -> None:
    """The bounds on the chance of one element to beat another, at some distances, by a sum over the grid."""
    _, _, density = distribution.evaluate(_GRID)
    for distance in range(0, 31, 2):
        stated = float(tail.chance(arb(distance)).upper())
        _require(_beats(distribution, density, distance) <= stated * 1.001, "have a pairwise tail that is no less")
    for ratio in range(1, 30, 2):
        height = float(tail.height(arb(ratio)).upper())
        enough = np.exp(ratio) * _beats(distribution, density, height) <= 1.001
        _require(enough, "have a pairwise tail whose heights are high enough")


def _beats(distribution: Distribution, density: Floats, distance: float) -> float:
    """About the chance of an element to beat another that is so far in front."""
    _, above, _ = distribution.evaluate(_GRID + distance)
    return float((density * above).sum() * _STEP)
