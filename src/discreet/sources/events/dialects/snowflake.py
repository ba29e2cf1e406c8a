"""The dialect of Snowflake, from its documentation; it was never run.

A VARCHAR is UTF-8. TO_BINARY gives its bytes whatever its collation, where a cast would read hexadecimal digits.
TRY_CAST takes text alone, and the order in which a CASE is evaluated is not promised, so that no text is read as a
number or a date.
"""

from __future__ import annotations

from datetime import date
from typing import Any

from discreet.sources.events.cells import LONGEST_TEXT, engine_function, null_unless
from discreet.sources.events.dialects.base import Dialect, make_literal, trim_spaces


def text_bytes(text: Any) -> Any:
    """Return the bytes of a text in UTF-8."""
    return engine_function("TO_BINARY", "binary", "string", "string")(text, "UTF-8")


def bytes_text(spelled: Any) -> Any:
    """Return the text of bytes in UTF-8."""
    return engine_function("TO_VARCHAR", "string", "binary", "string")(spelled, "UTF-8")


def digest(value: Any) -> Any:
    """Return the MD5 of a text, or of the hexadecimal digits of bytes: MD5 is documented for text."""
    if value.type().is_binary():
        value = engine_function("HEX_ENCODE", "string", "binary")(value)
    return engine_function("MD5", "string", "string")(value)


def clean_text(text: Any) -> Any:
    """Return a text, NULL if it has a NUL or is too long."""
    length = engine_function("OCTET_LENGTH", "int64", "string")(text)
    nul = engine_function("TO_BINARY", "binary", "string", "string")("00", "HEX")
    has_nul = engine_function("CONTAINS", "boolean", "binary", "binary")(text_bytes(text), nul)
    return null_unless((length <= LONGEST_TEXT) & ~has_nul, text)


def count_days(day: Any) -> Any:
    """Return the days of a date since 1970."""
    return engine_function("DATEDIFF", "int64", "string", "date", "date")("day", make_literal(date(1970, 1, 1)), day)


def count_seconds(moment: Any) -> Any:
    """Return the whole seconds since 1970, rounded down; a timestamp without a zone is in UTC."""
    kind = str(moment.type())
    whole = engine_function("DATE_TRUNC", kind, "string", kind)("second", moment)
    return engine_function("DATE_PART", "int64", "string", kind)("epoch_second", whole)


DIALECT = Dialect(
    name="snowflake",
    title="Snowflake",
    was_run=False,
    text_bytes=text_bytes,
    bytes_text=bytes_text,
    digest=digest,
    trim=trim_spaces,
    clean_text=clean_text,
    parses_text=False,
    has_try_cast=False,
    count_days=count_days,
    count_seconds=count_seconds,
)
