"""The five noises whose log survival function is 1-Lipschitz, each one small value.

A noise is given by G(E) = F^-1(exp(-E)), its inverse distribution function in the race time E = -log U of an element
(design: section 3). The smaller the time, the larger the noise, and the first of n arrivals comes at Exp(1)/n. The
formula is written once and runs on floats, which only propose, and on balls, which decide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from discreet.errors import InvalidValueError, shown
from discreet.exact.times import Time


@dataclass(frozen=True)
class Noise:
    """One noise: its name, G(E) as a formula on times, and whether it has a least value."""

    name: str
    inverse: Callable[[Time[Any]], Any]
    has_floor: bool = False


# Gumbel: -log E
GUMBEL = Noise("gumbel", lambda time: -time.log())
# exponential: -log(1 - e^-E)
EXPONENTIAL = Noise("exponential", lambda time: time.tail(), has_floor=True)
# Laplace: -log 2 - log(1 - e^-E) for E < log 2, and log 2 - E after
LAPLACE = Noise("laplace", lambda time: time.before_log2(time.tail() - time.log2, time.log2 - time.value))
# logistic: -E - log(1 - e^-E)
LOGISTIC = Noise("logistic", lambda time: time.tail() - time.value)
# half-logistic: log(1 + e^-E) - log(1 - e^-E)
HALF_LOGISTIC = Noise("half-logistic", lambda time: time.lift() + time.tail(), has_floor=True)

NOISES = {noise.name: noise for noise in (GUMBEL, EXPONENTIAL, LAPLACE, LOGISTIC, HALF_LOGISTIC)}


def check_noise(name: Any) -> None:
    """Raises unless `name` is the name of a noise."""
    if not isinstance(name, str) or name not in NOISES:
        raise InvalidValueError(f"noise must be one of {', '.join(NOISES)}, not {shown(name)}")
