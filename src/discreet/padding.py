"""Running time made coarse: a release that returns only at whole multiples of a period.

How long a draw takes depends on the scores. Whoever can time it sees then only in which multiple it ended: with a
period well above the usual time that is the first, whatever the scores, and nothing is seen.
"""

from __future__ import annotations

import math
import time
from typing import Any

from discreet.errors import InvalidValueError, shown
from discreet.privacy import positive

_LONGEST = 3600
_SPIN = 0.002
"""How long before the end to stop sleeping: a sleeping process is woken up late by up to this."""


def period(pad_to: Any, d: int, k: int, counts: bool = False) -> float | None:
    """The seconds that `pad_to` stands for, in a release of k of d items, with counts or without; None for no padding.

    A count takes much longer to draw than an item.
    """
    if pad_to is None:
        return None
    if isinstance(pad_to, str) and pad_to == "auto":
        return default_period(d, k + 200 * k * counts)
    seconds = positive(pad_to, "pad_to")
    if not 1 <= 1000 * seconds <= 1000 * _LONGEST:
        raise InvalidValueError(f"pad_to must be 'auto' or from 0.001 to {_LONGEST} seconds, not {shown(pad_to)}")
    return float(seconds)


def default_period(d: int, k: int) -> float:
    """A power of two, in seconds, several times what a release of k of d scores takes: public inputs alone."""
    return float(2.0 ** math.ceil(math.log2(0.025 + 1e-7 * d + 2e-6 * k)))


def wait_for_multiple(begun: float, seconds: float) -> None:
    """Returns when a whole number of periods, at least one, has passed since `begun` (of `time.monotonic`)."""
    end = begun + seconds * max(1, math.ceil((time.monotonic() - begun) / seconds))
    while (left := end - time.monotonic()) > 0:
        if left > _SPIN:
            time.sleep(left - _SPIN)
