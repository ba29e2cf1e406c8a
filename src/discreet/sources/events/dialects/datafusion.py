"""The dialect of DataFusion, in the process; its text is UTF-8, compared by bytes.

Arrow tables in memory can hold other bytes as text, on which functions of text fail. Such text is missing.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

from discreet.errors import InvalidTypeError
from discreet.sources.events.cells import (
    FIRST_SECOND,
    LAST_SECOND,
    SECONDS_PER_DAY,
    engine_function,
    null_unless,
)
from discreet.sources.events.dialects.base import (
    Dialect,
    cast_to_bytes,
    cast_to_text,
    digest_bytes,
    make_literal,
    trim_spaces,
)

_MOST_DECIMAL_PLACES = 19
"""Decimals of 38 digits with more places than this cannot hold all whole numbers of 64 bits."""

_UTF8 = (
    "^(?:[0-7].|c[2-9a-f][89ab].|d.[89ab].|e0[ab].[89ab].|e[1-9a-cef][89ab].[89ab].|ed[89].[89ab].|"
    "f0[9ab].[89ab].[89ab].|f[1-3][89ab].[89ab].[89ab].|f48.[89ab].[89ab].)*$"
)
"""The hexadecimal digits of the bytes of UTF-8. TRY_CAST of the bytes would read a whole table again for each batch."""


@contextmanager
def send_unlogged(backend: Any, name: str, rows: Any) -> Iterator[Any]:
    """Yield a table over the Arrow table, which DataFusion scans in place."""
    backend.con.register_record_batches(name, [rows.to_batches()])
    try:
        yield backend.table(name)
    finally:
        backend.con.deregister_table(name)


def adapt_table(table: Any) -> Any:
    """Return the table without text that is broken, or raise if it reads a text file, of which types are inferred.

    The plan names the formats of the files. No row is read for it.
    """
    backend = table.get_backend()
    logical, physical = backend.con.sql(f"EXPLAIN {backend.compile(table)}").to_pydict()["plan"]
    if any(f"file_type={kind}" in physical for kind in ("csv", "json", "avro")):
        raise InvalidTypeError(
            "table must not read CSV, JSON or Avro files on DataFusion, which infers their types from rows: give "
            "discreet.events the paths of the files"
        )
    # Scans of Parquet check their text.
    is_checked = physical.count("file_type=parquet") == logical.count("TableScan:")
    adapted = {}
    for name, dtype in table.schema().items():
        if dtype.is_string() and not is_checked:
            adapted[name] = drop_broken_text(table[name])
        elif dtype.is_floating():
            # DataFusion takes -0.0 for less than 0.0, and a NaN with a sign for less than all numbers.
            number = (table[name].abs() == 0).ifelse(0.0, table[name])
            adapted[name] = table[name].cast("float64").isnan().ifelse(float("nan"), number).cast(dtype)
        elif dtype.is_decimal() and dtype.scale > _MOST_DECIMAL_PLACES:
            adapted[name] = table[name].cast(f"decimal(76, {dtype.scale})")
    return table.mutate(**adapted) if adapted else table


def drop_broken_text(text: Any) -> Any:
    """Return a text, NULL if its bytes are not UTF-8."""
    digits = engine_function("encode", "string", "binary", "string")(cast_to_bytes(text), "hex")
    return null_unless(digits.re_search(_UTF8), text)


def spell_key(key: Any) -> Any:
    """Return a value as text; a timestamp, or a date outside of the years 1 to 9999, as its whole number."""
    if key.type().is_timestamp():
        return _count_steps(key).cast("string")
    if key.type().is_date():
        number = _count_steps(key).cast("string")
        # DataFusion fails on the text of a date beyond the years that it can spell.
        return count_days(key).notnull().ifelse(key.cast("string"), number)
    return key.cast("string")


def count_days(day: Any) -> Any:
    """Return the days of a date since 1970, NULL outside of the years 1 to 9999."""
    count = _count_steps(day)
    return null_unless(count.between(FIRST_SECOND // SECONDS_PER_DAY, LAST_SECOND // SECONDS_PER_DAY), count)


def count_seconds(moment: Any) -> Any:
    """Return the whole seconds of a timestamp since 1970, rounded down, NULL outside of the years 1 to 9999."""
    zone = "None" if moment.type().timezone is None else 'Some("UTC")'
    # The conversion rounds towards zero, so that a remainder below zero means one second less.
    seconds = _count_steps(_cast_by_arrow(moment, "timestamp(0)", f"Timestamp(Second, {zone})"))
    unit = 10 ** (6 if moment.type().scale is None else moment.type().scale)
    rounded_down = seconds - (_count_steps(moment) % unit < 0).ifelse(1, 0)
    # All nanoseconds of 64 bits are inside, and DataFusion would compare them with bounds that overflow.
    return rounded_down if unit == 10**9 else null_unless(seconds.between(FIRST_SECOND, LAST_SECOND), rounded_down)


def _count_steps(value: Any) -> Any:
    """Return the whole number that DataFusion stores for a timestamp, and the days since 1970 of a date."""
    # A date of Arrow may count milliseconds.
    value = _cast_by_arrow(value, "date", "Date32") if value.type().is_date() else value
    return _cast_by_arrow(value, "int64", "Int64")


def _cast_by_arrow(value: Any, kind: str, arrow_type: str) -> Any:
    """Return a value as an Arrow type, of which `kind` is the name in ibis."""
    return engine_function("arrow_cast", kind, str(value.type()), "string")(value, arrow_type)


DIALECT = Dialect(
    name="datafusion",
    title="DataFusion",
    packages=("ibis-framework[datafusion]", "datafusion<52"),
    send_unlogged=send_unlogged,
    text_bytes=cast_to_bytes,
    bytes_text=cast_to_text,
    digest=lambda value: digest_bytes(value, cast_to_bytes),
    # DataFusion has no ranges of bytes in windows.
    hash_number=lambda *texts: digest_bytes(cast_to_bytes(reduce(operator.add, texts)), cast_to_bytes).left(12),
    trim=lambda text, name: trim_spaces(text, "btrim" if name == "trim" else name),
    # ibis compiles a TRY_CAST for DataFusion to a CAST, which fails.
    has_try_cast=False,
    digits_type="decimal(76, 0)",
    adapt_table=adapt_table,
    # ibis spells a date as a timestamp in nanoseconds, which dates beyond 2262 overflow.
    date_literal=lambda day: _cast_by_arrow(make_literal(day.isoformat()), "date", "Date32"),
    count_days=count_days,
    count_seconds=count_seconds,
    spell_key=spell_key,
)
