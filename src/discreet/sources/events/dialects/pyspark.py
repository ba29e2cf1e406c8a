"""The dialect of Spark, used through pyspark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any

from discreet.errors import InvalidTypeError
from discreet.sources.events.cells import LONGEST_TEXT, SECONDS_PER_DAY, engine_function, null_unless
from discreet.sources.events.dialects.base import (
    Dialect,
    cast_to_bytes,
    cast_to_text,
    declare_columns,
    digest_bytes,
    fold_below,
)

_COLUMN_TYPES = {"int64": "bigint", "string": "string", "date32[day]": "date", "bool": "boolean"}

_USE_ARROW = "spark.sql.execution.arrow.pyspark.enabled"


def adapt_table(table: Any) -> Any:
    """Return the table, or raise if its session is one of Spark Connect whose server does not keep cached tables."""
    session = table.get_backend()._session
    if type(session).__module__.startswith("pyspark.sql.connect") and not keeps_cached_tables(session):
        raise InvalidTypeError(
            "table must be on a Spark that keeps cached tables, unlike this one (pysail does not), because a release "
            "reads its scores more than once: write the table to Parquet files and give their paths"
        )
    return table


def keeps_cached_tables(session: Any) -> bool:
    """Return True if a cached table is read twice and not computed twice, whatever the session says of its storage."""
    moment = session.sql("SELECT current_timestamp() AS moment").persist()
    try:
        # Each query has a time of its own, so two of them show the same one only if both read the cached table.
        first, second = (moment.select("moment").collect() for _ in range(2))
        return bool(first == second)
    finally:
        moment.unpersist()


@contextmanager
def send_unlogged(backend: Any, name: str, rows: Any) -> Iterator[Any]:
    """Yield a temporary view of a local relation, of which plans show only the columns."""
    from pyspark.sql.functions import broadcast

    session = backend._session
    schema = declare_columns(rows, [_COLUMN_TYPES[str(field.type)] for field in rows.schema])
    # As Arrow batches; otherwise as pickles, which Python processes of Spark have to read.
    given = session.conf.get(_USE_ARROW)
    if given != "true":
        session.conf.set(_USE_ARROW, "true")
    try:
        frame = session.createDataFrame(rows.to_pandas(), schema)
    finally:
        if given != "true":
            session.conf.set(_USE_ARROW, given)
    # Spark may not know that the rows are few, and would sort both sides of a join.
    broadcast(frame).createOrReplaceTempView(name)
    try:
        yield backend.table(name)
    finally:
        session.catalog.dropTempView(name)


def drop_broken_text(text: Any) -> Any:
    """Return a text, NULL if its bytes are not UTF-8.

    Spark 3 decodes such bytes as others, and the text changes. Spark 4 fails on them, and has a function that tells.
    """
    if not text.op().relations:
        return text
    if int(text.get_backend()._session.version.partition(".")[0]) >= 4:
        return null_unless(engine_function("is_valid_utf8", "boolean", "string")(text), text)
    back = engine_function("decode", "string", "binary", "string")(cast_to_bytes(text), "UTF-8")
    return null_unless(cast_to_bytes(back) == cast_to_bytes(text), text)


def clean_text(text: Any) -> Any:
    """Return a text, NULL if it is no UTF-8, has a NUL or is too long."""
    length = engine_function("octet_length", "int64", "string")(text)
    return null_unless((length <= LONGEST_TEXT) & ~text.re_search(r"\x00"), drop_broken_text(text))


def count_days(day: Any) -> Any:
    """Return the days of a date since 1970."""
    import ibis

    count = engine_function("datediff", "int32", "date", "date")
    return count(day, ibis.literal(date(1970, 1, 1))).cast("int64")


def count_seconds(moment: Any) -> Any:
    """Return the whole seconds since 1970, rounded down, of a timestamp with or without a time zone.

    ibis does not distinguish these two types of Spark, and a conversion between them uses the zone of the session.
    """
    import ibis

    def call(name: str, result: str, argument: Any = moment) -> Any:
        return engine_function(name, result, "timestamp")(argument)

    clock = call("hour", "int64") * 3600 + call("minute", "int64") * 60 + call("second", "int64")
    shown_by_clock = count_days(call("to_date", "date")) * SECONDS_PER_DAY + clock
    point = call("unix_seconds", "int64", call("to_timestamp_ltz", "timestamp"))
    return ibis.cases((call("typeof", "string") == "timestamp", point), else_=shown_by_clock)


DIALECT = Dialect(
    name="pyspark",
    title="Spark",
    adapt_table=adapt_table,
    # Spark can cache tables in memory only through a view.
    views_local_tables=True,
    send_unlogged=send_unlogged,
    text_bytes=cast_to_bytes,
    bytes_text=cast_to_text,
    digest=lambda value: digest_bytes(value, cast_to_bytes),
    drop_broken_text=drop_broken_text,
    # Spark takes the characters to remove as its first argument, and removes spaces without one.
    trim=lambda text, name: engine_function(name, "string", "string")(text),
    clean_text=clean_text,
    # Spark prepares the table once for all rows.
    fold=fold_below,
    # In Java, $ also matches before a final line break.
    text_end=r"\z",
    count_days=count_days,
    count_seconds=count_seconds,
)
