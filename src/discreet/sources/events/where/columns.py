"""A column of the table as a value: which one a name means, of which kind it is, and what it can hold."""

from __future__ import annotations

from collections.abc import Sequence

import ibis.expr.datatypes as dt
import ibis.expr.types as ir

from discreet.errors import InvalidValueError, shown
from discreet.sources.column_hints import choices, suggestion
from discreet.sources.events.cells import read_cell
from discreet.sources.events.dialects import Dialect
from discreet.sources.events.where.moments import comparable_moment
from discreet.sources.events.where.values import Value
from discreet.sources.events.where.wording import Node


def column_value(node: Node, table: ir.Table, dialect: Dialect, undeclared: frozenset[str], is_text: bool) -> Value:
    """The column that the node names, as text that can be read as more where nobody has declared its type."""
    expr = table[_column_name(node.name, table.columns, is_text)]
    if expr.get_name() in undeclared:
        return Value("string", node, read_cell(dialect, expr, "string"), cell=expr)
    dtype = expr.type()
    kind = _kind(dtype, dialect)
    if kind != "integer":
        return Value(kind, node, comparable_moment(expr, kind) if dialect.dates_are_text else expr)
    # Where columns have no types, one that is declared as of small integers keeps any.
    bounds = dtype.bounds if dialect.has_typed_columns else dt.int64.bounds
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


def _kind(dtype: dt.DataType, dialect: Dialect) -> str:
    if dtype.is_timestamp() and dtype.timezone is None:
        return "timestamp"
    if dtype.is_timestamp() and not dialect.dates_are_text:  # which may have any zone, or none
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
