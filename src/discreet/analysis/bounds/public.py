"""What a bound is computed from, checked: sizes, epsilon, the noise, and numbers with a range of their own."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.errors import InvalidTypeError, InvalidValueError, shown
from discreet.mechanisms.base import scale
from discreet.mechanisms.canonical import check_gamma
from discreet.noise import check_noise
from discreet.privacy import Number, Sensitivity, exact, positive

_MOST = 1 << 63
"""The largest domain that a release can have."""


@dataclass(frozen=True)
class Setting:
    """A release of k of d items, where one unit of loss costs s = epsilon / (2 delta) of log weight."""

    d: int
    k: int
    s: Fraction


def setting(d: int, k: int, epsilon: Number, noise: str, sensitivity: Sensitivity | None, adjacency: str) -> Setting:
    """The release that the arguments describe, if they describe one."""
    items, chosen = sizes(d, k)
    if sensitivity is not None and not isinstance(sensitivity, Sensitivity):
        raise InvalidTypeError(f"sensitivity must be a Sensitivity(down=..., up=...), not {shown(sensitivity)}")
    s = scale(positive(epsilon, "epsilon"), (sensitivity or Sensitivity()).under(adjacency))
    check_noise(noise)
    return Setting(items, chosen, s)


def sizes(d: int, k: int) -> tuple[int, int]:
    """The number of items, and how many of them are released."""
    items = _whole(d, "d", _MOST, "2^63")
    return items, _whole(k, "k", items, f"{items}, the number of items")


def level_of(alpha: Number) -> Fraction:
    """The probability with which a bound may fail."""
    level = exact(alpha, "alpha")
    if not 0 < level < 1:
        raise InvalidValueError(f"alpha must be above 0 and below 1, not {shown(alpha)}")
    return level


def share_of_worst(gamma: Number, why: str) -> Fraction:
    """A gamma above zero, for bounds that divide by it; `why` says what is lost without."""
    share = check_gamma(gamma)
    if share == 0:
        raise InvalidValueError(f"gamma must be above 0, not {shown(gamma)}: {why}")
    return share


def not_negative(value: Number, name: str) -> Fraction:
    """A distance of scores."""
    number = exact(value, name)
    if number < 0:
        raise InvalidValueError(f"{name} must be zero or more, not {shown(value)}")
    return number


def _whole(value: Any, name: str, most: int, limit: str) -> int:
    message = f"{name} must be a whole number from 1 to {limit}, not {shown(value)}"
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidTypeError(message)
    if not 1 <= value <= most:
        raise InvalidValueError(message)
    return int(value)
