"""Days, weeks, months, quarters and years: columns of events grouped by them, and public lists of them.

A period is spelled as in ISO 8601: '2026-01-31', '2026-W05', '2026-01', '2026-Q1' and the number 2026. A week begins on
Monday and belongs to the year of its Thursday.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache, reduce
from itertools import pairwise
from operator import or_
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

from discreet.errors import InvalidTypeError, InvalidValueError, quote, suggestion
from discreet.exact.arrays import count_up
from discreet.privacy import is_whole_number
from discreet.sources.events.cells import DAY_NUMBER, SECOND_NUMBER, SECONDS_PER_DAY, has_reading, read_cell
from discreet.sources.events.connect import Opened
from discreet.sources.events.formats import MOMENT_KIND
from discreet.sources.events.group_columns import GroupColumn, NumberedMembers

_EPOCH = date(1970, 1, 1).toordinal()

CODES_PER_DAY = 2 * SECONDS_PER_DAY
"""Every moment has a code in half seconds, by which an engine looks up its period in a public table.

A point in time in second s of UTC has the code 2 s + 1, and a date without a time the even code of midnight. Days are
numbered as by `date.toordinal`. An engine only counts the days of dates and the seconds of timestamps; the time zone
database of Python gives the clock changes.
"""

MOST_YEARS = 200
"""Maximum span of public periods with a named zone, because clock changes are searched day by day."""

_NO_ZONES = ("localtime", "posix", "factory", "right")
"""Files beside the time zones: the clock of one machine, no zone at all, and zones that count leap seconds."""

_FAR = 10**12
"""A second after all others: the calendar ends before 86,400 times 3.7 million days."""

_LONGEST = {"day": 0, "week": 6, "month": 30, "quarter": 91, "year": 365}
"""Maximum distance of the last day of a period from its first."""

Offsets = tuple[tuple[int, int], ...]
"""Pairs of a second, from which on an offset holds, and the offset of the clocks ahead of UTC in seconds.

Seconds are counted as 86,400 times the number of the day.
"""


@dataclass(frozen=True, eq=False, repr=False)
class Unit:
    """A unit of periods.

    Attributes
    ----------
    name, example
        The name in messages, and the spelling of one period.
    pattern, first_day
        A regular expression of the spelling, and the first day of a period from the numbers that the pattern captures.
    spell
        Returns the spelling of the period of a day.
    """

    name: str
    example: str
    pattern: str
    first_day: Callable[..., date]
    spell: Callable[[date], str | int]

    def parse(self, given: Any) -> date | None:
        """Return the first day of a period, None if the value does not spell one."""
        if isinstance(given, date) and not isinstance(given, datetime):
            return given if self.name == "day" else None
        if is_whole_number(given):
            given = f"{given:04}" if self.name == "year" else None
        parts = re.fullmatch(self.pattern, given, re.ASCII) if isinstance(given, str) else None
        try:
            return None if parts is None else self.first_day(*map(int, parts.groups()))
        except ValueError:
            return None

    def last_day(self, first: date) -> date:
        """Return the last day of the period with this first day, at most the last day of the calendar."""
        day = min(first.toordinal() + _LONGEST[self.name], date.max.toordinal())
        while self.spell(date.fromordinal(day)) != self.spell(first):
            day -= 1
        return date.fromordinal(day)


UNITS = {
    each.name: each
    for each in (
        Unit("day", "'2026-01-31'", r"(\d{4})-(\d\d)-(\d\d)", date, date.isoformat),
        Unit(
            "week",
            "'2026-W05'",
            r"(\d{4})-W(\d\d)",
            lambda y, w: date.fromisocalendar(y, w, 1),
            lambda day: "{:04}-W{:02}".format(*day.isocalendar()[:2]),
        ),
        Unit("month", "'2026-01'", r"(\d{4})-(\d\d)", lambda y, m: date(y, m, 1), lambda day: day.isoformat()[:7]),
        Unit(
            "quarter",
            "'2026-Q1'",
            r"(\d{4})-Q([1-4])",
            lambda y, q: date(y, 3 * q - 2, 1),
            lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
        ),
        Unit("year", "2026", r"(\d{4})", lambda y: date(y, 1, 1), lambda day: day.year),
    )
}


@dataclass(frozen=True)
class PeriodColumn(GroupColumn):
    """A column of dates or timestamps, grouped by a period on the calendar of a zone, by default UTC."""

    unit: str
    column: str
    zone: str | None = None

    @property
    def name(self) -> str:
        return self.unit

    @property
    def spelling(self) -> str:
        return f"{self.unit}({self.column})" if self.zone is None else f"{self.unit}({self.column}, {self.zone})"

    def only(self, period: Any) -> OnePeriod:
        """Return one period of the column, for `during`.

        Examples
        --------
        >>> import discreet
        >>> discreet.month("played_at").only("2026-10").spelling
        'month(played_at) = 2026-10'
        """
        unit = UNITS[self.unit]
        first = unit.parse(period)
        if first is None:
            raise InvalidValueError(f"period must be a {unit.name} like {unit.example}, not {quote(period)}")
        return OnePeriod(self, first)

    def declared_kind(self, opened: Opened) -> str | None:
        """Return "string": text of a public file stays text, which `number_members` parses."""
        return "string"

    def number_members(self, members: Any, kind: str, opened: Opened, shows: bool) -> NumberedMembers:
        import pyarrow as pa

        check_moments(self.column, opened)
        unit, firsts = UNITS[self.unit], list[date]()
        for each in members.to_pylist():
            first = unit.parse(each)
            if first is None:
                stranger = f"not {quote(each)}" if shows else "and one is not"
                raise InvalidValueError(f"groups must hold {unit.name}s like {unit.example}, {stranger}")
            firsts.append(first)
        table = opened.adopt(pa.table(list_codes(firsts, list(map(unit.last_day, firsts)), self.zone)))
        return NumberedMembers(
            members=list(map(unit.spell, firsts)),
            kind=MOMENT_KIND,
            table=table,
            read=lambda rows: code_moments(opened, rows[self.column]),
            match=lambda code: [code // CODES_PER_DAY == table.key, code >= table.low, code <= table.high],
        )


@dataclass(frozen=True)
class OnePeriod:
    """A column of dates or timestamps and one period of it, whose rows are kept; `first` is its first day."""

    column: PeriodColumn
    first: date

    @property
    def spelling(self) -> str:
        """The column and the period, as a description spells them."""
        return f"{self.column.spelling} = {UNITS[self.column.unit].spell(self.first)}"

    @property
    def last(self) -> date:
        """The last day of the period."""
        return UNITS[self.column.unit].last_day(self.first)

    def keep(self, table: Any, opened: Opened) -> Any:
        """Return the rows of the period, of the events or a view of them; no cell makes this fail."""
        column, zone, first, last = self.column.column, self.column.zone, self.first, self.last
        check_moments(column, opened, "during")
        day, second = _read_moments(opened, table[column])
        begin, end = first.toordinal(), last.toordinal()
        pieces = [(begin * CODES_PER_DAY, (end + 1) * CODES_PER_DAY - 1)]
        if zone is not None:
            offsets = find_offsets(open_zone(zone), first, last)
            low, high, _ = _convert_to_utc(np.array([begin]), np.array([end]), offsets)
            pieces = list(zip(low.tolist(), high.tolist(), strict=True))
        within = [day.between(begin, end), *(second.between(a // 2, b // 2) for a, b in pieces)]
        return table.filter(reduce(or_, within))


def period_column(unit: str, column: Any, zone: Any) -> PeriodColumn:
    """Return a column grouped by a period, and raise if its name or its zone is none."""
    if not isinstance(column, str):
        raise InvalidTypeError(f"column must be the name of a column, not {quote(column)}")
    if zone is not None:
        open_zone(zone)
    return PeriodColumn(unit, column, zone)


def list_periods(unit: str, first: Any, last: Any) -> list[Any]:
    """Return all periods of a unit from the first to the last, both included."""
    kind, bounds = UNITS[unit], []
    for name, given in (("first", first), ("last", last)):
        found = kind.parse(given)
        if found is None:
            raise InvalidValueError(f"{name} must be a {unit} like {kind.example}, not {quote(given)}")
        bounds.append(found)
    day, end = bounds
    if end < day:
        raise InvalidValueError(f"last must not be before first, {quote(first)}, but is {quote(last)}")
    found_all = [kind.spell(day)]
    while (following := kind.last_day(day)) < end:
        day = following + timedelta(1)
        found_all.append(kind.spell(day))
    return found_all


def open_zone(name: Any) -> ZoneInfo:
    """Return the time zone of a name."""
    try:
        if isinstance(name, str) and name.casefold().startswith(_NO_ZONES):
            raise LookupError
        return ZoneInfo(name)
    except (LookupError, ValueError, TypeError, OSError):
        known = sorted(each for each in available_timezones() if not each.casefold().startswith(_NO_ZONES))
        hint = suggestion(name, known, private=False) if known else "; the system has none: pip install tzdata"
        raise InvalidValueError(
            f"zone must be the name of a time zone such as 'Europe/Berlin', not {quote(name)}{hint}"
        ) from None


@lru_cache(maxsize=16)
def find_offsets(zone: ZoneInfo, first: date, last: date) -> Offsets:
    """Return the offsets of the clocks of a zone at every moment of these days, one pair for each change."""
    if last.year - first.year >= MOST_YEARS:
        raise InvalidValueError(
            f"groups must lie within {MOST_YEARS} years where a zone is named, not from {first.year} to {last.year}"
        )
    # A moment of a day is at most a day away from it in UTC. Python converts no moment at the ends of the calendar.
    begin, end = max(first.toordinal() - 2, 3), min(last.toordinal() + 2, date.max.toordinal() - 2)
    before = _offset_at(zone, begin * SECONDS_PER_DAY)
    offsets = [(begin * SECONDS_PER_DAY, before)]
    # A comparison day by day finds every change: no zone has ever had two within three days.
    for low in range(begin * SECONDS_PER_DAY, end * SECONDS_PER_DAY, SECONDS_PER_DAY):
        high = low + SECONDS_PER_DAY
        after = _offset_at(zone, high)
        if after != before:
            change = bisect_left(range(low, high), True, key=lambda second: _offset_at(zone, second) == after)
            offsets.append((low + change, after))
        before = after
    return tuple(offsets)


def _offset_at(zone: ZoneInfo, second: int) -> int:
    """Return the offset of the clocks ahead of UTC at a second, in seconds."""
    moment = datetime(1, 1, 1, tzinfo=UTC) + timedelta(seconds=second - SECONDS_PER_DAY)
    return (moment.astimezone(zone).utcoffset() or timedelta(0)) // timedelta(seconds=1)


def check_moments(column: str, opened: Opened, argument: str = "by") -> None:
    """Raise if a column is declared as other than moments or text, or if the engine cannot count its moments."""
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
    """Return the code of each cell of a column, NULL for a cell that is no moment; no cell makes this fail.

    Parameters
    ----------
    opened
        The events.
    column
        An ibis column of them.
    """
    import ibis

    day, second = _read_moments(opened, column)
    return ibis.coalesce(day * CODES_PER_DAY, 2 * second + 1)


def _read_moments(opened: Opened, column: Any) -> tuple[Any, Any]:
    """Return the day of each cell that is a date and the second of each that is a point in time, NULL for others."""
    day = read_cell(opened.dialect, column, DAY_NUMBER) + _EPOCH
    return day, read_cell(opened.dialect, column, SECOND_NUMBER) + _EPOCH * SECONDS_PER_DAY


def list_codes(firsts: Sequence[date], lasts: Sequence[date], zone: str | None) -> dict[str, Any]:
    """Return the codes of the moments in each of several periods, as columns of a public table.

    Parameters
    ----------
    firsts, lasts
        The first and the last day of each period.
    zone
        The zone of the calendar; None for UTC.

    Returns
    -------
    columns
        Each row is a part of one day: the day as `key`, the first and the last code of the part as `low` and `high`,
        and the index of the period as `number`.
    """
    begins, ends = (np.array([day.toordinal() for day in days]) for days in (firsts, lasts))
    dates = _split_by_day(begins * CODES_PER_DAY, (ends + 1) * CODES_PER_DAY - 1, np.arange(len(begins)))
    if zone is None:
        return dates
    # A date is the same day in every zone and has one even code; points in time have odd codes.
    dates["high"] = dates["low"]
    offsets = find_offsets(open_zone(zone), min(firsts), max(lasts))
    times = _split_by_day(*_convert_to_utc(begins, ends, offsets))
    times["low"] |= 1
    return {name: np.concatenate([dates[name], times[name]]) for name in dates}


def _convert_to_utc(begins: Any, ends: Any, offsets: Offsets) -> tuple[Any, Any, Any]:
    """Return the first and last code in UTC of each part of a period between two clock changes, and the period."""
    first, after = begins * SECONDS_PER_DAY, (ends + 1) * SECONDS_PER_DAY
    pieces = []
    for (change, ahead), (following, _) in pairwise([(-_FAR, offsets[0][1]), *offsets[1:], (_FAR, 0)]):
        low, high = np.maximum(first - ahead, change), np.minimum(after - ahead, following)
        inside = np.flatnonzero(low < high)
        pieces.append((2 * low[inside], 2 * high[inside] - 1, inside))
    low, high, number = (np.concatenate(each) for each in zip(*pieces, strict=True))
    return low, high, number


def _split_by_day(low: Any, high: Any, number: Any) -> dict[str, Any]:
    """Split ranges of codes, both ends included, at the ends of days."""
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


def day(column: str, zone: str | None = None) -> PeriodColumn:
    """Group by the day of a column of dates or timestamps, for `by`.

    Parameters
    ----------
    column
        The column: dates, timestamps, or text that spells them as ISO 8601 does. A timestamp without a zone is in UTC,
        and a date without a time is that day in every zone.
    zone
        The time zone of the calendar, such as "Europe/Berlin"; by default UTC.

    Examples
    --------
    >>> import discreet
    >>> discreet.day("played_at", zone="Europe/Berlin").spelling
    'day(played_at, Europe/Berlin)'
    """
    return period_column("day", column, zone)


def week(column: str, zone: str | None = None) -> PeriodColumn:
    """Group by the week of ISO 8601, Monday to Sunday; the parameters are those of `discreet.day`.

    Examples
    --------
    >>> import discreet
    >>> discreet.week("played_at").spelling
    'week(played_at)'
    """
    return period_column("week", column, zone)


def month(column: str, zone: str | None = None) -> PeriodColumn:
    """Group by the month; the parameters are those of `discreet.day`.

    Examples
    --------
    >>> import discreet
    >>> discreet.month("played_at").spelling
    'month(played_at)'
    """
    return period_column("month", column, zone)


def quarter(column: str, zone: str | None = None) -> PeriodColumn:
    """Group by the quarter of the year; the parameters are those of `discreet.day`.

    Examples
    --------
    >>> import discreet
    >>> discreet.quarter("played_at").spelling
    'quarter(played_at)'
    """
    return period_column("quarter", column, zone)


def year(column: str, zone: str | None = None) -> PeriodColumn:
    """Group by the year; the parameters are those of `discreet.day`.

    Examples
    --------
    >>> import discreet
    >>> discreet.year("played_at").spelling
    'year(played_at)'
    """
    return period_column("year", column, zone)


def days(first: str | date, last: str | date) -> list[str]:
    """Return the days from the first to the last, both included, for `groups`.

    Examples
    --------
    >>> import discreet
    >>> discreet.days("2026-02-27", "2026-03-01")
    ['2026-02-27', '2026-02-28', '2026-03-01']
    """
    return list_periods("day", first, last)


def weeks(first: str, last: str) -> list[str]:
    """Return the weeks of ISO 8601 from the first to the last, both included, for `groups`.

    Examples
    --------
    >>> import discreet
    >>> discreet.weeks("2026-W52", "2027-W01")
    ['2026-W52', '2026-W53', '2027-W01']
    """
    return list_periods("week", first, last)


def months(first: str, last: str) -> list[str]:
    """Return the months from the first to the last, both included, for `groups`.

    Examples
    --------
    >>> import discreet
    >>> discreet.months("2026-11", "2027-01")
    ['2026-11', '2026-12', '2027-01']
    """
    return list_periods("month", first, last)


def quarters(first: str, last: str) -> list[str]:
    """Return the quarters from the first to the last, both included, for `groups`.

    Examples
    --------
    >>> import discreet
    >>> discreet.quarters("2026-Q3", "2027-Q1")
    ['2026-Q3', '2026-Q4', '2027-Q1']
    """
    return list_periods("quarter", first, last)


def years(first: int, last: int) -> list[int]:
    """Return the years from the first to the last, both included, for `groups`.

    Examples
    --------
    >>> import discreet
    >>> discreet.years(2024, 2026)
    [2024, 2025, 2026]
    """
    return list_periods("year", first, last)
