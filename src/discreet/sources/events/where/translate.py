"""From text and a table to one ibis expression, true for the rows to keep: parsed, checked and translated."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
from sqlglot import exp

from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.sources.events.cells import has_reading, read_cell
from discreet.sources.events.dialects.base import Dialect, dialect_of
from discreet.sources.events.dialects.duckdb import DIALECT as DUCKDB
from discreet.sources.events.where.grammar import (
    COMPARABLE,
    COMPARISONS,
    MOMENTS,
    NUMERIC,
    UNKNOWN,
    Node,
    Value,
    article,
    check_depth,
    check_grammar,
    check_listed,
    check_repeats,
    column_value,
    combine_balanced,
    combine_values,
    is_null,
    parenthesize,
    parse_expression,
    refuse,
    refuse_mismatch,
    silence_sqlglot,
    sql,
)
from discreet.sources.events.where.numbers import (
    calculate,
    grid_of,
    is_moment,
    moment_literal,
    number_literal,
    typed_literal,
    unify_moments,
    unify_numbers,
)

# Values side by side: in one type that engines agree on, and compared in it.
#
# A literal takes the type of the column beside it, and so does text of a file that has no types.

_SIGNS = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_READINGS = {
    "integer": "whole numbers (25)",
    "float": "numbers (2.5)",
    "boolean": "true or false",
    "date": "dates (2026-01-31)",
    "timestamp": "dates and times (2026-01-31 or 2026-01-31 12:00:00)",
    "timestamp with time zone": "times with a zone (2026-01-31 12:00:00+01:00)",
}
"""What a column without a declared type can be read as, in words."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparator:
    """How values meet on one engine.

    Attributes
    ----------
    dialect
        That of the engine.
    readings
        What columns without a declared type have been read as.
    """

    dialect: Dialect
    readings: dict[str, str] = field(default_factory=dict)

    def compare(self, sign: str, left: Value, right: Value) -> Any:
        """The comparison, NULL where a side is."""
        if sign not in ("=", "<>"):
            _refuse_order(left, right)
        if sign == "<>":
            return ~self.compare("=", left, right)
        if "NULL" in (left.kind, right.kind):
            return UNKNOWN
        if left.literal is not None and right.literal is None:
            return self.compare(_MIRRORED[sign], right, left)
        left, right = self.align_kinds([left, right])
        if left.kind == right.kind == "number":
            return ibis.literal(bool(_SIGNS[sign](left.literal, right.literal)))
        grid = grid_of(self.dialect, left)
        if grid is not None and right.kind == "number":
            return grid.compare(sign, right.literal)
        left, right = self.unify_types([left, right])
        if sign == "=":
            return equality_operand(self.dialect, left) == equality_operand(self.dialect, right)
        return _SIGNS[sign](order_operand(self.dialect, left), order_operand(self.dialect, right))

    def among(self, value: Value, literals: list[Value]) -> Any:
        """Whether the value is one of the literals."""
        value, *literals = self.align_kinds([value, *literals])
        if value.kind == "number":
            return combine_balanced(operator.or_, [self.compare("=", value, each) for each in literals])
        grid = grid_of(self.dialect, value)
        if grid is not None and all(each.kind == "number" for each in literals):
            return grid.among([each.literal for each in literals])
        value, *literals = self.unify_types([value, *literals])
        return equality_operand(self.dialect, value).isin([equality_operand(self.dialect, each) for each in literals])

    def within(self, value: Value, low: Value, high: Value) -> Any:
        """Whether the value is from low to high."""
        for bound in (low, high):
            _refuse_order(value, bound)
        value, low, high = self.align_kinds([value, low, high])
        grid = grid_of(self.dialect, value)
        kinds = [value.kind, low.kind, high.kind]
        if "NULL" in kinds or value.kind == "number" or (grid is not None and kinds.count("number") == 1):
            return self.compare(">=", value, low) & self.compare("<=", value, high)
        if grid is not None and low.kind == high.kind == "number":
            return grid.within(math.ceil(low.literal / grid.unit), math.floor(high.literal / grid.unit))
        inner, *bounds = [order_operand(self.dialect, each) for each in self.unify_types([value, low, high])]
        return inner.between(*bounds)

    def same(self, left: Value, right: Value) -> Any:
        """Whether the two are equal or both NULL; never NULL itself."""
        if "NULL" in (left.kind, right.kind):
            return is_null(left if right.kind == "NULL" else right)
        if left.literal is not None or right.literal is not None:
            return ibis.coalesce(self.compare("=", left, right), False)
        left, right = self.unify_types([left, right])
        return equality_operand(self.dialect, left).identical_to(equality_operand(self.dialect, right))

    def unify_types(self, values: list[Value]) -> list[Value]:
        """The values in one type, if engines can be trusted to agree on it."""
        values = self.align_kinds(values)
        given = [each for each in values if each.kind != "NULL"]
        kinds = {each.kind for each in given}
        if not kinds:
            return values
        if kinds <= NUMERIC:
            alike = unify_numbers(self.dialect, given)
        elif len(kinds) > 1 or kinds - COMPARABLE:
            refuse_mismatch(given)
        else:
            alike = unify_moments(given) if kinds <= MOMENTS else given
        found, nothing = iter(alike), ibis.null(alike[0].expr.type())
        return [replace(each, expr=nothing) if each.kind == "NULL" else next(found) for each in values]

    def align_kinds(self, values: list[Value]) -> list[Value]:
        """String literals as the dates they are beside, dates as timestamps, undeclared columns as what is beside."""
        kinds = {each.kind for each in values} - {"NULL", "string"}
        if kinds == {"date", "timestamp"}:
            kind = "timestamp"
        elif kinds and kinds <= NUMERIC:
            kind = "float"
        elif len(kinds) == 1:
            (kind,) = kinds
        else:
            return values
        # Cells of an undeclared column may hold times beside dates. The engine decides, not the type of the column,
        # which may follow from rows.
        noted = "timestamp" if kind == "date" and self._is_beside_literals(values) else kind
        kind = noted if has_reading(self.dialect, ibis.literal(""), noted) else kind
        values = [self.read_as(kind, each, values, noted) for each in values]
        return [
            moment_literal(self.dialect, kind, each.literal, each.node) if is_moment(kind, each) else each
            for each in values
        ]

    def _is_beside_literals(self, values: list[Value]) -> bool:
        """Whether columns without a declared type, which may hold times as well, stand beside literals alone."""
        cells = [each.cell for each in values if each.cell is not None]
        return bool(cells) and all(
            each.literal is not None for each in values if each.cell is None and each.kind != "NULL"
        )

    def read_as(self, kind: str, value: Value, beside: Sequence[Value] = (), noted: str | None = None) -> Value:
        """A column without a declared type as another kind, NULL where it is not one; anything else as it is."""
        if value.cell is None or value.kind != "string" or kind not in _READINGS:
            return value
        long = next((each for each in beside if each.kind == "number" and 2**53 < abs(each.literal) < 2**64), None)
        if long is not None:
            raise InvalidValueError(f"where must compare {value.text} with '{long.text}' in quotes: it is text here")
        self.readings[value.text] = noted or kind
        if kind == "integer":
            expr = read_cell(self.dialect, value.cell, "integer")
            return replace(value, kind="integer", expr=expr, low=-(2**63), high=2**63 - 1, cell=None)
        return replace(value, kind=kind, expr=read_cell(self.dialect, value.cell, kind), cell=None)

    def describe_readings(self) -> str | None:
        """What columns without a declared type have been read as, in a sentence; None where none has been."""
        if not self.readings:
            return None
        listed = " and ".join(f"{text} as {_READINGS[kind]}" for text, kind in self.readings.items())
        types = "its type is" if len(self.readings) == 1 else "their types are"
        return f"where reads {listed}, because {types} not declared: no other spelling meets it"


def _refuse_order(left: Value, right: Value) -> None:
    """Refuses to order two columns of which nobody has said what they hold: 9 is after 10 as text."""
    if left.cell is not None and right.cell is not None and left.kind == right.kind == "string":
        raise InvalidTypeError(
            f"where must not order {left.text} and {right.text}, whose types nobody has declared: "
            f"write {left.text} + 0 and {right.text} + 0 for whole numbers"
        )


def equality_operand(dialect: Dialect, value: Value) -> Any:
    """The expression whose equality is that of the values."""
    return dialect.group_key(value.expr) if value.kind == "string" else parenthesize(value)


def order_operand(dialect: Dialect, value: Value) -> Any:
    """The expression whose order is that of the values: for strings, that of their UTF-8 bytes."""
    if value.kind == "boolean":
        raise InvalidTypeError(f"where must compare booleans with = and <> alone, unlike {value.text}")
    return dialect.group_key(value.expr)


# What each node of the white list means in ibis, one method a node.
#
# How values of a kind are read, compared and calculated with is in `comparing.py`, `numbers.py` and `moments.py`.


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


def condition(
    where: str, table: ir.Table, *, undeclared: Collection[str] = (), is_text: bool = False
) -> ir.BooleanValue:
    """The condition `where` as an ibis expression on `table`, true for the rows to keep.

    Parameters
    ----------
    where
        One SQL expression in DuckDB's dialect, of columns, literals, comparisons, AND, OR, NOT, IN with a list,
        BETWEEN, LIKE, ILIKE, IS NULL, IS TRUE, IS DISTINCT FROM, + - *, lower, upper, trim, coalesce, CASE WHEN.
    table
        The table whose columns it may name.
    undeclared
        The columns whose type nobody has declared, as those of a CSV file. Such a column is text; beside a number, a
        date, a timestamp or TRUE it is read as one, and in arithmetic as an integer, NULL in rows where it is none.
    is_text
        Whether the names of columns are the header of a text file, and may be private.

    Raises
    ------
    InvalidTypeError
        Where `where` is not a string, or a part of it is of the wrong type for its place.
    InvalidValueError
        Where it does not parse, or uses what is not on the white list.

    Notes
    -----
    Every engine gives it one meaning. Strings are compared by their UTF-8 bytes, whatever the collation of a column;
    lower, upper and ILIKE change the letters A to Z alone, and trim removes spaces (U+0020) alone. Dates on SQLite are
    ISO text. Numbers are compared by their exact value, except beside a column of floats, where both sides are doubles,
    and NaN is the largest and equal to itself. Arithmetic is for integers and decimal literals; a result of 2^63 or
    more, in units of its last decimal place, is NULL.

    Examples
    --------
    >>> import ibis
    >>> ratings = ibis.table({"stars": "int64", "title": "string"}, name="ratings")
    >>> kept = ratings.filter(condition("stars >= 4.5 AND title LIKE 'A%'", ratings))
    """
    with silence_sqlglot():
        truth = _translate(where, Reader(table, frozenset(undeclared), is_text))
        # Last, so that what says more is said first.
        check_grammar(where, table.columns)
    return truth


def describe_readings(
    where: str, table: ir.Table, *, undeclared: Collection[str] = (), is_text: bool = False
) -> str | None:
    """What a condition reads columns without a declared type as, in a sentence; None where it reads none.

    It depends on the condition and on what is declared, and on no row.

    Examples
    --------
    >>> import ibis
    >>> visits = ibis.table({"day": "string"}, name="visits")
    >>> print(describe_readings("day > 9", visits, undeclared=["day"]))
    where reads day as numbers (2.5), because its type is not declared: no other spelling meets it
    """
    reader = Reader(table, frozenset(undeclared), is_text)
    with silence_sqlglot():
        _translate(where, reader)
    return reader.comparator.describe_readings()


def _translate(where: str, reader: Reader) -> ir.BooleanValue:
    expression = parse_expression(where)
    check_depth(expression)
    try:
        truth: ir.BooleanValue = reader.truth(expression)
    except (InvalidTypeError, InvalidValueError):
        raise
    except Exception as error:  # the words of ibis are about its own types
        raise InvalidValueError(f"where must fit the table, and ibis cannot read it ({type(error).__name__})") from None
    # Last, so that what says more is said first.
    check_repeats(expression)
    return truth
