"""One cell of a table read as a kind of value, by expressions that cannot fail on a row.

The public domain and the caller's condition say which kind. What a cell is read as depends on that cell alone and not
on the type that an engine has guessed for its column: a whole number is the same item in a column of integers, of
floats and of text. A reading is exact or nothing. `7`, `7.0` and the text `07` are the integer 7, and `7.5` is none; as
text a number is its digits, and a number that is not whole or not below 2^53 in size as a float is no text.

Columns of mixed cells, which a pandas frame or several files can have, come as a structure of three fields: a cell that
has a spelling has it in `text`, and a number that has none is in `number`. What is not in `text` has something in
`other`, by which users are told apart and a cell is there or missing; it is never an item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.sources.calendar_years import in_calendar
from discreet.sources.raw import builtin, by_bytes

LARGEST_EXACT = 2**53 - 1
"""The largest whole number up to which every whole number is a float of its own."""

_MONTH_DAYS = r"(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8])"
_LEAP_YEAR = r"([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
_YEAR = r"([0-9]{3}[1-9]|[0-9]{2}[1-9][0-9]|[0-9][1-9][0-9]{2}|[1-9][0-9]{3})"
_DATE = rf"({_YEAR}-({_MONTH_DAYS})|{_LEAP_YEAR}-02-29)"
_CLOCK = r"[ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"

SPELLINGS = {
    "integer": r"([+-]?[0-9]{1,40})(\.0{0,20})?",
    "float": r"[+-]?(([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,3})?|[iI]nf(inity)?|[nN]a[nN])",
    "date": _DATE,
    "timestamp": rf"{_DATE}({_CLOCK})?",
    "timestamp with time zone": rf"{_DATE}{_CLOCK}(Z|[+-]([01][0-9]|2[0-3])(:[0-5][0-9])?)",
}
"""How text spells a value of each kind, whole, without blanks; the patterns mean the same to every engine."""

_MIXED = {"text": "string", "number": "float64", "other": "string"}
_TRUE, _FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]
_TYPES = {
    "string": "string",
    "integer": "int64",
    "float": "float64",
    "date": "date",
    "boolean": "boolean",
    "timestamp": "timestamp",
    "timestamp with time zone": "timestamp('UTC')",
}


def read_cell(engine: str, column: Any, kind: str) -> Any:
    """A column read as a kind, NULL in rows where it is none.

    Parameters
    ----------
    engine
        The engine, as ibis calls it.
    column
        An ibis column.
    kind
        "string", "integer", "float", "date", "boolean", "timestamp" or "timestamp with time zone".
    """
    import ibis

    found = _reading(engine, column, kind)
    return ibis.null(_TYPES[kind]) if found is None else found


def has_reading(engine: str, column: Any, kind: str) -> bool:
    """Whether a column of this type can hold something that reads as the kind at all."""
    return _reading(engine, column, kind) is not None


def _reading(engine: str, column: Any, kind: str) -> Any | None:
    if engine == "sqlite":
        return _READ_SQLITE[kind](column)
    if is_mixed(column.type()):
        return _read_mixed(engine, column, kind)
    return _READ[kind](engine, column)


def is_mixed(dtype: Any) -> bool:
    """Whether a type is that of a column of mixed cells."""
    return bool(dtype.is_struct() and {name: str(each) for name, each in dtype.items()} == _MIXED)


def is_missing(column: Any) -> Any:
    """Whether a cell is missing, as an expression."""
    if is_mixed(column.type()):
        return column["text"].isnull() & column["other"].isnull()
    return column.isnull()


def user_key(engine: str, column: Any, declared: bool) -> Any:
    """What to tell users apart by: their spelling, or the value itself where its equality is that of spellings."""
    import ibis

    if is_mixed(column.type()):
        column = ibis.coalesce(column["text"], column["other"])
    elif engine == "sqlite" and not declared:
        column = _sqlite_spelling(column)
    return by_bytes(engine, column)


def spell_mixed(column: Any) -> Any:
    """A column of one type of DuckDB's as one of mixed cells."""
    import ibis

    text, number = read_cell("duckdb", column, "string"), ibis.null("float64")
    if column.type().is_numeric():
        number = _when(text.isnull(), column.cast("float64"))
    return ibis.struct({"text": text, "number": number, "other": _when(text.isnull(), _spell_any(column))})


def _spell_any(column: Any) -> Any:
    """A text for every cell of a column of DuckDB's that is not missing, which others do not have."""
    import ibis

    dtype = column.type()
    if dtype.is_numeric() and not _is_whole(dtype):
        whole = column.try_cast("decimal(38, 0)")
        return ibis.coalesce(_when(whole.try_cast(dtype) == column, whole.cast("string")), column.cast("string"))
    if dtype.is_timestamp():
        # Those beyond the calendar have no text.
        return builtin("epoch_us", "int64", str(dtype))(column).cast("string")
    return builtin("hex", "string", str(dtype))(column) if dtype.is_binary() else column.cast("string")


def _read_mixed(engine: str, column: Any, kind: str) -> Any:
    import ibis

    text = column["text"]
    if kind == "string":
        return text
    spelled = _READ[kind](engine, text)
    return ibis.coalesce(column["number"], spelled) if kind == "float" else spelled


def _spells(engine: str, text: Any, kind: str) -> Any:
    """Whether a text is a spelling of a kind as a whole."""
    return text.re_search(f"^({SPELLINGS[kind]}){_end(engine)}")


def _end(engine: str) -> str:
    """The end of a text in a pattern; to Java, $ is also before the end of its last line."""
    return r"\z" if engine in ("pyspark", "databricks") else "$"


def _when(condition: Any, value: Any) -> Any:
    import ibis

    return ibis.cases((condition, value), else_=ibis.null(value.type()))


def _read_text(engine: str, column: Any) -> Any | None:
    dtype = column.type()
    if dtype.is_string():
        return column
    if dtype.is_signed_integer() or dtype.is_unsigned_integer():
        return column.cast("string")
    if dtype.is_numeric():
        return read_cell(engine, column, "integer").cast("string")
    if engine != "duckdb":
        return None
    if dtype.is_timestamp() and dtype.timezone is None:
        # At midnight it is spelled as the date that it is too.
        moment = in_calendar(column, "timestamp")
        day = moment.try_cast("date")
        return (day.try_cast("timestamp") == moment).ifelse(day.cast("string"), moment.cast("string"))
    if dtype.is_timestamp():
        return in_calendar(column, _TYPES["timestamp with time zone"]).cast("string")
    if dtype.is_date():
        return in_calendar(column, "date").cast("string")
    return column.cast("string") if dtype.is_boolean() or dtype.is_uuid() else None


def _read_integer(engine: str, column: Any) -> Any | None:
    dtype = column.type()
    if dtype.is_signed_integer():
        return column.cast("int64")
    if dtype.is_floating():
        value = column.cast("float64")
        return _when(value.between(-LARGEST_EXACT, LARGEST_EXACT), _whole(engine, value))
    if dtype.is_numeric():
        return _whole(engine, column)
    if not dtype.is_string():
        return None
    digits = column.re_extract(f"^{SPELLINGS['integer']}{_end(engine)}", 1)
    return _whole(engine, digits.cast("decimal")) if engine == "postgres" else digits.try_cast("int64")


def _whole(engine: str, number: Any) -> Any:
    """A number as an integer of 64 bits, NULL where it is none."""
    if engine != "postgres":
        nearest = number.try_cast("int64")
        # A HUGEINT, which ibis calls a decimal of 38 digits, need not fit into one.
        back = nearest if _is_whole(number.type()) else nearest.try_cast(number.type())
        return _when(back == number, nearest)
    # A cast that does not fit fails here, and CASE does not reach it.
    if number.type().is_floating():
        inside = number.between(-LARGEST_EXACT, LARGEST_EXACT)
        return _when(inside, _when(number == number.clip(-LARGEST_EXACT, LARGEST_EXACT).floor(), number.cast("int64")))
    return _when(number.between(-(2**63), 2**63 - 1), _when(number % 1 == 0, number.cast("int64")))


def _is_whole(dtype: Any) -> bool:
    """Whether a type holds whole numbers alone."""
    return bool(dtype.is_integer() or (dtype.is_decimal() and dtype.scale == 0))


def _read_number(engine: str, column: Any) -> Any | None:
    dtype = column.type()
    if dtype.is_numeric():
        return column.cast("float64")
    if not dtype.is_string() or engine == "postgres":
        return None
    return _when(_spells(engine, column, "float"), column.try_cast("float64"))


def _read_date(engine: str, column: Any) -> Any | None:
    dtype = column.type()
    if dtype.is_date():
        return in_calendar(column, "date") if engine == "duckdb" else column
    if dtype.is_timestamp() and dtype.timezone is None and engine == "duckdb":
        moment = in_calendar(column, "timestamp")
        day = moment.try_cast("date")
        return _when(day.try_cast("timestamp") == moment, day)
    if not dtype.is_string():
        return None
    day = column.cast("date") if engine == "postgres" else column.try_cast("date")
    return _when(_spells(engine, column, "date"), day)


def _read_boolean(engine: str, column: Any) -> Any | None:
    import ibis

    if column.type().is_boolean():
        return column
    if not column.type().is_string():
        return None
    return ibis.cases((column.isin(_TRUE), True), (column.isin(_FALSE), False), else_=ibis.null("boolean"))


def _read_moment(engine: str, column: Any, zone: bool) -> Any | None:
    dtype, kind = column.type(), "timestamp with time zone" if zone else "timestamp"
    if engine == "duckdb" and dtype.is_timestamp() and (dtype.timezone is not None) == zone:
        return in_calendar(column, _TYPES[kind])
    if engine == "duckdb" and dtype.is_date() and not zone:
        return in_calendar(column, "date").try_cast("timestamp")
    if not dtype.is_string() or engine != "duckdb":
        return None
    return _when(_spells(engine, column, kind), column.try_cast(_TYPES[kind]))


_READ: dict[str, Callable[[str, Any], Any | None]] = {
    "string": _read_text,
    "integer": _read_integer,
    "float": _read_number,
    "date": _read_date,
    "boolean": _read_boolean,
    "timestamp": lambda engine, column: _read_moment(engine, column, zone=False),
    "timestamp with time zone": lambda engine, column: _read_moment(engine, column, zone=True),
}


def _by_storage(column: Any, **values: Any) -> Any:
    """SQLite gives every cell a type of its own: the value for the type of the cell, NULL for others."""
    import ibis

    stored = column.typeof()
    branches = [(stored == name, value) for name, value in values.items()]
    return ibis.cases(*branches, else_=ibis.null(branches[0][1].type()))


def _as_blob(column: Any) -> Any:
    """The bytes of a text, which need not be UTF-8, as a function of Python may take them."""
    return (column if column.type().is_string() else column.cast("string")).cast("binary")


def _call(name: str, result: str, argument: Any) -> Any:
    """One of the functions that `sources/sqlite.py` registers."""
    return builtin(name, result, str(argument.type()).removeprefix("!"))(argument)


def _sqlite_integer(column: Any) -> Any:
    return _by_storage(
        column,
        integer=column.cast("int64"),
        real=_call("discreet_integer", "int64", column),
        text=_call("discreet_integer", "int64", _as_blob(column)),
    )


def _sqlite_text(column: Any) -> Any:
    whole = _call("discreet_integer", "int64", column).cast("string")
    return _by_storage(column, text=column.cast("string"), integer=column.cast("string"), real=whole)


def _sqlite_spelling(column: Any) -> Any:
    """The spelling of a user: also of floats that are no whole numbers, and of blobs."""
    import ibis

    text = column.cast("string")
    return ibis.cases((column.typeof() == "real", _call("discreet_spelling", "string", column)), else_=text)


def _sqlite_number(column: Any) -> Any:
    import ibis

    stored = column.typeof()
    if column.type().is_numeric():
        return stored.isin(["integer", "real"]).ifelse(column.cast("float64"), None)
    # Two branches in place of four, because SQLite's parser does not go deep.
    text = _call("discreet_float", "float64", _as_blob(column))
    return ibis.cases((stored == "text", text), else_=_call("discreet_float", "float64", column))


def _sqlite_boolean(column: Any) -> Any:
    import ibis

    number = column.cast("int64")
    bit = ibis.cases((number == 1, True), (number == 0, False), else_=ibis.null("boolean"))
    return _by_storage(column, integer=bit, text=_read_boolean("sqlite", column.cast("string")))


def _sqlite_moment(name: str, result: str) -> Callable[[Any], Any]:
    """Dates and timestamps are text to SQLite, and stay so, in one spelling."""
    return lambda column: _by_storage(column, text=_call(name, result, _as_blob(column)))


_READ_SQLITE: dict[str, Callable[[Any], Any | None]] = {
    "string": _sqlite_text,
    "integer": _sqlite_integer,
    "float": _sqlite_number,
    "boolean": _sqlite_boolean,
    "date": _sqlite_moment("discreet_date", "date"),
    "timestamp": _sqlite_moment("discreet_timestamp", "string"),
    "timestamp with time zone": lambda column: None,
}
