"""Expressions that read a cell as a kind of value, and that fail on no row.

The public domain and the condition decide the kind. The reading depends on the cell alone, not on the type that an
engine inferred for its column, and it is exact or NULL: `7`, `7.0` and the text `07` are the integer 7, and `7.5` is
not an integer. The formats that a caller states (`formats.py`) rewrite text first. As text, a number is its digits; a
float that is not whole or not below 2^53 in size has no text.

A column of a pandas frame or of several Parquet files has no declared type, and an inferred type would follow from
rows. Such a column is a structure with a field for each kind of value. A cell fills the field of its kind: text in
`text`, whole numbers in `integer` (floats below 2^53 in size too), other numbers in `number`, booleans in `truth`,
dates in `day`, timestamps in `clock`, and timestamps with a zone in `point`. If a value fits none of these fields
exactly, `other` has its exact spelling, which distinguishes users and shows that the cell is not missing.

A user is the spelling of a cell. A float is a user only if it is whole and below 2^53 in size, where no two whole
numbers are the same float. Dates are compared as days since 1970, and times as whole seconds since 1970 in UTC, rounded
down; those numbers are the same on every engine.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from functools import cache, reduce
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.sources.events.dialects.base import Dialect

LARGEST_EXACT = 2**53 - 1
"""The largest whole number below which no two whole numbers are the same float."""

LONGEST_TEXT = 2**16
"""Maximum number of bytes of a text that functions of text take; a longer one is NULL to them."""

_MONTH_DAYS = r"(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8])"
_LEAP_YEAR = r"([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
_YEAR = r"([0-9]{3}[1-9]|[0-9]{2}[1-9][0-9]|[0-9][1-9][0-9]{2}|[1-9][0-9]{3})"
_DATE = rf"({_YEAR}-({_MONTH_DAYS})|{_LEAP_YEAR}-02-29)"
_MINUTE = r"[ T]([01][0-9]|2[0-3]):[0-5][0-9]"
_CLOCK = rf"{_MINUTE}(:[0-5][0-9](\.[0-9]{{1,6}})?)?"

MOMENT = (
    rf"{_DATE}{_MINUTE}(:[0-5][0-9](\.[0-9]{{1,9}})?)?"
    r"(Z| UTC|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)?"
)
"""The pattern of a text that spells a point in time, with or without a zone."""

SECONDS_PER_DAY = 86_400
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
"""The first second of year 1 and the last second of year 9999, counted from 1970."""

DAY_NUMBER, SECOND_NUMBER = "day number", "second number"

SPELLINGS = {
    "integer": r"([+-]?[0-9]{1,40})(\.0{0,20})?",
    "float": r"[+-]?(([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,3})?|[iI]nf(inity)?|[nN]a[nN])",
    "date": _DATE,
    "timestamp": rf"{_DATE}({_CLOCK})?",
    "timestamp with time zone": rf"{_DATE}{_CLOCK}(Z|[+-]([01][0-9]|2[0-3])(:[0-5][0-9])?)",
}
"""The pattern of a whole text that spells a value of each kind; the patterns mean the same on every engine."""

CELL_FIELDS = {
    "text": "string",
    "integer": "int64",
    "number": "float64",
    "truth": "boolean",
    "day": "date",
    "clock": "timestamp(6)",
    "point": "timestamp('UTC', 6)",
    "other": "string",
}
"""The fields of a cell without a declared type, with their ibis types."""

_TRUE, _FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]
_TYPES = {
    "string": "string",
    "integer": "int64",
    "float": "float64",
    "date": "date",
    "boolean": "boolean",
    "timestamp": "timestamp",
    "timestamp with time zone": "timestamp('UTC')",
    DAY_NUMBER: "int64",
    SECOND_NUMBER: "int64",
}


@cache
def engine_function(name: str, result: str, *arguments: str, **place: str) -> Callable[..., Any]:
    """Return a function of an engine that ibis does not have, by the ibis types of its result and its arguments.

    With the `catalog` and `database` of the function, no translator replaces it by another.
    """
    import ibis

    def call(*_: Any) -> None: ...

    names = [inspect.Parameter(f"arg{i}", inspect.Parameter.POSITIONAL_OR_KEYWORD) for i in range(len(arguments))]
    call.__name__, call.__signature__ = name, inspect.Signature(names)  # type: ignore[attr-defined]  # ibis reads it
    made: Callable[..., Any] = ibis.udf.scalar.builtin(call, name=name, signature=(arguments, result), **place)
    return made


def read_cell(dialect: Dialect, column: Any, kind: str) -> Any:
    """Return a column read as a kind, NULL in rows with no such value.

    Parameters
    ----------
    dialect
        The dialect of the column's engine.
    column
        An ibis column.
    kind
        "string", "integer", "float", "date", "boolean", "timestamp", "timestamp with time zone", "day number" (days
        since 1970 of a date without a time) or "second number" (seconds since 1970 of anything with a time).
    """
    import ibis

    found = _read(dialect, column, kind)
    return ibis.null(_TYPES[kind]) if found is None else found


def has_reading(dialect: Dialect, column: Any, kind: str) -> bool:
    """Return True if a column of this type can hold values of the kind."""
    return _read(dialect, column, kind) is not None


def _read(dialect: Dialect, column: Any, kind: str) -> Any | None:
    """Return a column read as a kind, or None if its type has no values of the kind."""
    if dialect.cell_readers is not None:
        return dialect.cell_readers[kind](column, dialect.formats)
    if not is_untyped(column.type()):
        if column.type().is_string() and kind != "string":
            if not dialect.parses_text:
                return None
            # PostgreSQL has no regular expressions on text with a nondeterministic collation.
            column = dialect.formats.respell_column(dialect.drop_collation(column), kind, dialect.text_end)
        return _READ[kind](dialect, column)
    import ibis

    text, integer, number, truth, day, clock, point, _ = (column[name] for name in CELL_FIELDS)
    if kind == "string":
        # A timestamp at midnight is spelled as its date.
        moment = clock.cast("string").re_replace("^(.{10}) 00:00:00$", r"\1")
        others = [each.cast("string") for each in (integer, truth, day)]
        return ibis.coalesce(text, *others, moment, point.cast("string"))
    typed = {
        "integer": [integer],
        "float": [number, integer.cast("float64")],
        "boolean": [truth],
        "date": [day, _read_date(dialect, clock)],
        "timestamp": [clock, day.cast(_TYPES["timestamp"])],
        "timestamp with time zone": [point],
        DAY_NUMBER: [_read_day_number(dialect, day)],
        SECOND_NUMBER: [_read_second_number(dialect, each) for each in (clock, point)],
    }
    # Text comes last because its patterns are slowest.
    spelled = dialect.formats.respell_column(text, kind, dialect.text_end)
    return ibis.coalesce(*typed[kind], _READ[kind](dialect, spelled))


def is_untyped(dtype: Any) -> bool:
    """Return True if a type is the structure of cells without a declared type."""
    return bool(dtype.is_struct() and {name: str(each) for name, each in dtype.items()} == CELL_FIELDS)


def is_missing(column: Any) -> Any:
    """Return an expression that is true where a cell is missing."""
    if is_untyped(column.type()):
        return reduce(operator.and_, [column[name].isnull() for name in CELL_FIELDS])
    return column.isnull()


def is_spelled(dialect: Dialect, text: Any, kind: str) -> Any:
    """Return an expression that is true if a text spells a value of the kind in the formats of the dialect."""
    import ibis

    respelled = dialect.formats.respell_column(text, kind, dialect.text_end)
    return ibis.coalesce(_is_spelling(dialect, respelled, kind), ibis.literal(False))


def _is_spelling(dialect: Dialect, text: Any, kind: str) -> Any:
    """Return an expression that is true if the whole text spells a value of the kind."""
    pattern = MOMENT if kind == SECOND_NUMBER else SPELLINGS[kind]
    return text.re_search(f"^({pattern}){dialect.text_end}")


def null_unless(condition: Any, value: Any) -> Any:
    """Return a value in rows where a condition holds, and NULL in others."""
    import ibis

    return ibis.cases((condition, value), else_=ibis.null(value.type().copy(nullable=True)))


def _read_text(dialect: Dialect, column: Any) -> Any | None:
    dtype = column.type()
    if dtype.is_string():
        return column
    if dtype.is_signed_integer() or dtype.is_unsigned_integer():
        return column.cast("string")
    if dtype.is_numeric():
        return read_cell(dialect, column, "integer").cast("string")
    limit = dialect.limit_to_calendar
    if limit is None:
        return None
    if dtype.is_timestamp() and dtype.timezone is None:
        # A timestamp at midnight is spelled as its date.
        moment = limit(column, "timestamp")
        day = moment.try_cast("date")
        return (day.try_cast("timestamp") == moment).ifelse(day.cast("string"), moment.cast("string"))
    if dtype.is_timestamp():
        return limit(column, _TYPES["timestamp with time zone"]).cast("string")
    if dtype.is_date():
        return limit(column, "date").cast("string")
    return column.cast("string") if dtype.is_boolean() or dtype.is_uuid() else None


def _read_integer(dialect: Dialect, column: Any) -> Any | None:
    dtype = column.type()
    if dtype.is_signed_integer():
        return column.cast("int64")
    if dtype.is_floating():
        value = column.cast("float64")
        return null_unless(value.between(-LARGEST_EXACT, LARGEST_EXACT), _to_integer(dialect, value))
    if dtype.is_numeric():
        return _to_integer(dialect, column)
    if not dtype.is_string():
        return None
    digits = column.re_extract(f"^{SPELLINGS['integer']}{dialect.text_end}", 1)
    return digits.try_cast("int64") if dialect.has_try_cast else _to_integer(dialect, digits.cast(dialect.digits_type))


def _to_integer(dialect: Dialect, number: Any) -> Any:
    """Return a number as a 64-bit integer, NULL if it is not one."""
    if dialect.has_try_cast:
        nearest = number.try_cast("int64")
        # ibis takes a HUGEINT for a decimal of 38 digits, and a cast back to that can overflow.
        back = nearest if is_whole_type(number.type()) else nearest.try_cast(number.type())
        return null_unless(back == number, nearest)
    # A cast out of range would fail here, so CASE evaluates it for fitting numbers only.
    if number.type().is_floating():
        # DataFusion takes -0.0 for less than 0.0.
        is_whole = (number - number.floor()).abs() == 0
        return null_unless(number.between(-LARGEST_EXACT, LARGEST_EXACT), null_unless(is_whole, number.cast("int64")))
    return null_unless(number.between(-(2**63), 2**63 - 1), null_unless(number % 1 == 0, number.cast("int64")))


def is_whole_type(dtype: Any) -> bool:
    """Return True if a type holds only whole numbers."""
    return bool(dtype.is_integer() or (dtype.is_decimal() and dtype.scale == 0))


def _read_number(dialect: Dialect, column: Any) -> Any | None:
    dtype = column.type()
    if dtype.is_numeric():
        return dialect.to_float(column)
    if not dtype.is_string() or not dialect.has_try_cast:
        return None
    return null_unless(_is_spelling(dialect, column, "float"), column.try_cast("float64"))


def _read_date(dialect: Dialect, column: Any) -> Any | None:
    dtype, limit = column.type(), dialect.limit_to_calendar
    if dtype.is_date():
        return column if limit is None else limit(column, "date")
    if dtype.is_timestamp() and dtype.timezone is None and limit is not None:
        moment = limit(column, "timestamp")
        day = moment.try_cast("date")
        return null_unless(day.try_cast("timestamp") == moment, day)
    if not dtype.is_string():
        return None
    return null_unless(_is_spelling(dialect, column, "date"), _cast_to_date(dialect, column))


def _cast_to_date(dialect: Dialect, text: Any) -> Any:
    """Return the date of a text that is known to spell one."""
    return text.try_cast("date") if dialect.has_try_cast else text.cast("date")


def read_truth(text: Any) -> Any:
    """Return a text as a boolean, NULL if it spells none."""
    import ibis

    return ibis.cases((text.isin(_TRUE), True), (text.isin(_FALSE), False), else_=ibis.null("boolean"))


def _read_moment(dialect: Dialect, column: Any, zone: bool) -> Any | None:
    dtype, kind = column.type(), "timestamp with time zone" if zone else "timestamp"
    limit = dialect.limit_to_calendar
    if limit is None:
        return None
    if dtype.is_timestamp() and (dtype.timezone is not None) == zone:
        return limit(column, _TYPES[kind])
    if dtype.is_date() and not zone:
        return limit(column, "date").try_cast("timestamp")
    if not dtype.is_string():
        return None
    return null_unless(_is_spelling(dialect, column, kind), column.try_cast(_TYPES[kind]))


def _read_day_number(dialect: Dialect, column: Any) -> Any | None:
    dtype = column.type()
    if dialect.count_days is None or not (dtype.is_date() or dtype.is_string()):
        return None
    if dtype.is_string():
        # The length excludes most text with a time faster than the pattern does.
        column = _read_date(dialect, null_unless(column.length() == len("2024-01-31"), column))
    return dialect.count_days(column).cast("int64")


def _read_second_number(dialect: Dialect, column: Any) -> Any | None:
    dtype = column.type()
    if dialect.count_seconds is None or dialect.count_days is None:
        return None
    if dtype.is_timestamp():
        return dialect.count_seconds(column).cast("int64")
    if not dtype.is_string():
        return None
    import ibis

    def read(digits: Any) -> Any:
        return digits.try_cast("int64") if dialect.has_try_cast else digits.cast("int64")

    # The digits of the date and the clock have fixed places.
    day = dialect.count_days(_cast_to_date(dialect, column.substr(0, 10))).cast("int64")
    seconds = ibis.cases((column.substr(16, 1) == ":", read(column.substr(17, 2))), else_=0)
    clock = read(column.substr(11, 2)) * 3600 + read(column.substr(14, 2)) * 60 + seconds
    zone = column.substr(16).re_extract(f"[+-][0-9:]+{dialect.text_end}", 0)
    minutes = ibis.cases((zone.length() > 3, read(zone.right(2))), else_=0)
    size = read(zone.substr(1, 2)) * 3600 + minutes * 60
    # Most times end in Z, and then the zone is not extracted.
    offset = ibis.cases((column.endswith("Z"), 0), (zone.startswith("+"), size), (zone.startswith("-"), -size), else_=0)
    found = day * SECONDS_PER_DAY + clock - offset
    return null_unless(_is_spelling(dialect, column, SECOND_NUMBER), found)


_READ: dict[str, Callable[[Dialect, Any], Any | None]] = {
    "string": _read_text,
    "integer": _read_integer,
    "float": _read_number,
    "date": _read_date,
    "boolean": lambda dialect, column: (
        column if column.type().is_boolean() else read_truth(column) if column.type().is_string() else None
    ),
    "timestamp": lambda dialect, column: _read_moment(dialect, column, zone=False),
    "timestamp with time zone": lambda dialect, column: _read_moment(dialect, column, zone=True),
    DAY_NUMBER: _read_day_number,
    SECOND_NUMBER: _read_second_number,
}
