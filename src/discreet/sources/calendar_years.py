"""The years 1 to 9999, whose dates and timestamps are spelled alike by everybody; DuckDB has others too."""

from __future__ import annotations

from datetime import date
from typing import Any

from discreet.sources.raw import builtin

_FIRST_MICROSECOND, _LAST_MICROSECOND = -62_135_596_800_000_000, 253_402_300_799_999_999
"""Those of the years 1 and 9999, counted from 1970."""


def in_calendar(column: Any, kind: str) -> Any:
    """A date or timestamp of DuckDB's, in microseconds, NULL outside of the years 1 to 9999, which have a spelling."""
    import ibis

    found = column if kind == "date" else column.try_cast(kind)
    steps, unit = (builtin("epoch_us", "int64", str(found.type())), 1) if kind != "date" else (_days, 86_400_000_000)
    inside = steps(found).between(_FIRST_MICROSECOND // unit, _LAST_MICROSECOND // unit)
    return ibis.cases((inside, found), else_=ibis.null(found.type()))


def _days(day: Any) -> Any:
    """The days since 1970, also of a day that no timestamp can be of."""
    import ibis

    return builtin("date_diff", "int64", "string", "date", "date")("day", ibis.literal(date(1970, 1, 1)), day)
