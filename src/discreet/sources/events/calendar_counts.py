"""How engines count the days of a date and the seconds of a timestamp since 1970.

Whole numbers are the same on every engine, where formats of dates, time zones of sessions and floats are not.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from discreet.sources.events.cells import FIRST_SECOND, LAST_SECOND, SECONDS_PER_DAY, engine_function, null_unless

_FIRST_MICROSECOND, _LAST_MICROSECOND = FIRST_SECOND * 10**6, LAST_SECOND * 10**6 + 999_999
"""Those of the years 1 and 9999, counted from 1970."""


def limit_duckdb_to_calendar(column: Any, kind: str) -> Any:
    """A date or timestamp of DuckDB's, in microseconds, NULL outside of the years 1 to 9999, which have a spelling."""
    found = column if kind == "date" else _convert_to_microseconds(column, kind)
    if kind == "date":
        steps, unit = _count_all_duckdb_days(found), SECONDS_PER_DAY * 10**6
    else:
        steps, unit = _count_duckdb_microseconds(found), 1
    return null_unless(steps.between(_FIRST_MICROSECOND // unit, _LAST_MICROSECOND // unit), found)


def _convert_to_microseconds(moment: Any, kind: str) -> Any:
    """A timestamp of any resolution in microseconds; TRY, because TRY_CAST fails on one that is too far for them."""
    return engine_function("try", kind, kind)(moment.cast(kind))


def count_duckdb_days(day: Any) -> Any:
    """Days of a date since 1970."""
    return _count_all_duckdb_days(limit_duckdb_to_calendar(day, "date"))


def _count_all_duckdb_days(day: Any) -> Any:
    """Days since 1970, which no date fails to have, whereas the farthest are no timestamps."""
    import ibis

    count = engine_function("date_diff", "int64", "string", "date", "date")
    return count("day", ibis.literal(date(1970, 1, 1)), day)


def _count_duckdb_microseconds(moment: Any) -> Any:
    return engine_function("epoch_us", "int64", str(moment.type()))(moment)


def count_duckdb_seconds(column: Any) -> Any:
    """Whole seconds of a timestamp since 1970, rounded down."""
    moment = limit_duckdb_to_calendar(column, "timestamp" if column.type().timezone is None else "timestamp('UTC')")
    # Divided as whole numbers, which rounds towards zero, and is never of one below zero here.
    divide = engine_function("divide", "int64", "int64", "int64")
    return divide(_count_duckdb_microseconds(moment) - _FIRST_MICROSECOND, 10**6) + FIRST_SECOND


def count_postgres_days(day: Any) -> Any:
    """Days of a date since 1970; the farthest and the infinite ones, on which this would fail, are not counted."""
    import ibis

    count = engine_function("date_mi", "int32", "date", "date")
    inside = day.between(ibis.literal(date.min), ibis.literal(date.max))
    return null_unless(inside, count(day, ibis.literal(date(1970, 1, 1))))


def count_postgres_seconds(moment: Any) -> Any:
    """Whole seconds of a timestamp since 1970, rounded down."""
    import ibis

    zone, kind = None if moment.type().timezone is None else UTC, str(moment.type())
    inside = moment.between(*(ibis.literal(each.replace(tzinfo=zone)) for each in (datetime.min, datetime.max)))
    whole = engine_function("date_trunc", kind, "string", kind)("second", moment)
    # A double, which has room for whole seconds, and none for microseconds.
    return null_unless(inside, engine_function("date_part", "float64", "string", kind)("epoch", whole).cast("int64"))


def count_spark_days(day: Any) -> Any:
    """Days of a date since 1970."""
    import ibis

    count = engine_function("datediff", "int32", "date", "date")
    return count(day, ibis.literal(date(1970, 1, 1))).cast("int64")


def count_spark_seconds(moment: Any) -> Any:
    """Whole seconds since 1970, rounded down, of a point in time, or of a clock without a zone.

    ibis does not tell these two types of Spark's apart, and the one converts to the other by the zone of the session.
    """
    import ibis

    def call(name: str, result: str, argument: Any = moment) -> Any:
        return engine_function(name, result, "timestamp")(argument)

    clock = call("hour", "int64") * 3600 + call("minute", "int64") * 60 + call("second", "int64")
    shown_by_clock = count_spark_days(call("to_date", "date")) * SECONDS_PER_DAY + clock
    point = call("unix_seconds", "int64", call("to_timestamp_ltz", "timestamp"))
    return ibis.cases((call("typeof", "string") == "timestamp", point), else_=shown_by_clock)
