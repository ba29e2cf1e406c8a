"""Spark, by pyspark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any

from discreet.sources.events.cells import SECONDS_PER_DAY, engine_function, null_unless
from discreet.sources.events.dialects.base import Dialect, cast_to_bytes, cast_to_text, declare_columns, digest_bytes

_COLUMN_TYPES = {"int64": "bigint", "string": "string", "date32[day]": "date", "bool": "boolean"}

_USE_ARROW = "spark.sql.execution.arrow.pyspark.enabled"


@contextmanager
def _view_rows(backend: Any, name: str, rows: Any) -> Iterator[Any]:
    """A temporary view of a local relation, which plans show by its columns alone."""
    from pyspark.sql.functions import broadcast

    session = backend._session
    schema = declare_columns(rows, [_COLUMN_TYPES[str(field.type)] for field in rows.schema])
    with _enable_arrow(session):
        frame = session.createDataFrame(rows.to_pandas(), schema)
    # The rows are few, which Spark may not know, and would sort both sides.
    broadcast(frame).createOrReplaceTempView(name)
    try:
        yield backend.table(name)
    finally:
        session.catalog.dropTempView(name)


@contextmanager
def _enable_arrow(session: Any) -> Iterator[None]:
    """Frames cross to Spark as Arrow batches inside; else as pickles, which Python processes there have to read."""
    given = session.conf.get(_USE_ARROW)
    if given == "true":
        yield
        return
    session.conf.set(_USE_ARROW, "true")
    try:
        yield
    finally:
        session.conf.set(_USE_ARROW, given)


def _trim_plainly(text: Any, name: str) -> Any:
    """A trim that is not told what to remove: Spark reads two arguments in reverse."""
    return engine_function(name, "string", "string")(text)


def _drop_broken_utf8(text: Any) -> Any:
    """A text of Spark's, which may be any bytes: decoding replaces those that are none of UTF-8."""
    back = engine_function("decode", "string", "binary", "string")(cast_to_bytes(text), "UTF-8")
    return null_unless(cast_to_bytes(back) == cast_to_bytes(text), text)


def _count_days(day: Any) -> Any:
    """Days of a date since 1970."""
    import ibis

    count = engine_function("datediff", "int32", "date", "date")
    return count(day, ibis.literal(date(1970, 1, 1))).cast("int64")


def _count_seconds(moment: Any) -> Any:
    """Whole seconds since 1970, rounded down, of a point in time, or of a clock without a zone.

    ibis does not tell these two types of Spark's apart, and the one converts to the other by the zone of the session.
    """
    import ibis

    def call(name: str, result: str, argument: Any = moment) -> Any:
        return engine_function(name, result, "timestamp")(argument)

    clock = call("hour", "int64") * 3600 + call("minute", "int64") * 60 + call("second", "int64")
    shown_by_clock = _count_days(call("to_date", "date")) * SECONDS_PER_DAY + clock
    point = call("unix_seconds", "int64", call("to_timestamp_ltz", "timestamp"))
    return ibis.cases((call("typeof", "string") == "timestamp", point), else_=shown_by_clock)


DIALECT = Dialect(
    name="pyspark",
    title="Spark",
    # Spark's cache does not know tables in memory unless a view stands for them.
    views_local_tables=True,
    send_unlogged=_view_rows,
    text_bytes=cast_to_bytes,
    bytes_text=cast_to_text,
    digest=lambda value: digest_bytes(value, cast_to_bytes),
    drop_broken_text=_drop_broken_utf8,
    trim=_trim_plainly,
    # To Java, $ is also before the end of the last line.
    text_end=r"\z",
    count_days=_count_days,
    count_seconds=_count_seconds,
)
