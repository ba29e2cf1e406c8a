"""Text by its bytes: two spellings that a collation finds equal are still two.

A column of a database may compare text without case (NOCASE, citext), and then a GROUP BY takes one user's spelling for
everybody's. So items and users are grouped and joined by the bytes of their text.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def builtin(name: str, result: str, *arguments: str) -> Callable[..., Any]:
    """A function that engines have and ibis does not."""
    import ibis

    def call(*_: Any) -> None: ...

    names = [inspect.Parameter(f"arg{i}", inspect.Parameter.POSITIONAL_OR_KEYWORD) for i in range(len(arguments))]
    call.__name__, call.__signature__ = name, inspect.Signature(names)  # type: ignore[attr-defined]  # ibis reads it
    made: Callable[..., Any] = ibis.udf.scalar.builtin(call, name=name, signature=(arguments, result))
    return made


def text_bytes(engine: str, text: Any) -> Any | None:
    """The UTF-8 bytes of a text, by the name that ibis has for the engine; None where it is not known how."""
    if engine == "duckdb":
        return builtin("encode", "binary", "string")(text)
    if engine == "postgres":
        return builtin("convert_to", "binary", "string", "string")(text, "UTF8")
    if engine in ("sqlite", "pyspark", "databricks"):
        return text.cast("binary")
    return None


def by_bytes(engine: str, value: Any) -> Any:
    """What to group and join by: the bytes of a text, and any other value as it is."""
    if not value.type().is_string():
        return value
    found = text_bytes(engine, value)
    return value if found is None else found
