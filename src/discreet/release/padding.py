"""Make running time coarse: a release returns only at whole multiples of a period.

The time of a draw depends on the scores. An observer of a padded release learns only the multiple at which it ended;
with a period well above the usual time that is the first multiple, whatever the scores.
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
"""The longest period in seconds: an hour, far above any release."""
_SPIN = 0.002
"""The seconds before the end at which sleeping stops: the operating system wakes a process late by up to this much."""


class Workload(NamedTuple):
    """The public facts that determine how long a release takes: k of d scores, their type, counts and groups."""

    typed: bool
    d: int
    k: int
    counts: bool
    groups: int = 1


class Padding:
    """A clock that ends visible steps at whole multiples of a period since `begun`; without a period, at once.

    Parameters
    ----------
    pad_to
        The period in seconds, "auto" or None, as the caller gave it.
    begun
        The start of the clock by `time.monotonic`; by default now.
    from_file
        True if the clock also covers the start of the command line and reading a file.
    """

    def __init__(self, pad_to: Any, begun: float | None = None, from_file: bool = False) -> None:
        self._begun = time.monotonic() if begun is None else begun
        self._from_file = from_file
        self.is_auto = isinstance(pad_to, str) and pad_to == AUTO
        self._seconds = None if self.is_auto else period(pad_to, 1, 1)

    def add_elapsed(self, seconds: float) -> None:
        """Add the time spent on the release before the clock started."""
        self._begun -= seconds

    def choose_period(self, work: Workload) -> None:
        """Choose the period of "auto" for a workload, whose scores must all have one machine type."""
        check_auto(work.typed)
        self._seconds = period(AUTO, work.d, work.k, work.counts, self._from_file, work.groups)

    def wait(self) -> None:
        """Wait for a whole multiple of the period; return at once without a period."""
        if self._seconds is not None:
            wait_for_multiple(self._begun, self._seconds)

    @contextmanager
    def delay_errors(self) -> Iterator[None]:
        """Delay errors of the block to whole multiples as well, because they follow reads that took private time."""
        try:
            yield
        except Exception:
            self.wait()
            raise


def check_auto(typed: bool) -> None:
    """Raise if the time of a release depends on more than the number of its scores."""
    if not typed:
        raise InvalidValueError(
            "pad_to must be a number of seconds, not 'auto', unless the scores are a column or an array of a numeric "
            "type: Python objects, decimals, text and events take as long as their values ask for; take several times "
            "what your slowest release takes"
        )


def period(pad_to: Any, d: int, k: int, counts: bool = False, from_file: bool = False, groups: int = 1) -> float | None:
    """Return the seconds that `pad_to` means for a release of k of d items, or None for no padding.

    Drawing a count takes about as long as drawing 200 items.
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
    """Return a power of two in seconds, several times what a release of k of d scores takes; all inputs are public."""
    # The draws of many groups add up, and slow ones average out.
    begin = 0.025 + 0.002 * (groups - 1)
    # A file adds the start of the command line and of Arrow, and the label of each item.
    reading = 1.5 + 4e-6 * d if from_file else 0
    return float(2.0 ** math.ceil(math.log2(begin + 1e-7 * d + 2e-6 * k + reading)))


def wait_for_multiple(begun: float, seconds: float) -> None:
    """Wait until a whole number of periods, at least one, has passed since `begun` (by `time.monotonic`)."""
    end = begun + seconds * max(1, math.ceil((time.monotonic() - begun) / seconds))
    while (left := end - time.monotonic()) > 0:
        if left > _SPIN:
            time.sleep(left - _SPIN)
