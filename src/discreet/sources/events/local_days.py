"""The day that a cell is in, on the calendar of a time zone, as a whole number that is the same on every engine.

An engine counts days of dates and seconds of timestamps, no more. What the clocks of a zone say is known here, from the
database of time zones that Python has, and reaches the engine as public numbers: from which second on clocks were how
far ahead of UTC. Days are numbered as `date.toordinal` does, from 1 for the first day of the year 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

from discreet.errors import InvalidTypeError, InvalidValueError, shown
from discreet.sources.events.cells import DAY_NUMBER, SECOND_NUMBER, SECONDS_PER_DAY, has_reading, read_cell
from discreet.sources.events.connect import Opened

_EPOCH = date(1970, 1, 1).toordinal()

MOST_YEARS = 200
"""So long may public periods last where a zone is named, each year of which has clock changes of its own."""

Offsets = list[tuple[int, int]]
"""How far clocks are ahead of UTC, in seconds, each with the second since 1970 from which on they are."""


def open_zone(name: Any) -> ZoneInfo:
    """The time zone of a name."""
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, TypeError, OSError):
        raise InvalidValueError(
            f"zone must be the name of a time zone such as 'Europe/Berlin', not {shown(name)}; "
            "where the system has none, pip install tzdata"
        ) from None


def find_offsets(zone: ZoneInfo, first: date, last: date) -> Offsets:
    """How far the clocks of a zone are ahead of UTC, at every moment that is on one of these days there."""
    if last.year - first.year >= MOST_YEARS:
        raise InvalidValueError(
            f"groups must lie within {MOST_YEARS} years where a zone is named, not from {first.year} to {last.year}"
        )
    # A moment of a day is at most a day away from it in UTC, and Python converts none at the ends of the calendar.
    begin, end = max(first.toordinal() - 2, 3), min(last.toordinal() + 2, date.max.toordinal() - 2)
    return list(_merge_offsets(zone, (begin - _EPOCH) * SECONDS_PER_DAY, (end - _EPOCH) * SECONDS_PER_DAY))


def _merge_offsets(zone: ZoneInfo, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """One pair for each change of the clocks, found day by day: no zone has ever had two within three days."""
    before = _offset_at(zone, begin)
    yield begin, before
    for second in range(begin, end, SECONDS_PER_DAY):
        after = _offset_at(zone, second + SECONDS_PER_DAY)
        if after != before:
            yield _find_change(zone, second, second + SECONDS_PER_DAY), after
        before = after


def _find_change(zone: ZoneInfo, low: int, high: int) -> int:
    """The first second with the offset of `high`, between two that have different ones."""
    after = _offset_at(zone, high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _offset_at(zone, middle) == after else (middle, high)
    return high


def _offset_at(zone: ZoneInfo, second: int) -> int:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
    return (moment.astimezone(zone).utcoffset() or timedelta(0)) // timedelta(seconds=1)


def check_moments(column: str, opened: Opened) -> None:
    """Refuses a column that has no moments, or an engine of which it is not known how it counts them."""
    values, dialect = opened.table[column], opened.dialect
    declared, dtype = column not in opened.undeclared, values.type()
    if declared and not (dtype.is_date() or dtype.is_timestamp() or dtype.is_string()):
        raise InvalidTypeError(
            f"by must be a period of a column of dates, timestamps or text, and {shown(column)} is of {dtype}"
        )
    if declared and not any(has_reading(dialect, values, kind) for kind in (DAY_NUMBER, SECOND_NUMBER)):
        raise InvalidValueError(
            f"by must not be a period on {opened.engine}: discreet does not know how it counts days and seconds; "
            "add a column with the period to the source data, and name that"
        )


def local_day(opened: Opened, column: Any, offsets: Offsets) -> Any:
    """The day that each cell of a column is in, as an ordinal; NULL where it is no moment. No cell makes this fail.

    A date without a time is that day in every zone.

    Parameters
    ----------
    opened
        The events.
    column
        An ibis column of them.
    offsets
        Those of the zone.
    """
    import ibis

    day = read_cell(opened.dialect, column, DAY_NUMBER) + _EPOCH
    seconds = read_cell(opened.dialect, column, SECOND_NUMBER)
    # Not below zero, for which engines round in other ways.
    ahead = seconds + _choose_offset(seconds, offsets) + _EPOCH * SECONDS_PER_DAY
    return ibis.coalesce(day, ahead // SECONDS_PER_DAY)


def _choose_offset(seconds: Any, offsets: Offsets) -> Any:
    import ibis

    if len(offsets) == 1:
        return offsets[0][1]
    until = [(seconds < change, before) for (_, before), (change, _) in pairwise(offsets)]
    return ibis.cases(*until, else_=offsets[-1][1])
