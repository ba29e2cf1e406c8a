"""Checked parts of a condition: literals and columns, what they are and may be, and how messages quote them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
from sqlglot import exp

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.sources.column_hints import choices, suggestion
from discreet.sources.events.cells import engine_function, is_missing, read_cell
from discreet.sources.events.dialect import Dialect

Node = Any
"""A node of sqlglot, whose base class has had two names."""


def sql(node: Node) -> str:
    """The node as a message quotes it: short, on one line."""
    if isinstance(node, str):
        return node
    try:
        text = " ".join(node.sql("duckdb", comments=False).split())
    except Exception:  # a node that was only half understood
        text = str(node.key)
    return text if len(text) <= 60 else f"{text[:57]}..."


def article(kind: str) -> str:
    """A kind with its article."""
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


UNKNOWN = ibis.null(dt.boolean)
NUMERIC = {"integer", "decimal", "float", "number"}
MOMENTS = {"date", "timestamp", "timestamp with time zone"}
COMPARABLE = {"boolean", "string", *MOMENTS}


@dataclass(frozen=True, eq=False)
class Value:
    """A checked part of the condition: its kind, the node it comes from, its ibis expression.

    A literal has its Python value too, and a number has only that until it meets a column, whose type it takes. An
    integer stands for its expression over 10^scale, and its expression lies in [low, high]. What nobody has declared a
    type for is a string with the `cell` that it comes from, which can be read as another kind.
    """

    kind: str
    node: Node
    expr: Any = None
    literal: Any = None
    scale: int = 0
    low: int = 0
    high: int = 0
    cell: Any = None

    @property
    def text(self) -> str:
        """Its SQL, as a message quotes it."""
        return sql(self.node)


def combine_values(values: list[Value], node: Node, combine: Callable[[list[Any]], Any]) -> Value:
    """The value that is one of these, which are of one type."""
    given = [each for each in values if each.kind != "NULL"]
    if not given:
        return Value("NULL", node)
    low, high = min(each.low for each in given), max(each.high for each in given)
    expr = combine([each.expr for each in values])
    cell = expr if any(each.cell is not None for each in given) else None
    return replace(given[0], node=node, expr=expr, literal=None, low=low, high=high, cell=cell)


def is_null(value: Value) -> Any:
    """Whether the value is NULL, as an expression."""
    if value.cell is not None:
        return is_missing(value.cell)
    return ibis.literal(value.kind == "NULL") if value.expr is None else parenthesize(value).isnull()


def parenthesize(value: Value) -> Any:
    """The value as the operand of = or IS; ibis leaves out the parentheses that BETWEEN, IN and NOT need there."""
    if value.kind != "boolean" or isinstance(value.node, exp.Column | exp.Boolean):
        return value.expr
    return ibis.coalesce(value.expr, UNKNOWN)


def combine_balanced(combine: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    """All parts combined in a tree of little depth, since engines and ibis recurse into it."""
    while len(parts) > 1:
        rest = parts[-1:] if len(parts) % 2 else []
        parts = [combine(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)] + rest
    return parts[0]


def refuse_mismatch(values: list[Value]) -> NoReturn:
    """Refuses values that have no type in common."""
    first: dict[str, Value] = {}
    for each in values:
        first.setdefault(each.kind, each)
    named = " with ".join(f"{each.text} ({each.kind})" for each in first.values())
    if len(first) == 1:
        raise InvalidTypeError(f"where must not compare {named}: engines do not agree on this type")
    raise InvalidTypeError(
        f"where must not compare or mix {named}: converting one of them can fail on a row{_suggest_text(first)}"
    )


def _suggest_text(first: dict[str, Value]) -> str:
    """How to compare a column that was declared as text, where it stands beside a literal of another kind."""
    text, other = first.get("string"), next((each for kind, each in first.items() if kind != "string"), None)
    if text is None or text.literal is not None or other is None or other.literal is None:
        return ""
    spelled = sql(other.node).partition("'")[2].rstrip("'") or other.text
    declared = f"; {text.text} was declared as text, and can be compared with '{spelled}'"
    # As text 10 is less than 4.
    ordered = " by = and <>, and by < and > once it is stored as numbers"
    return f"{declared}{ordered if other.kind == 'number' else ''}"


def column_value(node: Node, table: ir.Table, dialect: Dialect, undeclared: frozenset[str], is_text: bool) -> Value:
    """The column that the node names, as text that can be read as more where nobody has declared its type."""
    expr = table[_column_name(node.name, table.columns, is_text)]
    if expr.get_name() in undeclared:
        return Value("string", node, read_cell(dialect, expr, "string"), cell=expr)
    dtype = expr.type()
    kind = _kind(dtype, dialect)
    if kind == "string":
        dialect.check_column(f"{sql(node)} in where", dtype)
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
            f"{quote(name)} is not in the header of the file{hint}"
        )
    raise InvalidValueError(
        f"where must name columns of the table ({choices(columns)}), and have strings in single quotes, "
        f"not {quote(name)}{hint}"
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


def comparable_moment(expr: Any, kind: str) -> Any:
    """A column of dates kept as text, which has more than one spelling, as it can be compared; others as they are."""
    if kind not in MOMENTS:
        return expr
    text = expr.cast("string")
    if kind == "date":
        return text.substr(0, 10)
    text, rtrim = text.replace("T", " "), engine_function("rtrim", "string", "string", "string")
    # A day is its midnight, and a minute its beginning: 2026-01-31, and 2026-01-31 12:00.
    ends = {length: text + end for length, end in ((10, " 00:00:00"), (16, ":00"))}
    spelled = [(text.length() == length, whole) for length, whole in ends.items()]
    return ibis.cases(*spelled, (text.contains("."), rtrim(rtrim(text, "0"), ".")), else_=text)
