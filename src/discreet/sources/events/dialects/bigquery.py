"""The dialect of BigQuery, from its documentation; it was never run.

A STRING is UTF-8, and a cast to BYTES gives its bytes whatever its collation. SAFE_CAST, to which ibis compiles a
TRY_CAST, returns NULL for any type. Regular expressions are RE2, where $ is the end of the text.
"""

from __future__ import annotations

from typing import Any

from discreet.sources.events.cells import LONGEST_TEXT, engine_function, null_unless
from discreet.sources.events.dialects.base import (
    Dialect,
    cast_to_bytes,
    cast_to_text,
    trim_spaces,
)


def digest(value: Any) -> Any:
    """Return the MD5 of bytes, or of the bytes of a text, in hexadecimal digits."""
    hashed = engine_function("MD5", "binary", "binary")(value if value.type().is_binary() else cast_to_bytes(value))
    return engine_function("TO_HEX", "string", "binary")(hashed)


def clean_text(text: Any) -> Any:
    """Return a text, NULL if it has a NUL or is too long."""
    length = engine_function("BYTE_LENGTH", "int64", "string")(text)
    return null_unless((length <= LONGEST_TEXT) & ~text.re_search(r"\x00"), text)


def count_seconds(moment: Any) -> Any:
    """Return the whole seconds since 1970, which UNIX_SECONDS rounds down; a DATETIME has no zone and is in UTC."""
    kind = str(moment.type())
    if moment.type().timezone is None:
        moment = engine_function("TIMESTAMP", "timestamp('UTC')", kind, "string")(moment, "UTC")
    return engine_function("UNIX_SECONDS", "int64", "timestamp('UTC')")(moment)


DIALECT = Dialect(
    name="bigquery",
    title="BigQuery",
    was_run=False,
    text_bytes=cast_to_bytes,
    bytes_text=cast_to_text,
    digest=digest,
    trim=trim_spaces,
    clean_text=clean_text,
    # The NUMERIC of BigQuery has 29 digits before the point. ibis compiles this type to BIGNUMERIC, which has 38.
    total_type="decimal(76, 38)",
    count_days=lambda day: engine_function("UNIX_DATE", "int64", "date")(day),
    count_seconds=count_seconds,
)
