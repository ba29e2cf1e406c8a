"""The dialect of PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import Any

from discreet.sources.events.case_folding import read_table
from discreet.sources.events.cells import LONGEST_TEXT, engine_function, null_unless
from discreet.sources.events.dialects.base import (
    Close,
    Dialect,
    connect_by_ibis,
    declare_columns,
    digest_bytes,
    fold_below,
    iterate_rows,
    trim_spaces,
)

_LAST_DECIMAL_PLACE = 300
"""The last decimal place that is kept, on both sides of the point; the range of doubles is a little larger."""

_ENCODING = engine_function("getdatabaseencoding", "string")

_ENUM_TEXT = "string(1000)"
"""A type that is longer than any value of an enum, which has at most 63 bytes."""

_AS_NUMBERS: dict[int, Callable[[Any], Any]] = {
    # ibis takes an oid for a number already, and would leave out a cast to one.
    26: lambda oid: oid.cast("string(20)").cast("int64"),
    790: lambda money: money.cast("decimal(38, 4)"),
}
"""The conversions of oid and money to numbers, by the oid of the type."""

_FOLD_LIMITS = (0x80, 0x250, 0x530)
"""The code points after ASCII, Latin, and Greek and Cyrillic; no run of the table of case folding crosses one."""

_COLUMN_TYPES = {"int64": "int8", "string": "text", "date32[day]": "date", "bool": "bool"}


def connect(url: str) -> tuple[Any, Close]:
    """Return a connection in UTF-8, and the function that closes it; ibis cannot use SQL_ASCII."""
    url = url.replace("postgresql://", "postgres://", 1)
    if "client_encoding=" not in url:
        url += f"{'&' if '?' in url else '?'}client_encoding=utf8"
    return connect_by_ibis(url)


def text_bytes(text: Any) -> Any:
    """Return the bytes of a text in the encoding of the database.

    A conversion to another encoding fails on an undefined byte, such as 0x81 in WIN1252.
    """
    return engine_function("convert_to", "binary", "string", "string")(text, _ENCODING())


def bytes_text(spelled: Any) -> Any:
    """Return the text of the bytes that `text_bytes` returns."""
    return engine_function("convert_from", "string", "binary", "string")(spelled, _ENCODING())


def drop_broken_text(text: Any) -> Any:
    """Return a text, NULL if reading it may fail: the database is not in UTF-8, and the text not in ASCII."""
    return null_unless((_ENCODING() == "UTF8") | ~text.re_search(r"[^\x01-\x7f]"), text)


def adapt_table(table: Any) -> Any:
    """Return a table whose columns have the types that ibis takes them for.

    Enums, and text types that ibis does not know, such as citext and domains, become text; money and oid become
    numbers. PostgreSQL reports the types of the columns without reading a row.
    """
    backend = table.get_backend()
    with backend.con.cursor() as cursor, backend.con.transaction():
        # ibis reads geometries with functions that the server may lack.
        plain = [name for name, dtype in table.schema().items() if not dtype.is_geospatial()]
        cursor.execute(backend.compile(table.select(plain).limit(0)))
        types = {column.name: column.type_code for column in cursor.description}
        cursor.execute(
            "SELECT oid, typtype = 'e' FROM pg_catalog.pg_type WHERE typcategory IN ('E', 'S') AND oid = ANY(%s)",
            (list(types.values()),),
        )
        are_enums = dict(cursor.fetchall())
    # ibis takes some enums for text already, and would leave out a cast to text without a length.
    found = {
        name: (table[name].cast(_ENUM_TEXT) if are_enums[oid] else table[name]).cast("string")
        for name, oid in types.items()
        if oid in are_enums and (are_enums[oid] or table[name].type().is_unknown())
    }
    found |= {name: _AS_NUMBERS[oid](table[name]) for name, oid in types.items() if oid in _AS_NUMBERS}
    return table.mutate(**found) if found else table


@contextmanager
def send_unlogged(backend: Any, name: str, rows: Any) -> Iterator[Any]:
    """Yield a temporary table filled by COPY: no statement shows its rows, and in binary format no error does."""
    types = [_COLUMN_TYPES[str(field.type)] for field in rows.schema]
    with backend.con.cursor() as cursor, backend.con.transaction():
        cursor.execute(f"CREATE TEMPORARY TABLE {name} ({declare_columns(rows, types)})")
        with cursor.copy(f"COPY {name} FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(types)
            for row in iterate_rows(rows):
                copy.write_row(row)
    try:
        yield backend.table(name)
    finally:
        with backend.con.cursor() as cursor, backend.con.transaction():
            cursor.execute(f"DROP TABLE {name}")


def count_days(day: Any) -> Any:
    """Return the days of a date since 1970, NULL for infinite and very distant dates, on which date_mi would fail."""
    import ibis

    count = engine_function("date_mi", "int32", "date", "date")
    inside = day.between(ibis.literal(date.min), ibis.literal(date.max))
    return null_unless(inside, count(day, ibis.literal(date(1970, 1, 1))))


def count_seconds(moment: Any) -> Any:
    """Return the whole seconds of a timestamp since 1970, rounded down."""
    import ibis

    zone, kind = None if moment.type().timezone is None else UTC, str(moment.type())
    inside = moment.between(*(ibis.literal(each.replace(tzinfo=zone)) for each in (datetime.min, datetime.max)))
    whole = engine_function("date_trunc", kind, "string", kind)("second", moment)
    # date_part returns a double, which is exact for whole seconds but not for microseconds.
    return null_unless(inside, engine_function("date_part", "float64", "string", kind)("epoch", whole).cast("int64"))


def to_float(number: Any) -> Any:
    """Return a number as a double; the NaN of a numeric becomes NULL, and other numerics are rounded and clipped."""
    import ibis

    if not number.type().is_decimal():
        return number.cast("float64")
    number = number.nullif(ibis.literal("NaN").cast("decimal"))
    rounded = engine_function("round", "decimal", "decimal", "int32")(number, _LAST_DECIMAL_PLACE)
    most = f"1e{_LAST_DECIMAL_PLACE}"
    return rounded.clip(*(ibis.literal(each).cast("decimal") for each in (f"-{most}", most))).cast("float64")


def clean_text(text: Any) -> Any:
    """Return a text, NULL if it is too long or reading it may fail; PostgreSQL has no text with a NUL."""
    length = engine_function("octet_length", "int64", "string")(text)
    return null_unless(length <= LONGEST_TEXT, drop_broken_text(text))


def fold(text: Any) -> Any:
    """Return a text after simple case folding.

    The time of `translate` grows with the table, up to 10 microseconds for each character. A text whose characters
    above a limit all stay as they are is translated by the part of the table below it.
    """
    import ibis

    # PostgreSQL has no regular expressions on text with a nondeterministic collation.
    text, runs, branches = bytes_text(text_bytes(text)), read_table()[1], []
    for limit in _FOLD_LIMITS:
        above = "".join(f"{chr(first)}-{chr(last)}" for first, last, _, _ in runs if first >= limit)
        branches.append((~text.re_search(f"[{above}]"), fold_below(text, limit)))
    return ibis.cases(*branches, else_=fold_below(text))


DIALECT = Dialect(
    name="postgres",
    title="PostgreSQL",
    packages=("ibis-framework[postgres]", "psycopg[binary]"),
    connect=connect,
    adapt_table=adapt_table,
    copies_local_tables=True,
    send_unlogged=send_unlogged,
    text_bytes=text_bytes,
    bytes_text=bytes_text,
    digest=lambda value: digest_bytes(value, text_bytes),
    drop_broken_text=drop_broken_text,
    trim=trim_spaces,
    clean_text=clean_text,
    fold=fold,
    has_try_cast=False,
    count_days=count_days,
    count_seconds=count_seconds,
    to_float=to_float,
)
