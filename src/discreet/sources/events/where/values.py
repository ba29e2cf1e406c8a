"""Checked parts of a condition: what they are, what they may be, and how several of them become one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import ibis
import ibis.expr.datatypes as dt
from sqlglot import exp

from discreet.errors import InvalidTypeError
from discreet.sources.events.cells import is_missing
from discreet.sources.events.where.wording import Node, sql

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


def union(values: list[Value], node: Node, combine: Callable[[list[Any]], Any]) -> Value:
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
    return ibis.literal(value.kind == "NULL") if value.expr is None else boxed(value).isnull()


def boxed(value: Value) -> Any:
    """The value as the operand of = or IS; ibis leaves out the parentheses that BETWEEN, IN and NOT need there."""
    if value.kind != "boolean" or isinstance(value.node, exp.Column | exp.Boolean):
        return value.expr
    return ibis.coalesce(value.expr, UNKNOWN)


def balanced(combine: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    """All parts combined in a tree of little depth, since engines and ibis recurse into it."""
    while len(parts) > 1:
        rest = parts[-1:] if len(parts) % 2 else []
        parts = [combine(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)] + rest
    return parts[0]


def mismatch(values: list[Value]) -> NoReturn:
    """Refuses values that have no type in common."""
    first: dict[str, Value] = {}
    for each in values:
        first.setdefault(each.kind, each)
    named = " with ".join(f"{each.text} ({each.kind})" for each in first.values())
    if len(first) == 1:
        raise InvalidTypeError(f"where must not compare {named}: engines do not agree on this type")
    raise InvalidTypeError(f"where must not compare or mix {named}: converting one of them can fail on a row")
