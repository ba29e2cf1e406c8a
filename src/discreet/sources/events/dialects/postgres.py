"""PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import Any

from discreet.sources.events.cells import engine_function, null_unless
from discreet.sources.events.dialects.base import (
    Close,
    Dialect,
    connect_by_ibis,
    declare_columns,
    digest_bytes,
    iterate_rows,
    trim_spaces,
)

_LAST_DECIMAL_PLACE = 300
"""The last place of a decimal that counts, on both sides of the point; doubles go a little further."""

_ENCODING = engine_function("getdatabaseencoding", "string")

_ENUM_TEXT = "string(1000)"
"""Longer than any value of an enum, which is a name and so has 63 bytes at most."""

_AS_NUMBERS: dict[int, Callable[[Any], Any]] = {
    # To ibis an oid is a number already, and a cast to one would be left out.
    26: lambda oid: oid.cast("string(20)").cast("int64"),
    790: lambda money: money.cast("decimal(38, 4)"),
}
"""The conversion of oid and money to numbers, by the number of the type."""

_COLUMN_TYPES = {"int64": "int8", "string": "text", "date32[day]": "date", "bool": "bool"}


def _connect(url: str) -> tuple[Any, Close]:
    """Return a connection that sends and reads UTF-8, and what closes it; ibis cannot use one in SQL_ASCII."""
    url = url.replace("postgresql://", "postgres://", 1)
    if "client_encoding=" not in url:
        url += f"{'&' if '?' in url else '?'}client_encoding=utf8"
    return connect_by_ibis(url)


def _encode(text: Any) -> Any:
    """Return the bytes of a text in the encoding of the database.

    A conversion to another encoding fails on a byte that has no meaning, such as 0x81 in WIN1252.
    """
    return engine_function("convert_to", "binary", "string", "string")(text, _ENCODING())


def _drop_unreadable(text: Any) -> Any:
    """Return a text, NULL where the database is not in UTF-8 and the text not in ASCII: it may fail to be read."""
    return null_unless((_ENCODING() == "UTF8") | ~text.re_search(r"[^\x01-\x7f]"), text)


def _adapt_table(table: Any) -> Any:
    """Return a table whose columns are of the types that ibis takes them for.

    Enums, and types of text that ibis does not know, such as citext and domains, are text; money and oid are numbers.
    PostgreSQL says of which types its columns are, without a look at a row.
    """
    backend = table.get_backend()
    with backend.con.cursor() as cursor, backend.con.transaction():
        # ibis reads geometries by functions that the server may not have.
        plain = [name for name, dtype in table.schema().items() if not dtype.is_geospatial()]
        cursor.execute(backend.compile(table.select(plain).limit(0)))
        types = {column.name: column.type_code for column in cursor.description}
        cursor.execute(
            "SELECT oid, typtype = 'e' FROM pg_catalog.pg_type WHERE typcategory IN ('E', 'S') AND oid = ANY(%s)",
            (list(types.values()),),
        )
        are_enums = dict(cursor.fetchall())
    # To ibis some enums are text already, and a cast to text without a length would be left out.
    found = {
        name: (table[name].cast(_ENUM_TEXT) if are_enums[oid] else table[name]).cast("string")
        for name, oid in types.items()
        if oid in are_enums and (are_enums[oid] or table[name].type().is_unknown())
    }
    found |= {name: _AS_NUMBERS[oid](table[name]) for name, oid in types.items() if oid in _AS_NUMBERS}
    return table.mutate(**found) if found else table


@contextmanager
def _copy_rows(backend: Any, name: str, rows: Any) -> Iterator[Any]:
    """A temporary table, filled by COPY: its rows are no part of a statement, and in binary of no error either."""
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


def _count_days(day: Any) -> Any:
    """Days of a date since 1970; the farthest and the infinite ones, on which this would fail, are not counted."""
    import ibis

    count = engine_function("date_mi", "int32", "date", "date")
    inside = day.between(ibis.literal(date.min), ibis.literal(date.max))
    return null_unless(inside, count(day, ibis.literal(date(1970, 1, 1))))


def _count_seconds(moment: Any) -> Any:
    """Whole seconds of a timestamp since 1970, rounded down."""
    import ibis

    zone, kind = None if moment.type().timezone is None else UTC, str(moment.type())
    inside = moment.between(*(ibis.literal(each.replace(tzinfo=zone)) for each in (datetime.min, datetime.max)))
    whole = engine_function("date_trunc", kind, "string", kind)("second", moment)
    # A double, which has room for whole seconds, and none for microseconds.
    return null_unless(inside, engine_function("date_part", "float64", "string", kind)("epoch", whole).cast("int64"))


def _to_float(number: Any) -> Any:
    """Return a number as a double; a numeric has NaN, which is above all numbers, and may be too large or too fine."""
    import ibis

    if not number.type().is_decimal():
        return number.cast("float64")
    number = number.nullif(ibis.literal("NaN").cast("decimal"))
    rounded = engine_function("round", "decimal", "decimal", "int32")(number, _LAST_DECIMAL_PLACE)
    most = f"1e{_LAST_DECIMAL_PLACE}"
    return rounded.clip(*(ibis.literal(each).cast("decimal") for each in (f"-{most}", most))).cast("float64")


DIALECT = Dialect(
    name="postgres",
    title="PostgreSQL",
    packages=("ibis-framework[postgres]", "psycopg[binary]"),
    connect=_connect,
    adapt_table=_adapt_table,
    copies_local_tables=True,
    send_unlogged=_copy_rows,
    text_bytes=_encode,
    bytes_text=lambda spelled: engine_function("convert_from", "string", "binary", "string")(spelled, _ENCODING()),
    digest=lambda value: digest_bytes(value, _encode),
    drop_broken_text=_drop_unreadable,
    trim=trim_spaces,
    has_try_cast=False,
    count_days=_count_days,
    count_seconds=_count_seconds,
    to_float=_to_float,
)
