"""The white list of nodes, and why the others are not on it.

What is listed gives every row a value, always the same one, from that row alone, whatever the row holds.
"""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from discreet.errors import InvalidValueError
from discreet.sources.events.where.values import Node, sql

COMPARISONS = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_PREDICATES = (*COMPARISONS, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.Between, exp.In, exp.Like, exp.ILike)
_TWO_SIDES = ("this", "expression")
PARTS: dict[type, tuple[str, ...]] = {
    exp.Paren: ("this",),
    exp.Column: ("this",),
    exp.Literal: ("this", "is_string"),
    exp.Boolean: ("this",),
    exp.Null: (),
    exp.Cast: ("this", "to"),
    exp.And: _TWO_SIDES,
    exp.Or: _TWO_SIDES,
    exp.Not: ("this",),
    exp.EQ: _TWO_SIDES,
    exp.NEQ: _TWO_SIDES,
    exp.LT: _TWO_SIDES,
    exp.LTE: _TWO_SIDES,
    exp.GT: _TWO_SIDES,
    exp.GTE: _TWO_SIDES,
    exp.NullSafeEQ: _TWO_SIDES,
    exp.NullSafeNEQ: _TWO_SIDES,
    exp.Is: _TWO_SIDES,
    exp.Between: ("this", "low", "high"),
    exp.In: ("this", "expressions"),
    exp.Like: (*_TWO_SIDES, "negate"),
    exp.ILike: (*_TWO_SIDES, "negate"),
    exp.Lower: ("this",),
    exp.Upper: ("this",),
    exp.Trim: ("this", "position"),
    exp.Coalesce: ("this", "expressions"),
    exp.Case: ("ifs", "default"),
    exp.Add: _TWO_SIDES,
    exp.Sub: _TWO_SIDES,
    exp.Mul: _TWO_SIDES,
    exp.Neg: ("this",),
}
"""The white list: nodes, and the parts of each that are understood."""

_OTHERS = "it makes one user's rows depend on another's, and the sensitivity is lost"
_FAILS = "it can fail on a row or differ from engine to engine, and a failure tells about the row"
_REFUSED: list[tuple[tuple[type, ...], str, str]] = [
    ((exp.Window,), "a window", _OTHERS),
    ((exp.AggFunc, exp.Filter, exp.WithinGroup), "an aggregate", _OTHERS),
    ((exp.Query, exp.SubqueryPredicate), "a subquery", "it looks at other rows, and the sensitivity is lost"),
    ((exp.Cast,), "a cast", _FAILS),
    ((exp.Case,), "CASE with a value before WHEN", "write CASE WHEN value = ... THEN ... END"),
    ((exp.Escape,), "ESCAPE", "% and _ always stand for other characters here"),
    ((exp.Collate,), "COLLATE", "strings are compared by their bytes on every engine"),
    ((exp.SimilarTo, exp.Glob), "a regular expression", "engines read it differently"),
    ((exp.Placeholder, exp.Parameter), "a parameter", "write the value itself"),
    ((exp.Star,), "a star", "name a column"),
    ((exp.Column,), "a column with a table or a struct before it", "name a column of the table alone"),
    ((exp.Bracket, exp.Dot, exp.Struct, exp.Array), "a nested value or a part of one", _FAILS),
    ((exp.Lambda,), "a lambda", _FAILS),
]
_OPERATORS: dict[type, str] = {exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%", exp.Pow: "^", exp.DPipe: "||"}
_CHANGING = {"now", "today", "localtime", "localtimestamp", "transaction_timestamp", "rand", "random", "setseed"}
_CHANGING |= {"uuid", "gen_random_uuid", "uuidv4", "uuidv7", "nextval", "currval", "session_user", "getvariable"}
_READING = {"glob", "getenv", "parquet_scan", "sniff_csv", "sqlite_scan", "postgres_scan", "query", "query_table"}


def check_listed(node: Node) -> None:
    """Raises unless the node is on the white list with nothing else attached."""
    if type(node) not in PARTS:
        refuse(node)
    for name, attached in node.args.items():
        if attached and name not in PARTS[type(node)]:
            refuse(attached if isinstance(attached, exp.Query) else node)
        if isinstance(node, _PREDICATES) and isinstance(attached, (*_PREDICATES, exp.Not)):
            # DuckDB and the parser do not always agree which of the two comes first.
            raise InvalidValueError(f"where must have parentheses around {sql(attached)} in {sql(node)}")


def refuse(node: Node) -> NoReturn:
    """Raises with what the node is called and why it is refused."""
    what, why = _describe(node)
    raise InvalidValueError(f"where must not use {what} ({sql(node)}): {why}")


def _describe(node: Node) -> tuple[str, str]:
    """What a refused node is called, and why it is refused."""
    for kinds, what, why in _REFUSED:
        if isinstance(node, kinds):
            return what, why
    if type(node).__name__.startswith("Regexp"):
        return "a regular expression", "engines read it differently"
    if type(node) in _OPERATORS:
        return f"the operator {_OPERATORS[type(node)]}", _FAILS
    if type(node) in PARTS or not isinstance(node, exp.Func):
        return f"this form of {node.key}", "it is not known to mean the same on every engine"
    name = sql(node).partition("(")[0].lower()
    return f"the function {name}", _explain_function(name)


def _explain_function(name: str) -> str:
    if name in _CHANGING or name.startswith(("current_", "get_current_")):
        return "whether a row is kept must not depend on the clock, the session or chance"
    if name in _READING or name.startswith("read_"):
        return "it reads something other than the row"
    return "only lower, upper, trim, ltrim, rtrim and coalesce are known to mean the same on every engine"
