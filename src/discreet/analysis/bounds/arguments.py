"""What a bound is computed from, checked: sizes, epsilon, the noise, and numbers with a range of their own."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import InvalidValueError, quote
from discreet.mechanisms.base import scale
from discreet.mechanisms.canonical import check_gamma
from discreet.noise import Noise, PairwiseTail, check_noise
from discreet.privacy import Number, Sensitivity, exact, positive, sensitivity_or_default, whole_number

_MOST = 1 << 63
"""The largest domain that a release can have."""


@dataclass(frozen=True)
class Setting:
    """A release of k of d items, where one unit of loss costs s = epsilon / (2 delta) of log weight."""

    d: int
    k: int
    s: Fraction
    noise: Noise

    @property
    def tail(self) -> PairwiseTail:
        """What bounds how far behind the best an element may be that still wins."""
        return self.noise.require_pairwise_tail()


def check_setting(
    d: int, k: int, epsilon: Number, noise: str, sensitivity: Sensitivity | None, adjacency: str
) -> Setting:
    """The release that the arguments describe, if they describe one."""
    items, chosen = check_sizes(d, k)
    limit = sensitivity_or_default(sensitivity)
    s = scale(positive(epsilon, "epsilon"), limit.under(adjacency))
    return Setting(items, chosen, s, check_noise(noise))


def check_sizes(d: int, k: int) -> tuple[int, int]:
    """The number of items, and how many of them are released."""
    items = whole_number(d, "d", 1, _MOST, "2^63")
    return items, whole_number(k, "k", 1, items, f"{items}, the number of items")


def check_alpha(alpha: Number) -> Fraction:
    """The probability with which a bound may fail."""
    level = exact(alpha, "alpha")
    if not 0 < level < 1:
        raise InvalidValueError(f"alpha must be above 0 and below 1, not {quote(alpha)}")
    return level


def check_positive_gamma(gamma: Number, why: str) -> Fraction:
    """A gamma above zero, for bounds that divide by it; `why` says what is lost without."""
    share = check_gamma(gamma)
    if share == 0:
        raise InvalidValueError(f"gamma must be above 0, not {quote(gamma)}: {why}")
    return share


def check_not_negative(value: Number, name: str) -> Fraction:
    """A distance of scores."""
    number = exact(value, name)
    if number < 0:
        raise InvalidValueError(f"{name} must be zero or more, not {quote(value)}")
    return number
