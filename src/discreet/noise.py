"""The five noises whose log survival function is 1-Lipschitz, each one small value.

A noise is given by G(E) = F^-1(exp(-E)), its inverse distribution function in the race time E = -log U of an element
(design: section 3). The smaller the time, the larger the noise, and the first of n arrivals comes at Exp(1)/n. The
formula is written once and runs on floats, which only propose, and on balls, which decide.

For what is integrated and not drawn, a noise also has its distribution function F(w), written in x = exp(-w) = p/q so
that x may be infinite, with one formula for w >= 0 and one for w <= 0: then every integral over a race of such noises
is one of an analytic function between few points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import InvalidValueError, shown
from discreet.exact.times import Time


@dataclass(frozen=True)
class Piece:
    """F(w) where exp(-w) = p/q; 1 - F(w); and the slope -dF/dx there, times 1/q^2: slope * (q dp - p dq) is -dF."""

    below: Callable[[Any, Any], Any]
    above: Callable[[Any, Any], Any]
    slope: Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Noise:
    """One noise: its name, G(E) as a formula on times, and F for w >= 0 and w <= 0, where None stands for zero."""

    name: str
    inverse: Callable[[Time[Any]], Any]
    upper: Piece
    lower: Piece | None

    @property
    def has_floor(self) -> bool:
        """Whether no value is below zero."""
        return self.lower is None


# Gumbel: -log E; F = exp(-x)
_GUMBEL = Piece(
    lambda p, q: _exp(-p / q),
    lambda p, q: -_expm1(-p / q),
    lambda p, q: _exp(-p / q) / q**2,
)
GUMBEL = Noise("gumbel", lambda time: -time.log(), _GUMBEL, _GUMBEL)
# exponential: -log(1 - e^-E); F = 1 - x
EXPONENTIAL = Noise(
    "exponential",
    lambda time: time.tail(),
    Piece(lambda p, q: (q - p) / q, lambda p, q: p / q, lambda p, q: 1 / q**2),
    None,
)
# Laplace: -log 2 - log(1 - e^-E) for E < log 2, and log 2 - E after; F = 1 - x/2 for x <= 1, and 1/(2x) after
LAPLACE = Noise(
    "laplace",
    lambda time: time.before_log2(time.tail() - time.log2, time.log2 - time.value),
    Piece(lambda p, q: (2 * q - p) / (2 * q), lambda p, q: p / (2 * q), lambda p, q: 1 / (2 * q**2)),
    Piece(lambda p, q: q / (2 * p), lambda p, q: (2 * p - q) / (2 * p), lambda p, q: 1 / (2 * p**2)),
)
# logistic: -E - log(1 - e^-E); F = 1/(1 + x)
_LOGISTIC = Piece(lambda p, q: q / (p + q), lambda p, q: p / (p + q), lambda p, q: 1 / (p + q) ** 2)
LOGISTIC = Noise("logistic", lambda time: time.tail() - time.value, _LOGISTIC, _LOGISTIC)
# half-logistic: log(1 + e^-E) - log(1 - e^-E); F = (1 - x)/(1 + x)
HALF_LOGISTIC = Noise(
    "half-logistic",
    lambda time: time.lift() + time.tail(),
    Piece(lambda p, q: (q - p) / (q + p), lambda p, q: 2 * p / (p + q), lambda p, q: 2 / (p + q) ** 2),
    None,
)

NOISES = {noise.name: noise for noise in (GUMBEL, EXPONENTIAL, LAPLACE, LOGISTIC, HALF_LOGISTIC)}


def check_noise(name: Any) -> None:
    """Raises unless `name` is the name of a noise."""
    if not isinstance(name, str) or name not in NOISES:
        raise InvalidValueError(f"noise must be one of {', '.join(NOISES)}, not {shown(name)}")


def _exp(value: Any) -> Any:
    return np.exp(value) if isinstance(value, np.ndarray) else value.exp()


def _expm1(value: Any) -> Any:
    return np.expm1(value) if isinstance(value, np.ndarray) else value.expm1()
