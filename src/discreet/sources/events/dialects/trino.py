"""The dialect of Trino, from its documentation; it was never run.

A VARCHAR is a sequence of code points, and to_utf8 gives its bytes. TRY_CAST takes all types. Regular expressions have
the syntax of Java, where $ also matches before a final line break.
"""

from __future__ import annotations

from datetime import date
from typing import Any

from discreet.sources.events.cells import LONGEST_TEXT, engine_function, null_unless
from discreet.sources.events.dialects.base import Dialect, make_literal

_SPACES = {"ltrim": r"^ +", "rtrim": r" +\z", "trim": r"^ +| +\z"}
"""The spaces that are removed; functions of Trino remove other blanks too unless characters are named."""


def text_bytes(text: Any) -> Any:
    """Return the bytes of a text in UTF-8."""
    return engine_function("to_utf8", "binary", "string")(text)


def bytes_text(spelled: Any) -> Any:
    """Return the text of bytes in UTF-8."""
    return engine_function("from_utf8", "string", "binary")(spelled)


def digest(value: Any) -> Any:
    """Return the MD5 of bytes, or of the bytes of a text, in hexadecimal digits."""
    hashed = engine_function("md5", "binary", "binary")(value if value.type().is_binary() else text_bytes(value))
    return engine_function("lower", "string", "string")(engine_function("to_hex", "string", "binary")(hashed))


def clean_text(text: Any) -> Any:
    """Return a text, NULL if it has a NUL or is too long."""
    length = engine_function("length", "int64", "binary")(text_bytes(text))
    return null_unless((length <= LONGEST_TEXT) & ~text.re_search(r"\x00"), text)


def count_days(day: Any) -> Any:
    """Return the days of a date since 1970."""
    count = engine_function("date_diff", "int64", "string", "date", "date")
    return count("day", make_literal(date(1970, 1, 1)), day)


def count_seconds(moment: Any) -> Any:
    """Return the whole seconds since 1970, rounded down; a timestamp without a zone is in UTC.

    Without a zone to_unixtime would take that of the session. It returns a double, which is exact for whole seconds.
    """
    kind = str(moment.type())
    whole = engine_function("date_trunc", kind, "string", kind)("second", moment)
    if moment.type().timezone is None:
        whole = engine_function("with_timezone", "timestamp('UTC')", kind, "string")(whole, "UTC")
    return engine_function("to_unixtime", "float64", "timestamp('UTC')")(whole).cast("int64")


DIALECT = Dialect(
    name="trino",
    title="Trino",
    was_run=False,
    text_bytes=text_bytes,
    bytes_text=bytes_text,
    digest=digest,
    trim=lambda text, name: text.re_replace(_SPACES[name], ""),
    clean_text=clean_text,
    text_end=r"\z",
    count_days=count_days,
    count_seconds=count_seconds,
)
