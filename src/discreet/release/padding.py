"""Running time made coarse: a release that returns only at whole multiples of a period.

How long a draw takes depends on the scores. Whoever can time it sees then only in which multiple it ended: with a
period well above the usual time that is the first, whatever the scores, and nothing is seen.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from discreet.errors import InvalidValueError, quote
from discreet.privacy import positive

AUTO = "auto"

_LONGEST = 3600
_SPIN = 0.002
"""How long before the end to stop sleeping: a sleeping process is woken up late by up to this."""


class Workload(NamedTuple):
    """What is public about how long a release takes: k of d scores in all, of a type of the machine, in some groups."""

    typed: bool
    d: int
    k: int
    counts: bool
    groups: int = 1


class Padding:
    """Ends what is visible at whole multiples of a period since `begun`; without a period, at once.

    Parameters
    ----------
    pad_to
        The period in seconds, "auto" or None, as the caller gave it.
    begun
        When the clock started, by `time.monotonic`; by default now.
    from_file
        Whether the clock also sees the command line load its parts and read a file.
    """

    def __init__(self, pad_to: Any, begun: float | None = None, from_file: bool = False) -> None:
        self._begun = time.monotonic() if begun is None else begun
        self._from_file = from_file
        self.is_auto = isinstance(pad_to, str) and pad_to == AUTO
        self._seconds = None if self.is_auto else period(pad_to, 1, 1)

    def add_elapsed(self, seconds: float) -> None:
        """Counts what was done for the release before the clock started."""
        self._begun -= seconds

    def choose_period(self, work: Workload) -> None:
        """Chooses the period of "auto" for some work, on scores that must all have one type of the machine."""
        check_auto(work.typed)
        self._seconds = period(AUTO, work.d, work.k, work.counts, self._from_file, work.groups)

    def wait(self) -> None:
        """Returns at a whole multiple of the period; at once without one."""
        if self._seconds is not None:
            wait_for_multiple(self._begun, self._seconds)

    @contextmanager
    def delay_errors(self) -> Iterator[None]:
        """Lets errors from inside out at whole multiples as well: what came before them was read in its own time."""
        try:
            yield
        except Exception:
            self.wait()
            raise


def check_auto(typed: bool) -> None:
    """Raises where how long a release takes depends on more than the number of its scores."""
    if not typed:
        raise InvalidValueError(
            "pad_to must be a number of seconds, not 'auto', unless the scores are a column or an array of a numeric "
            "type: Python objects, decimals, text and events take as long as their values ask for; take several times "
            "what your slowest release takes"
        )


def period(pad_to: Any, d: int, k: int, counts: bool = False, from_file: bool = False, groups: int = 1) -> float | None:
    """The seconds that `pad_to` stands for, in a release of k of d items, with counts or without; None for no padding.

    A count takes much longer to draw than an item.
    """
    if pad_to is None:
        return None
    if isinstance(pad_to, str) and pad_to == AUTO:
        return default_period(d, k + 200 * k * counts, from_file, groups)
    seconds = positive(pad_to, "pad_to")
    if not 1 <= 1000 * seconds <= 1000 * _LONGEST:
        raise InvalidValueError(f"pad_to must be 'auto' or from 0.001 to {_LONGEST} seconds, not {quote(pad_to)}")
    return float(seconds)


def default_period(d: int, k: int, from_file: bool = False, groups: int = 1) -> float:
    """A power of two, in seconds, several times what a release of k of d scores takes: public inputs alone."""
    # A draw that takes long is one of many groups, whose times add up to about their mean.
    begin = 0.025 + 0.002 * (groups - 1)
    # From a file, what loads the command line and Arrow comes on top, and for each item its label.
    reading = 1.5 + 4e-6 * d if from_file else 0
    return float(2.0 ** math.ceil(math.log2(begin + 1e-7 * d + 2e-6 * k + reading)))


def wait_for_multiple(begun: float, seconds: float) -> None:
    """Returns when a whole number of periods, at least one, has passed since `begun` (of `time.monotonic`)."""
    end = begun + seconds * max(1, math.ceil((time.monotonic() - begun) / seconds))
    while (left := end - time.monotonic()) > 0:
        if left > _SPIN:
            time.sleep(left - _SPIN)
