"""A column of the table as a value: which one a name means, of which kind it is, and what it can hold."""

from __future__ import annotations

from collections.abc import Sequence

import ibis.expr.datatypes as dt
import ibis.expr.types as ir

from discreet.errors import InvalidValueError, shown
from discreet.sources.cells import read_cell
from discreet.sources.names import choices, suggestion
from discreet.sources.where.engines import stored
from discreet.sources.where.values import Value
from discreet.sources.where.wording import Node


def column_value(node: Node, table: ir.Table, engine: str, undeclared: frozenset[str], is_text: bool) -> Value:
    """The column that the node names, as text that can be read as more where nobody has declared its type."""
    expr = table[_column_name(node.name, table.columns, is_text)]
    if expr.get_name() in undeclared:
        return Value("string", node, read_cell(engine, expr, "string"), cell=expr)
    dtype = expr.type()
    kind = _kind(dtype, engine)
    if kind != "integer":
        return Value(kind, node, stored(engine, kind, expr))
    # SQLite keeps any integer in a column declared as a small one.
    bounds = dt.int64.bounds if engine == "sqlite" else dtype.bounds
    return Value(kind, node, expr, low=bounds.lower, high=bounds.upper)


def _column_name(name: str, columns: Sequence[str], is_text: bool) -> str:
    if name in columns:
        return name
    folded = {column.casefold(): column for column in columns}
    if [column.casefold() for column in columns].count(name.casefold()) == 1:
        return folded[name.casefold()]
    hint = suggestion(name, columns, private=is_text)
    if is_text:
        raise InvalidValueError(
            "where must name columns of the table, and have strings in single quotes, and "
            f"{shown(name)} is not in the header of the file{hint}"
        )
    raise InvalidValueError(
        f"where must name columns of the table ({choices(columns)}), and have strings in single quotes, "
        f"not {shown(name)}{hint}"
    )


def _kind(dtype: dt.DataType, engine: str) -> str:
    if dtype.is_timestamp() and dtype.timezone is None:
        return "timestamp"
    if dtype.is_timestamp() and engine != "sqlite":  # whose text may have any zone, or none
        return "timestamp with time zone"
    tests = {
        "boolean": dtype.is_boolean,
        "integer": dtype.is_integer,
        "decimal": dtype.is_decimal,
        "float": dtype.is_floating,
        "string": dtype.is_string,
        "date": dtype.is_date,
    }
    return next((kind for kind, holds in tests.items() if holds()), str(dtype))
