"""Values as whole steps: the clip bounds in units of a resolution that divides them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.privacy import Sensitivity, exact, positive

MOST_STEPS = 10**9
"""The most steps of resolution that a clip bound may have, and at which a row saturates: sums then fit 64 bits for
more than nine billion users, and engines with decimals use those anyway."""


_LEAST, _GREATEST = Fraction(1, 10**250), Fraction(10**250)
"""So far a billion steps, and a quarter of a step, are doubles."""


class Steps:
    """Values as whole steps: the clip bounds and the saturation of a row, in steps of the resolution."""

    def __init__(self, low: Fraction, high: Fraction, resolution: Fraction) -> None:
        self.resolution = resolution
        self.low, self.high = int(low / resolution), int(high / resolution)

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one user can move a sum."""
        return Sensitivity(max(0, -self.low) * self.resolution, max(0, self.high) * self.resolution)


def steps_of(value: Any, clip: Any, resolution: Any) -> Steps | None:
    """The steps that the arguments of `events` ask for; None where scores count users."""
    if value is None:
        for argument, given in (("clip", clip), ("resolution", resolution)):
            if given is not None:
                raise InvalidValueError(f"{argument} must be left out without value, because scores then count users")
        return None
    if clip is None:
        raise InvalidValueError("clip must be given with value, as (low, high): the most one user may move a score")
    try:
        given_low, given_high = clip
    except (TypeError, ValueError):
        raise InvalidTypeError(f"clip must be a pair (low, high), not {quote(clip)}") from None
    low, high = exact(given_low, "clip low"), exact(given_high, "clip high")
    if low > high:
        raise InvalidValueError(f"clip must be (low, high) with low at most high, not {quote(clip)}")
    if low == high == 0:
        raise InvalidValueError("clip must leave room for a score to move, not (0, 0)")
    unit = _resolution(resolution, low, high)
    if max(abs(low), abs(high)) / unit > MOST_STEPS:
        raise InvalidValueError(
            f"resolution must leave the clip bounds at most {MOST_STEPS} steps, not {quote(resolution)}"
        )
    return Steps(low, high, unit)


def _resolution(resolution: Any, low: Fraction, high: Fraction) -> Fraction:
    if resolution is None:
        if low.denominator == high.denominator == 1:
            return Fraction(1)
        raise InvalidValueError("resolution must be given where clip is not in whole numbers, for example '0.01'")
    unit = positive(resolution, "resolution")
    if not _LEAST <= unit <= _GREATEST:
        raise InvalidValueError(f"resolution must be from 1e-250 to 1e250, not {quote(resolution)}")
    if (low / unit).denominator != 1 or (high / unit).denominator != 1:
        raise InvalidValueError(
            f"resolution must divide the clip bounds {low} and {high}, and {quote(resolution)} does not"
        )
    return unit
