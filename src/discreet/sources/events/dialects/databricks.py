"""The dialect of Databricks, from its documentation and from that of Spark, which is tested; it was never run there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from discreet.sources.events.cells import LONGEST_TEXT, SECONDS_PER_DAY, engine_function, null_unless
from discreet.sources.events.dialects.pyspark import DIALECT as SPARK


def drop_broken_text(text: Any) -> Any:
    """Return a text, NULL if its bytes are not UTF-8; decode would fail on such bytes."""
    return null_unless(engine_function("is_valid_utf8", "boolean", "string")(text), text)


def clean_text(text: Any) -> Any:
    """Return a text, NULL if it is no UTF-8, has a NUL or is too long."""
    length = engine_function("octet_length", "int64", "string")(text)
    return null_unless((length <= LONGEST_TEXT) & ~text.re_search(r"\x00"), drop_broken_text(text))


def count_days(day: Any) -> Any:
    """Return the days of a date since 1970; a difference of timestamps would be rounded towards zero."""
    return engine_function("unix_date", "int64", "date")(day)


def count_seconds(moment: Any) -> Any:
    """Return the whole seconds since 1970, rounded down, of a timestamp with or without a zone, as in Spark."""
    import ibis

    # EXTRACT would give the second with its fraction.
    hour, minute, second = (
        engine_function(name, "int64", "timestamp")(moment) for name in ("hour", "minute", "second")
    )
    clock = hour * 3600 + minute * 60 + second
    point = engine_function("to_timestamp_ltz", "timestamp", "timestamp")(moment)
    has_zone = engine_function("typeof", "string", "timestamp")(moment) == "timestamp"
    seconds = engine_function("unix_seconds", "int64", "timestamp")(point)
    return ibis.cases((has_zone, seconds), else_=count_days(moment.cast("date")) * SECONDS_PER_DAY + clock)


DIALECT = replace(
    SPARK,
    name="databricks",
    title="Databricks",
    was_run=False,
    adapt_table=lambda table: table,
    views_local_tables=False,
    send_unlogged=None,
    drop_broken_text=drop_broken_text,
    clean_text=clean_text,
    count_days=count_days,
    count_seconds=count_seconds,
)
