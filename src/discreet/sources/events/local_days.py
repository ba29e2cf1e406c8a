"""The public days that a moment can be in, as numbers that an engine can look up.

An engine counts the days of dates and the seconds of timestamps, no more. What the clocks of a zone say is known here,
from the database of time zones that Python has, and reaches the engine as a public table. Every moment has a code, in
half seconds: a point in time is in the middle of its second in UTC, and a date without a time at the begin of its day.
Days are numbered as `date.toordinal` does. A period is a set of codes, which the table holds day by day, so that a
moment is looked up by its day.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.exact.arrays import count_up
from discreet.sources.column_hints import suggestion
from discreet.sources.events.cells import DAY_NUMBER, SECOND_NUMBER, SECONDS_PER_DAY, has_reading, read_cell
from discreet.sources.events.connect import Opened

_EPOCH = date(1970, 1, 1).toordinal()

CODES_PER_DAY = 2 * SECONDS_PER_DAY

MOST_YEARS = 200
"""So long may public periods last where a zone is named, each year of which has clock changes of its own."""

Offsets = tuple[tuple[int, int], ...]
"""How far clocks are ahead of UTC, in seconds, each with the second from which on they are, 86,400 times its day."""


def open_zone(name: Any) -> ZoneInfo:
    """The time zone of a name."""
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, TypeError, OSError):
        known = sorted(available_timezones())
        hint = suggestion(name, known, private=False) if known else "; the system has none: pip install tzdata"
        raise InvalidValueError(
            f"zone must be the name of a time zone such as 'Europe/Berlin', not {quote(name)}{hint}"
        ) from None


@lru_cache(maxsize=16)
def find_offsets(zone: ZoneInfo, first: date, last: date) -> Offsets:
    """How far the clocks of a zone are ahead of UTC, at every moment that is on one of these days there."""
    if last.year - first.year >= MOST_YEARS:
        raise InvalidValueError(
            f"groups must lie within {MOST_YEARS} years where a zone is named, not from {first.year} to {last.year}"
        )
    # A moment of a day is at most a day away from it in UTC, and Python converts none at the ends of the calendar.
    begin, end = max(first.toordinal() - 2, 3), min(last.toordinal() + 2, date.max.toordinal() - 2)
    return tuple(_merge_offsets(zone, begin * SECONDS_PER_DAY, end * SECONDS_PER_DAY))


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
    moment = datetime(1, 1, 1, tzinfo=UTC) + timedelta(seconds=second - SECONDS_PER_DAY)
    return (moment.astimezone(zone).utcoffset() or timedelta(0)) // timedelta(seconds=1)


def check_moments(column: str, opened: Opened, argument: str = "by") -> None:
    """Refuses a column that has no moments, or an engine of which it is not known how it counts them."""
    values, dialect = opened.table[column], opened.dialect
    declared, dtype = column not in opened.undeclared, values.type()
    if declared and not (dtype.is_date() or dtype.is_timestamp() or dtype.is_string()):
        raise InvalidTypeError(
            f"{argument} must be a period of a column of dates, timestamps or text, and {quote(column)} is of {dtype}"
        )
    if declared and not any(has_reading(dialect, values, kind) for kind in (DAY_NUMBER, SECOND_NUMBER)):
        raise InvalidValueError(
            f"{argument} must not be a period on {opened.engine}: discreet does not know how it counts days and "
            "seconds; add a column with the period to the source data, and name that"
        )


def code_moments(opened: Opened, column: Any) -> Any:
    """The code of each cell of a column, NULL where it is no moment. No cell makes this fail.

    Parameters
    ----------
    opened
        The events.
    column
        An ibis column of them.
    """
    import ibis

    day = read_cell(opened.dialect, column, DAY_NUMBER) + _EPOCH
    seconds = read_cell(opened.dialect, column, SECOND_NUMBER) + _EPOCH * SECONDS_PER_DAY
    return ibis.coalesce(day * CODES_PER_DAY, 2 * seconds + 1)


def is_within(opened: Opened, column: Any, first: date, last: date, zone: str | None) -> Any:
    """Whether a cell of a column is a moment of the days from the first to the last of a zone; None for UTC.

    It is never true of a cell that is no moment, and no cell makes it fail.
    """
    from functools import reduce
    from operator import or_

    day = read_cell(opened.dialect, column, DAY_NUMBER) + _EPOCH
    second = read_cell(opened.dialect, column, SECOND_NUMBER) + _EPOCH * SECONDS_PER_DAY
    begin, end = first.toordinal(), last.toordinal()
    pieces = [(begin * CODES_PER_DAY, (end + 1) * CODES_PER_DAY - 1)]
    if zone is not None:
        low, high, _ = _convert_to_utc(np.array([begin]), np.array([end]), find_offsets(open_zone(zone), first, last))
        pieces = list(zip(low.tolist(), high.tolist(), strict=True))
    return reduce(or_, [day.between(begin, end), *(second.between(a // 2, b // 2) for a, b in pieces)])


def list_codes(firsts: Sequence[date], lasts: Sequence[date], zone: str | None) -> dict[str, Any]:
    """The codes of the moments in each of some periods, as columns of a public table.

    Parameters
    ----------
    firsts, lasts
        The first and the last day of each period.
    zone
        The zone on whose calendar they are; None for UTC.

    Returns
    -------
    columns
        Each row is a day, `key`, the first and the last code of a piece of it, `low` and `high`, and the index of the
        period that the piece is in, `number`.
    """
    begins, ends = (np.array([day.toordinal() for day in days]) for days in (firsts, lasts))
    dates = _split_by_day(begins * CODES_PER_DAY, (ends + 1) * CODES_PER_DAY - 1, np.arange(len(begins)))
    if zone is None:
        return dates
    dates["high"] = dates["low"]
    offsets = find_offsets(open_zone(zone), min(firsts), max(lasts))
    times = _split_by_day(*_convert_to_utc(begins, ends, offsets))
    # Dates are the same in every zone, and no points in time, whose codes are odd.
    times["low"] |= 1
    return {name: np.concatenate([dates[name], times[name]]) for name in dates}


def _convert_to_utc(begins: Any, ends: Any, offsets: Offsets) -> tuple[Any, Any, Any]:
    """The first and the last code in UTC of each piece of a period between two clock changes, and the period."""
    first, after = begins * SECONDS_PER_DAY, (ends + 1) * SECONDS_PER_DAY
    pieces = []
    for (change, ahead), (following, _) in pairwise([(-_FAR, offsets[0][1]), *offsets[1:], (_FAR, 0)]):
        low, high = np.maximum(first - ahead, change), np.minimum(after - ahead, following)
        inside = np.flatnonzero(low < high)
        pieces.append((2 * low[inside], 2 * high[inside] - 1, inside))
    low, high, number = (np.concatenate(each) for each in zip(*pieces, strict=True))
    return low, high, number


_FAR = 10**12
"""A second after all others."""


def _split_by_day(low: Any, high: Any, number: Any) -> dict[str, Any]:
    """Pieces of codes, from the first to the last, cut at the ends of days."""
    day, last = low // CODES_PER_DAY, high // CODES_PER_DAY
    lengths = last - day + 1
    owner = np.repeat(np.arange(len(day)), lengths)
    key = day[owner] + count_up(lengths)
    return {
        "key": key,
        "low": np.maximum(low[owner], key * CODES_PER_DAY),
        "high": np.minimum(high[owner], (key + 1) * CODES_PER_DAY - 1),
        "number": number[owner],
    }
