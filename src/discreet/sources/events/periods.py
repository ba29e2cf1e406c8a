"""Days, weeks, months, quarters and years: public lists of them, and the columns of events that are grouped by them.

A period is written as ISO 8601 does: '2026-01-31', '2026-W05', '2026-01', '2026-Q1' and the number 2026. Weeks are
those of ISO 8601, which begin on Mondays and belong to the year of their Thursday.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

from discreet.errors import InvalidTypeError, InvalidValueError, quote, suggestion
from discreet.exact.arrays import count_up
from discreet.privacy import is_whole_number
from discreet.sources.events.cells import DAY_NUMBER, SECOND_NUMBER, SECONDS_PER_DAY, has_reading, read_cell
from discreet.sources.events.connect import Opened
from discreet.sources.events.group_columns import GroupColumn, NumberedMembers

# The public days that a moment can be in, as numbers that an engine can look up.
#
# An engine counts the days of dates and the seconds of timestamps, no more. What the clocks of a zone say is known
# here,
# from the database of time zones that Python has, and reaches the engine as a public table. Every moment has a code, in
# half seconds: a point in time is in the middle of its second in UTC, and a date without a time at the begin of its
# day.
# Days are numbered as `date.toordinal` does. A period is a set of codes, which the table holds day by day, so that a
# moment is looked up by its day.

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


@dataclass(frozen=True, eq=False, repr=False)
class Unit:
    """A kind of period.

    Attributes
    ----------
    name, example
        What messages call it, and how one is written.
    pattern, first_day
        How one is written as text, and the first day of one by the parts of that.
    spell
        The period that a day is in, as it is written.
    """

    name: str
    example: str
    pattern: str
    first_day: Callable[..., date]
    spell: Callable[[date], str | int]

    def parse(self, given: Any) -> date | None:
        """The first day of a period, None where it is none."""
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
        """The last day of a period, by its first; that of the calendar where it ends before."""
        after = first.toordinal() + _LONGEST[self.name]
        return next(day for day in map(_day_of, range(after, 0, -1)) if self.spell(day) == self.spell(first))


def _day_of(ordinal: int) -> date:
    return date.fromordinal(min(ordinal, date.max.toordinal()))


def _spell_week(day: date) -> str:
    year, week, _ = day.isocalendar()
    return f"{year:04}-W{week:02}"


_LONGEST = {"day": 0, "week": 6, "month": 30, "quarter": 91, "year": 365}
"""How many days after the first the last one is at most."""

UNITS = {
    each.name: each
    for each in (
        Unit("day", "'2026-01-31'", r"(\d{4})-(\d\d)-(\d\d)", date, date.isoformat),
        Unit("week", "'2026-W05'", r"(\d{4})-W(\d\d)", lambda y, w: date.fromisocalendar(y, w, 1), _spell_week),
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
        """One period of the column, for `during`.

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
        """Text of a public file stays text, and is parsed here."""
        return "string"

    def number_members(self, members: Any, kind: str, opened: Opened, shows: bool) -> NumberedMembers:
        import pyarrow as pa

        check_moments(self.column, opened)
        unit = UNITS[self.unit]
        firsts = [_parse_member(unit, each, shows) for each in members.to_pylist()]
        table = opened.adopt(pa.table(list_codes(firsts, list(map(unit.last_day, firsts)), self.zone)))
        return NumberedMembers(
            members=list(map(unit.spell, firsts)),
            table=table,
            read=lambda rows: code_moments(opened, rows[self.column]),
            match=lambda code: [code // CODES_PER_DAY == table.key, code >= table.low, code <= table.high],
        )


@dataclass(frozen=True)
class OnePeriod:
    """A column of dates or timestamps, and the one period of which rows are kept, by its first day."""

    column: PeriodColumn
    first: date

    @property
    def last(self) -> date:
        """The last day of the period."""
        return UNITS[self.column.unit].last_day(self.first)

    @property
    def spelling(self) -> str:
        """The column and the period, in words that say what is kept."""
        return f"{self.column.spelling} = {UNITS[self.column.unit].spell(self.first)}"

    def keep(self, table: Any, opened: Opened) -> Any:
        """The rows of the period, of a table of the events."""
        check_moments(self.column.column, opened, "during")
        return table.filter(is_within(opened, table[self.column.column], self.first, self.last, self.column.zone))


def check_during(given: Any) -> OnePeriod | None:
    """The period that the caller names, if any."""
    if given is None or isinstance(given, OnePeriod):
        return given
    raise InvalidTypeError(
        "during must be one period of a column, such as discreet.month('played_at').only('2026-10'), "
        f"not {quote(given)}"
    )


def _parse_member(unit: Unit, given: Any, shows: bool) -> date:
    first = unit.parse(given)
    if first is None:
        stranger = f"not {quote(given)}" if shows else "and one is not"
        raise InvalidValueError(f"groups must hold {unit.name}s like {unit.example}, {stranger}")
    return first


def period_column(unit: str, column: Any, zone: Any) -> PeriodColumn:
    """A column grouped by a period, its name and its zone checked."""
    if not isinstance(column, str):
        raise InvalidTypeError(f"column must be the name of a column, not {quote(column)}")
    if zone is not None:
        open_zone(zone)
    return PeriodColumn(unit, column, zone)


def list_periods(unit: str, first: Any, last: Any) -> list[Any]:
    """All periods of a unit from the first to the last, both included."""
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


def day(column: str, zone: str | None = None) -> PeriodColumn:
    """Groups by the day of a column of dates or timestamps, for `by`.

    Parameters
    ----------
    column
        The column: dates, timestamps, or text that spells them as ISO 8601 does. What is without a zone is in UTC, and
        a date without a time is that day in every zone.
    zone
        The time zone on whose calendar the days are, such as "Europe/Berlin"; by default UTC.

    Examples
    --------
    >>> import discreet
    >>> discreet.day("played_at", zone="Europe/Berlin").spelling
    'day(played_at, Europe/Berlin)'
    """
    return period_column("day", column, zone)


def week(column: str, zone: str | None = None) -> PeriodColumn:
    """Groups by the week of ISO 8601, Monday to Sunday; the parameters are those of `discreet.day`.

    Examples
    --------
    >>> import discreet
    >>> discreet.week("played_at").spelling
    'week(played_at)'
    """
    return period_column("week", column, zone)


def month(column: str, zone: str | None = None) -> PeriodColumn:
    """Groups by the month; the parameters are those of `discreet.day`.

    Examples
    --------
    >>> import discreet
    >>> discreet.month("played_at").spelling
    'month(played_at)'
    """
    return period_column("month", column, zone)


def quarter(column: str, zone: str | None = None) -> PeriodColumn:
    """Groups by the quarter of the year; the parameters are those of `discreet.day`.

    Examples
    --------
    >>> import discreet
    >>> discreet.quarter("played_at").spelling
    'quarter(played_at)'
    """
    return period_column("quarter", column, zone)


def year(column: str, zone: str | None = None) -> PeriodColumn:
    """Groups by the year; the parameters are those of `discreet.day`.

    Examples
    --------
    >>> import discreet
    >>> discreet.year("played_at").spelling
    'year(played_at)'
    """
    return period_column("year", column, zone)


def days(first: str | date, last: str | date) -> list[str]:
    """The days from the first to the last, both included, for `groups`.

    Examples
    --------
    >>> import discreet
    >>> discreet.days("2026-02-27", "2026-03-01")
    ['2026-02-27', '2026-02-28', '2026-03-01']
    """
    return list_periods("day", first, last)


def weeks(first: str, last: str) -> list[str]:
    """The weeks of ISO 8601 from the first to the last, both included, for `groups`.

    Examples
    --------
    >>> import discreet
    >>> discreet.weeks("2026-W52", "2027-W01")
    ['2026-W52', '2026-W53', '2027-W01']
    """
    return list_periods("week", first, last)


def months(first: str, last: str) -> list[str]:
    """The months from the first to the last, both included, for `groups`.

    Examples
    --------
    >>> import discreet
    >>> discreet.months("2026-11", "2027-01")
    ['2026-11', '2026-12', '2027-01']
    """
    return list_periods("month", first, last)


def quarters(first: str, last: str) -> list[str]:
    """The quarters from the first to the last, both included, for `groups`.

    Examples
    --------
    >>> import discreet
    >>> discreet.quarters("2026-Q3", "2027-Q1")
    ['2026-Q3', '2026-Q4', '2027-Q1']
    """
    return list_periods("quarter", first, last)


def years(first: int, last: int) -> list[int]:
    """The years from the first to the last, both included, for `groups`.

    Examples
    --------
    >>> import discreet
    >>> discreet.years(2024, 2026)
    [2024, 2025, 2026]
    """
    return list_periods("year", first, last)
