"""What each engine is told so that a node means the same on all of them.

They disagree about the case and the order of strings, about LIKE and trim, and SQLite keeps dates as text.
"""

from __future__ import annotations

import re
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import ibis
import ibis.expr.types as ir

from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.sources.raw import builtin, text_bytes
from discreet.sources.where.values import MOMENTS, Value, boxed

_glob = builtin("glob", "boolean", "string", "string")
_trim = builtin("trim", "string", "string", "string")
_ltrim = builtin("ltrim", "string", "string", "string")
_rtrim = builtin("rtrim", "string", "string", "string")
_SIDES = {None: "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_TRIMS = {"trim": _trim, "ltrim": _ltrim, "rtrim": _rtrim}
_PLAIN_TRIMS = {name: builtin(name, "string", "string") for name in _TRIMS}


def engine_of(table: ir.Table) -> str:
    """The name ibis has for the engine of a table; a table without one is taken for DuckDB's."""
    try:
        return str(table.get_backend().name)
    except Exception:
        return "duckdb"


def stored(engine: str, kind: str, expr: Any) -> Any:
    """A column as it can be compared: SQLite keeps dates as text, in more than one spelling."""
    if engine != "sqlite" or kind not in MOMENTS:
        return expr
    text = expr.cast("string")
    if kind == "date":
        return text.substr(0, 10)
    text = text.replace("T", " ")
    return ibis.cases((text.contains("."), _rtrim(_rtrim(text, "0"), ".")), else_=text)


def equatable(engine: str, value: Value) -> Any:
    """The expression whose equality is that of the values: a column of SQLite may ignore the case of strings."""
    if value.kind == "string" and engine == "sqlite":
        return value.expr.cast("binary")
    return boxed(value)


def orderable(engine: str, value: Value) -> Any:
    """The expression whose order is that of the values: for strings, that of their UTF-8 bytes."""
    if value.kind == "boolean":
        raise InvalidTypeError(f"where must compare booleans with = and <> alone, unlike {value.text}")
    return _bytes(engine, value) if value.kind == "string" else value.expr


def _bytes(engine: str, value: Value) -> Any:
    """The UTF-8 bytes of a string, whose order no collation changes."""
    found = text_bytes(engine, value.expr)
    if found is not None:
        return found
    raise InvalidValueError(f"where must not order strings on {engine}, as it does with {value.text}")


def like(engine: str, text: Any, pattern: str) -> Any:
    """LIKE, case and all: on SQLite that is GLOB."""
    if engine != "sqlite":
        return text.like(pattern)
    quoted = re.sub(r"[*?[]", r"[\g<0>]", pattern)
    return _glob(quoted.replace("%", "*").replace("_", "?"), text)


def folded(engine: str, text: Any, case: str) -> Any:
    """The 26 letters in lower or upper case; what engines do to others depends on versions and locales."""
    if engine == "sqlite":
        return text.lower() if case == "lower" else text.upper()
    letters = (ascii_uppercase, ascii_lowercase)
    return text.translate(*(letters if case == "lower" else reversed(letters)))


def trimmed(engine: str, text: Any, side: str | None) -> Any:
    """Without the spaces at its ends. DuckDB removes more unless told, and Spark reads two arguments in reverse."""
    name = _SIDES[side]
    return _PLAIN_TRIMS[name](text) if engine in ("pyspark", "databricks") else _TRIMS[name](text, " ")
