"""Days, weeks, months, quarters and years: public lists of them, and the columns of events that are grouped by them.

A period is written as ISO 8601 does: '2026-01-31', '2026-W05', '2026-01', '2026-Q1' and the number 2026. Weeks are
those of ISO 8601, which begin on Mondays and belong to the year of their Thursday.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.privacy import is_whole_number
from discreet.sources.events.connect import Opened
from discreet.sources.events.group_columns import GroupColumn, NumberedMembers
from discreet.sources.events.local_days import (
    CODES_PER_DAY,
    check_moments,
    code_moments,
    is_within,
    list_codes,
    open_zone,
)


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
