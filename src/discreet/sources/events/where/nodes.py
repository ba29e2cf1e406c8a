"""What each node of the white list means in ibis, one method a node.

How values of a kind are read, compared and calculated with is in `comparing.py`, `numbers.py` and `moments.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
from sqlglot import exp

from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.sources.events.dialect import Dialect, dialect_of
from discreet.sources.events.dialects.duckdb import DIALECT as DUCKDB
from discreet.sources.events.where.comparing import Comparator
from discreet.sources.events.where.moments import typed_literal
from discreet.sources.events.where.numbers import calculate, number_literal
from discreet.sources.events.where.values import (
    UNKNOWN,
    Node,
    Value,
    article,
    column_value,
    combine_balanced,
    combine_values,
    is_null,
    sql,
)
from discreet.sources.events.where.whitelist import COMPARISONS, check_listed, refuse


class Reader:
    """Turns checked SQL into ibis, for one table."""

    def __init__(self, table: ir.Table, undeclared: frozenset[str], is_text: bool) -> None:
        self.table, self.dialect = table, _find_dialect(table)
        self.undeclared, self.is_text = undeclared, is_text
        self.comparator = Comparator(self.dialect)

    def truth(self, node: Node) -> Any:
        """The node as a boolean expression."""
        value = self.value(node)
        if value.kind == "NULL":
            return UNKNOWN
        value = self.comparator.read_as("boolean", value)
        if value.kind != "boolean":
            raise InvalidTypeError(
                f"where must be true or false in the place of {value.text}, which is {article(value.kind)}"
            )
        return value.expr

    def value(self, node: Node) -> Value:
        """The node as what it is, if it is on the white list."""
        check_listed(node)
        return READERS[type(node)](self, node)

    def paren(self, node: Node) -> Value:
        return replace(self.value(node.this), node=node)

    def column(self, node: Node) -> Value:
        if not isinstance(node.this, exp.Identifier):
            refuse(node.this)
        return column_value(node, self.table, self.dialect, self.undeclared, self.is_text)

    def literal(self, node: Node) -> Value:
        if node.is_string:
            return Value("string", node, ibis.literal(node.this, dt.string), node.this)
        return number_literal(node)

    def boolean(self, node: Node) -> Value:
        return Value("boolean", node, ibis.literal(bool(node.this)), bool(node.this))

    def null(self, node: Node) -> Value:
        return Value("NULL", node)

    def cast(self, node: Node) -> Value:
        return typed_literal(self.dialect, node)

    def connective(self, node: Node) -> Value:
        combine = operator.and_ if isinstance(node, exp.And) else operator.or_
        return Value("boolean", node, combine_balanced(combine, [self.truth(part) for part in node.flatten()]))

    def negation(self, node: Node) -> Value:
        return Value("boolean", node, ~self.truth(node.this))

    def comparison(self, node: Node) -> Value:
        left, right = self.value(node.this), self.value(node.expression)
        return Value("boolean", node, self.comparator.compare(COMPARISONS[type(node)], left, right))

    def distinct(self, node: Node) -> Value:
        same = self.comparator.same(self.value(node.this), self.value(node.expression))
        return Value("boolean", node, same if isinstance(node, exp.NullSafeEQ) else ~same)

    def test(self, node: Node) -> Value:
        """IS NULL, IS TRUE, IS FALSE."""
        wanted = node.expression
        if isinstance(wanted, exp.Null):
            return Value("boolean", node, is_null(self.value(node.this)))
        if not isinstance(wanted, exp.Boolean):
            refuse(node)
        truth = self.truth(node.this)
        return Value("boolean", node, ibis.coalesce(truth if wanted.this else ~truth, False))

    def between(self, node: Node) -> Value:
        value, low, high = (self.value(node.args[name]) for name in ("this", "low", "high"))
        return Value("boolean", node, self.comparator.within(value, low, high))

    def membership(self, node: Node) -> Value:
        value, listed = self.value(node.this), [self.value(each) for each in node.expressions]
        strange = next((each for each in listed if each.literal is None and each.kind != "NULL"), None)
        if strange is not None or not listed:
            raise InvalidValueError(f"where must list literals after IN, not {strange.text if strange else 'nothing'}")
        literals = [each for each in listed if each.kind != "NULL"]
        if value.kind == "NULL" or not literals:
            return Value("boolean", node, UNKNOWN)
        found = self.comparator.among(value, literals)
        return Value("boolean", node, found if len(literals) == len(listed) else found | UNKNOWN)

    def like(self, node: Node) -> Value:
        name = node.key.upper()
        if not (isinstance(node.expression, exp.Literal) and node.expression.is_string):
            raise InvalidValueError(f"where must have a string literal after {name} in {sql(node)}")
        value, pattern = self.value(node.this), node.expression.this
        if "\\" in pattern:
            raise InvalidValueError(f"where must not use a backslash in {sql(node)}: engines read it differently")
        if value.kind == "NULL":
            return Value("boolean", node, UNKNOWN)
        _check_string(value, name)
        inner = value.expr
        if isinstance(node, exp.ILike):
            inner = self.dialect.fold_case(inner, "lower")
            pattern = pattern.translate(str.maketrans(ascii_uppercase, ascii_lowercase))
        found = self.dialect.like(self.dialect.drop_collation(inner), pattern)
        return Value("boolean", node, ~found if node.args.get("negate") else found)

    def string_function(self, node: Node) -> Value:
        value = self.value(node.this)
        if value.kind == "NULL":
            return replace(value, node=node)
        _check_string(value, node.key)
        if isinstance(node, exp.Trim):
            changed = self._trim(value, node)
        else:
            changed = self.dialect.fold_case(value.expr, node.key)
        return Value("string", node, changed, cell=None if value.cell is None else changed)

    def _trim(self, value: Value, node: Node) -> Any:
        if self.dialect.trim is None:
            raise InvalidValueError(f"where must not trim strings on {self.dialect.name}, as it does with {value.text}")
        return self.dialect.trim(value.expr, _TRIMS[node.args.get("position")])

    def coalesce(self, node: Node) -> Value:
        values = self.comparator.unify_types([self.value(each) for each in (node.this, *node.expressions)])
        return combine_values(values, node, lambda expressions: ibis.coalesce(*expressions))

    def case(self, node: Node) -> Value:
        branches, default = node.args["ifs"], node.args.get("default")
        truths = [self.truth(branch.this) for branch in branches]
        results = [self.value(branch.args["true"]) for branch in branches]
        otherwise = Value("NULL", "NULL") if default is None else self.value(default)

        def choose(expressions: list[Any]) -> Any:
            return ibis.cases(*zip(truths, expressions[:-1], strict=True), else_=expressions[-1])

        return combine_values(self.comparator.unify_types([*results, otherwise]), node, choose)

    def arithmetic(self, node: Node) -> Value:
        left, right = (self.comparator.read_as("integer", self.value(each)) for each in (node.this, node.expression))
        return calculate(self.dialect, _CALCULATIONS[type(node)], left, right, node)

    def minus(self, node: Node) -> Value:
        zero = Value("number", "0", literal=Fraction(0))
        return calculate(
            self.dialect, operator.sub, zero, self.comparator.read_as("integer", self.value(node.this)), node
        )


def _check_string(value: Value, name: str) -> None:
    """Raises where an operator or a function of strings is given something else."""
    if value.kind != "string":
        raise InvalidTypeError(f"where must use {name} on strings, not on {value.text}, {article(value.kind)}")


def _find_dialect(table: ir.Table) -> Dialect:
    """The dialect of a table's engine; a table without one is taken for DuckDB's."""
    try:
        return dialect_of(table)
    except ibis.common.exceptions.IbisError:
        return DUCKDB


_TRIMS = {None: "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_CALCULATIONS: dict[type, Callable[[Any, Any], Any]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
}
READERS: dict[type, Callable[[Reader, Any], Value]] = {
    exp.Paren: Reader.paren,
    exp.Column: Reader.column,
    exp.Literal: Reader.literal,
    exp.Boolean: Reader.boolean,
    exp.Null: Reader.null,
    exp.Cast: Reader.cast,
    exp.And: Reader.connective,
    exp.Or: Reader.connective,
    exp.Not: Reader.negation,
    **dict.fromkeys(COMPARISONS, Reader.comparison),
    exp.NullSafeEQ: Reader.distinct,
    exp.NullSafeNEQ: Reader.distinct,
    exp.Is: Reader.test,
    exp.Between: Reader.between,
    exp.In: Reader.membership,
    exp.Like: Reader.like,
    exp.ILike: Reader.like,
    exp.Lower: Reader.string_function,
    exp.Upper: Reader.string_function,
    exp.Trim: Reader.string_function,
    exp.Coalesce: Reader.coalesce,
    exp.Case: Reader.case,
    **dict.fromkeys(_CALCULATIONS, Reader.arithmetic),
    exp.Neg: Reader.minus,
}
"""What reads each node of the white list."""
