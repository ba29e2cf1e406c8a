"""A condition on single rows: one SQL expression in DuckDB's dialect, as an ibis expression that every engine runs.

Each node is held against a white list; what is on it gives every row a value, always the same one, from that row alone,
so a condition can neither fail on a private row nor look at another. Where engines disagree about what a node means,
one meaning is fixed here and spelled in what they agree on.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import MAX_PREC, Context, Decimal
from fractions import Fraction
from functools import partial
from string import ascii_lowercase, ascii_uppercase
from typing import Any, NoReturn

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import ibis.expr.types as ir
import numpy as np
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from discreet.errors import InvalidTypeError, InvalidValueError, shown
from discreet.sources.grammar import check_grammar, quiet
from discreet.sources.names import choices, suggestion
from discreet.sources.raw import builtin, text_bytes

LONGEST = 10_000
"""The most characters a condition may have."""

DEEPEST = 30
"""The most levels of nesting; an operator of arithmetic counts as five, because its SQL has more."""

MOST = 2**63 - 1
"""The largest result of arithmetic; what is beyond is NULL, on every engine."""

MOST_CASES = 100
"""The most CASE WHENs that the SQL may have in the end, with those that check arithmetic."""

Node = Any
"""A node of sqlglot, whose base class has had two names."""


def condition(where: str, table: ir.Table, *, untyped: bool = False) -> ir.BooleanValue:
    """The condition `where` as an ibis expression on `table`, true for the rows to keep.

    Parameters
    ----------
    where
        One SQL expression in DuckDB's dialect, of columns, literals, comparisons, AND, OR, NOT, IN with a list,
        BETWEEN, LIKE, ILIKE, IS NULL, IS TRUE, IS DISTINCT FROM, + - *, lower, upper, trim, coalesce, CASE WHEN.
    table
        The table whose columns it may name.
    untyped
        Whether all columns are text that was never typed, as in a CSV file. Beside a number, a date, a timestamp or
        TRUE such a column is then read as one, and is NULL where it cannot be. DuckDB only.

    Raises
    ------
    InvalidTypeError
        Where `where` is not a string, or a part of it is of the wrong type for its place.
    InvalidValueError
        Where it does not parse, or uses what is not on the white list.

    Notes
    -----
    Every engine gives it one meaning. Strings are compared by their UTF-8 bytes (but a column that DuckDB or PostgreSQL
    was told to compare without case stays so for = and LIKE); lower, upper and ILIKE change the letters A to Z alone,
    and trim removes spaces (U+0020) alone. Dates on SQLite are ISO text. Numbers are compared by their exact value,
    except beside a column of floats, where both sides are doubles, and NaN is the largest and equal to itself.
    Arithmetic is for integers and decimal literals; a result of 2^63 or more, in units of its last decimal place, is
    NULL.

    Examples
    --------
    >>> import ibis
    >>> ratings = ibis.table({"stars": "int64", "title": "string"}, name="ratings")
    >>> kept = ratings.filter(condition("stars >= 4.5 AND title LIKE 'A%'", ratings))
    """
    with quiet():
        truth = _condition(where, table, untyped)
        # Last, so that what says more is said first.
        check_grammar(where, table.columns)
    return truth


def _condition(where: str, table: ir.Table, untyped: bool) -> ir.BooleanValue:
    expression = _parsed(where)
    _check_depth(expression)
    try:
        truth: ir.BooleanValue = _Reader(table, untyped).truth(expression)
        _check_repeats(truth)
    except (InvalidTypeError, InvalidValueError):
        raise
    except Exception as error:  # the words of ibis are about its own types
        raise InvalidValueError(f"where must fit the table, and ibis cannot read it ({type(error).__name__})") from None
    return truth


def _parsed(where: str) -> Node:
    if not isinstance(where, str):
        raise InvalidTypeError(f"where must be a string with one SQL condition, not {shown(where)}")
    if len(where) > LONGEST:
        raise InvalidValueError(f"where must have at most {LONGEST} characters, not {len(where)}")
    # Engines escape these differently in a string, and NUL or half of a surrogate pair cannot be sent at all.
    odd = re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]", where)
    if odd is not None:
        raise InvalidValueError(f"where must not hold the control character U+{ord(odd.group()):04X}")
    duckdb = Dialect.get_or_raise("duckdb")
    try:
        tokens = duckdb.tokenize(where)
        found = duckdb.parser().parse_into(exp.Condition, tokens, where)
    except RecursionError:
        raise InvalidValueError(_TOO_DEEP) from None
    except Exception as error:
        raise InvalidValueError(_why_not_parsed(where, error)) from None
    if any(token.text == ";" and token.token_type.name == "SEMICOLON" for token in tokens):
        raise InvalidValueError(_TWO)
    if not found or found[0] is None:
        raise InvalidValueError("where must not be empty: leave it out to keep every row")
    return found[0]


_TOO_DEEP = f"where must not be nested more than {DEEPEST} levels deep, arithmetic not more than {DEEPEST // 5 - 1}"
_TWO = "where must be one expression, with no second statement and no ;"
_STATEMENTS = {"SELECT", "WITH", "FROM", "VALUES", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "COPY"}
_STATEMENTS |= {"ATTACH", "PRAGMA", "SET", "CALL", "INSTALL", "LOAD", "DESCRIBE", "SHOW", "SUMMARIZE", "EXPLAIN"}


def _why_not_parsed(where: str, error: Exception) -> str:
    first = (where.split(maxsplit=1) or [""])[0].upper()
    if first == "WHERE":
        return "where must be the condition alone, without the word WHERE before it"
    if first in _STATEMENTS:
        return f"where must be one expression, not a statement ({first} ...)"
    if ";" in where:
        return _TWO
    reason = (getattr(error, "errors", None) or [{}])[0]
    described = " ".join(str(reason.get("description", "")).split())
    if not described or described.startswith("Required keyword"):
        described = "a part is missing or not closed"
    place = f" at line {reason['line']}, column {reason['col']}" if reason.get("line") else ""
    return f"where must be one SQL expression, and does not parse{place}: {described[:100]}"


def _check_depth(expression: Node) -> None:
    """Refuses what is nested too deep for the recursions after this one; chains of AND and OR are flat."""
    waiting = [(expression, 1)]
    while waiting:
        node, depth = waiting.pop()
        if depth > DEEPEST:
            raise InvalidValueError(_TOO_DEEP)
        for child in node.iter_expressions():
            flat = isinstance(node, exp.And | exp.Or) and type(child) is type(node)
            steep = isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Neg)
            waiting.append((child, depth + (0 if flat else 5 if steep else 1)))


def _check_repeats(truth: ir.BooleanValue) -> None:
    """Refuses arithmetic whose checks, which repeat what is nested in them, would keep an engine busy for minutes."""

    def cases(op: Any, known: dict[Any, int], **_: Any) -> int:
        return isinstance(op, ops.SearchedCase) + sum(known[child] for child in op.__children__)

    op = truth.op()
    if op.map(cases)[op] > MOST_CASES:
        raise InvalidValueError("where must calculate less: checked for overflow, its arithmetic needs too many CASEs")


@dataclass(frozen=True, eq=False)
class _Value:
    """A checked part of the condition: its kind, the node it comes from, its ibis expression.

    A literal has its Python value too, and a number has only that until it meets a column, whose type it takes. An
    integer stands for its expression over 10^scale, and its expression lies in [low, high].
    """

    kind: str
    node: Node
    expr: Any = None
    literal: Any = None
    scale: int = 0
    low: int = 0
    high: int = 0

    @property
    def text(self) -> str:
        """Its SQL, as a message quotes it."""
        return _sql(self.node)


class _Reader:
    """Turns checked SQL into ibis, for one table."""

    def __init__(self, table: ir.Table, untyped: bool) -> None:
        self.table, self.untyped, self.engine = table, untyped, _engine(table)

    def truth(self, node: Node) -> Any:
        """The node as a boolean expression."""
        value = self.value(node)
        if value.kind == "NULL":
            return _UNKNOWN
        value = self.read_as("boolean", value)
        if value.kind != "boolean":
            raise InvalidTypeError(
                f"where must be true or false in the place of {value.text}, which is {_a(value.kind)}"
            )
        return value.expr

    def value(self, node: Node) -> _Value:
        """The node as what it is, if it is on the white list with nothing else attached."""
        if type(node) not in _NODES:
            _refuse(node)
        read, known = _NODES[type(node)]
        for name, attached in node.args.items():
            if attached and name not in known:
                _refuse(attached if isinstance(attached, exp.Query) else node)
            if isinstance(node, _PREDICATES) and isinstance(attached, (*_PREDICATES, exp.Not)):
                # DuckDB and the parser do not always agree which of the two comes first.
                raise InvalidValueError(f"where must have parentheses around {_sql(attached)} in {_sql(node)}")
        return read(self, node)

    def paren(self, node: Node) -> _Value:
        return replace(self.value(node.this), node=node)

    def column(self, node: Node) -> _Value:
        if not isinstance(node.this, exp.Identifier):
            _refuse(node.this)
        expr = self.table[_column_name(node.name, self.table.columns, self.untyped)]
        dtype = expr.type()
        kind = _kind(dtype, self.engine)
        if kind != "integer":
            return _Value(kind, node, _stored(self.engine, kind, expr))
        # SQLite keeps any integer in a column declared as a small one.
        bounds = dt.int64.bounds if self.engine == "sqlite" else dtype.bounds
        return _Value(kind, node, expr, low=bounds.lower, high=bounds.upper)

    def literal(self, node: Node) -> _Value:
        if node.is_string:
            return _Value("string", node, ibis.literal(node.this, dt.string), node.this)
        if not re.fullmatch(r"(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?", node.this, re.ASCII | re.IGNORECASE):
            _refuse(node)
        number = Decimal(node.this).normalize(Context(MAX_PREC))
        if len(number.as_tuple().digits) > 38:
            raise InvalidValueError(f"where must hold numbers of at most 38 digits, not {_sql(node)}")
        return _Value("number", node, literal=Fraction(number))

    def boolean(self, node: Node) -> _Value:
        return _Value("boolean", node, ibis.literal(bool(node.this)), bool(node.this))

    def null(self, node: Node) -> _Value:
        return _Value("NULL", node)

    def cast(self, node: Node) -> _Value:
        """A date or timestamp literal, which the parser spells as the cast of a string."""
        kind = _LITERAL_CASTS.get(node.to.this.name)
        if kind is None or node.to.expressions or not (isinstance(node.this, exp.Literal) and node.this.is_string):
            _refuse(node)
        return self.moment(kind, node.this.this, f"{node.to.this.name.removesuffix('NTZ')} {_sql(node.this)}")

    def connective(self, node: Node) -> _Value:
        combine = operator.and_ if isinstance(node, exp.And) else operator.or_
        return _Value("boolean", node, _balanced(combine, [self.truth(part) for part in node.flatten()]))

    def negation(self, node: Node) -> _Value:
        return _Value("boolean", node, ~self.truth(node.this))

    def comparison(self, node: Node) -> _Value:
        left, right = self.value(node.this), self.value(node.expression)
        return _Value("boolean", node, self.compare(_COMPARISONS[type(node)], left, right))

    def distinct(self, node: Node) -> _Value:
        left, right = self.value(node.this), self.value(node.expression)
        if "NULL" in (left.kind, right.kind):
            same = _is_null(left if right.kind == "NULL" else right)
        elif left.literal is not None or right.literal is not None:
            same = ibis.coalesce(self.compare("=", left, right), False)
        else:
            left, right = self.common([left, right])
            same = self.exact(left).identical_to(self.exact(right))
        return _Value("boolean", node, same if isinstance(node, exp.NullSafeEQ) else ~same)

    def test(self, node: Node) -> _Value:
        """IS NULL, IS TRUE, IS FALSE."""
        wanted = node.expression
        if isinstance(wanted, exp.Null):
            return _Value("boolean", node, _is_null(self.value(node.this)))
        if not isinstance(wanted, exp.Boolean):
            _refuse(node)
        truth = self.truth(node.this)
        return _Value("boolean", node, ibis.coalesce(truth if wanted.this else ~truth, False))

    def between(self, node: Node) -> _Value:
        value, low, high = self.adapted([self.value(node.args[name]) for name in ("this", "low", "high")])
        grid = self.grid(value)
        kinds = [value.kind, low.kind, high.kind]
        if "NULL" in kinds or value.kind == "number" or (grid is not None and kinds.count("number") == 1):
            return _Value("boolean", node, self.compare(">=", value, low) & self.compare("<=", value, high))
        if grid is not None and low.kind == high.kind == "number":
            least, most = math.ceil(low.literal / grid.unit), math.floor(high.literal / grid.unit)
            return _Value("boolean", node, grid.within(least, most))
        inner, *bounds = [self.ordered(each) for each in self.common([value, low, high])]
        return _Value("boolean", node, inner.between(*bounds))

    def membership(self, node: Node) -> _Value:
        value, listed = self.value(node.this), [self.value(each) for each in node.expressions]
        strange = next((each for each in listed if each.literal is None and each.kind != "NULL"), None)
        if strange is not None or not listed:
            raise InvalidValueError(f"where must list literals after IN, not {strange.text if strange else 'nothing'}")
        literals = [each for each in listed if each.kind != "NULL"]
        if value.kind == "NULL" or not literals:
            return _Value("boolean", node, _UNKNOWN)
        found = self.among(value, literals)
        return _Value("boolean", node, found if len(literals) == len(listed) else found | _UNKNOWN)

    def like(self, node: Node) -> _Value:
        name = node.key.upper()
        if not (isinstance(node.expression, exp.Literal) and node.expression.is_string):
            raise InvalidValueError(f"where must have a string literal after {name} in {_sql(node)}")
        value, pattern = self.value(node.this), node.expression.this
        if "\\" in pattern:
            raise InvalidValueError(f"where must not use a backslash in {_sql(node)}: engines read it differently")
        if value.kind == "NULL":
            return _Value("boolean", node, _UNKNOWN)
        if value.kind != "string":
            raise InvalidTypeError(f"where must use {name} on strings, not on {value.text}, {_a(value.kind)}")
        inner = value.expr
        if isinstance(node, exp.ILike):
            inner = _folded(self.engine, inner, "lower")
            pattern = pattern.translate(str.maketrans(ascii_uppercase, ascii_lowercase))
        found = _like(self.engine, inner, pattern)
        return _Value("boolean", node, ~found if node.args.get("negate") else found)

    def string_function(self, node: Node) -> _Value:
        value = self.value(node.this)
        if value.kind == "NULL":
            return replace(value, node=node)
        if value.kind != "string":
            raise InvalidTypeError(f"where must use {node.key} on strings, not on {value.text}, {_a(value.kind)}")
        if isinstance(node, exp.Trim):
            return _Value("string", node, _trimmed(self.engine, value.expr, node.args.get("position")))
        return _Value("string", node, _folded(self.engine, value.expr, node.key))

    def coalesce(self, node: Node) -> _Value:
        values = self.common([self.value(each) for each in (node.this, *node.expressions)])
        return _union(values, node, lambda expressions: ibis.coalesce(*expressions))

    def case(self, node: Node) -> _Value:
        branches, default = node.args["ifs"], node.args.get("default")
        truths = [self.truth(branch.this) for branch in branches]
        results = [self.value(branch.args["true"]) for branch in branches]
        otherwise = _Value("NULL", "NULL") if default is None else self.value(default)

        def chosen(expressions: list[Any]) -> Any:
            return ibis.cases(*zip(truths, expressions[:-1], strict=True), else_=expressions[-1])

        return _union(self.common([*results, otherwise]), node, chosen)

    def arithmetic(self, node: Node) -> _Value:
        left, right = self.value(node.this), self.value(node.expression)
        return self.calculate(_CALCULATIONS[type(node)], left, right, node)

    def minus(self, node: Node) -> _Value:
        zero = _Value("number", "0", literal=Fraction(0))
        return self.calculate(operator.sub, zero, self.value(node.this), node)

    def calculate(self, how: Callable[[Any, Any], Any], left: _Value, right: _Value, node: Node) -> _Value:
        """The sum, difference or product of integers and number literals."""
        strange = next((each for each in (left, right) if each.kind not in ("integer", "number", "NULL")), None)
        if strange is not None:
            raise InvalidTypeError(
                f"where must calculate with integers alone, and {strange.text} in {_sql(node)} is {_a(strange.kind)}: "
                "the result could fail on a row or be rounded differently by another engine"
            )
        if "NULL" in (left.kind, right.kind):
            return _Value("NULL", node)
        if left.kind == right.kind == "number":
            return _Value("number", node, literal=how(left.literal, right.literal))
        scales = [_places(left), _places(right)]
        if how is not operator.mul:
            scales = [max(scales)] * 2
        result = self.checked(how, self.scaled(left, scales[0]), self.scaled(right, scales[1]), node)
        return replace(result, scale=sum(scales) if how is operator.mul else scales[0])

    def checked(self, how: Callable[[Any, Any], Any], left: _Value, right: _Value, node: Node) -> _Value:
        """An operation on 64-bit integers that cannot overflow: it is NULL where the result is beyond MOST."""
        corners = [how(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
        low, high = min(corners), max(corners)
        if low >= -MOST and high <= MOST:
            result = how(left.expr.cast("int64"), right.expr.cast("int64"))
            return _Value("integer", node, result, low=low, high=high)
        if max(-low, high) >= 10**38:
            raise InvalidValueError(f"where must not need more than 38 digits, as {_sql(node)} could")
        # SQLite has no decimals, but its integers turn into doubles where they overflow, and those are beyond MOST too.
        wide = dt.int64 if self.engine == "sqlite" else dt.Decimal(38, 0)
        result = how(left.expr.cast(wide), right.expr.cast(wide))
        # The result is in the SQL twice, so depth is dear. Once would do with TRY_CAST, but DuckDB drops that where a
        # comparison follows, and with NULLIF, but DuckDB and Spark repeat its argument themselves.
        held = result.between(ibis.literal(-MOST, wide), ibis.literal(MOST, wide))
        result = ibis.cases((held, result), else_=ibis.null(wide)).cast("int64")
        return _Value("integer", node, result, low=-MOST, high=MOST)

    def scaled(self, value: _Value, scale: int) -> _Value:
        """An integer or a number literal in units of 10^-scale."""
        if value.kind == "number":
            steps = int(value.literal * 10**scale)
            if abs(steps) > MOST:
                raise InvalidValueError(
                    f"where must calculate and mix integers with numbers below 2^63, unlike {value.text}"
                )
            return _integer(steps, scale, value.node)
        if value.scale == scale:
            return value
        if scale - value.scale > 18:
            raise InvalidValueError(f"where must not need more than 38 digits, as {value.text} could")
        factor = _integer(10 ** (scale - value.scale), 0, "")
        return replace(self.checked(operator.mul, value, factor, value.node), scale=scale)

    def compare(self, sign: str, left: _Value, right: _Value) -> Any:
        """The comparison, NULL where a side is."""
        if sign == "<>":
            return ~self.compare("=", left, right)
        if "NULL" in (left.kind, right.kind):
            return _UNKNOWN
        if left.literal is not None and right.literal is None:
            return self.compare(_MIRRORED[sign], right, left)
        left, right = self.adapted([left, right])
        if left.kind == right.kind == "number":
            return ibis.literal(bool(_SIGNS[sign](left.literal, right.literal)))
        grid = self.grid(left)
        if grid is not None and right.kind == "number":
            return grid.compare(sign, right.literal)
        left, right = self.common([left, right])
        if sign == "=":
            return self.exact(left) == self.exact(right)
        return _SIGNS[sign](self.ordered(left), self.ordered(right))

    def among(self, value: _Value, literals: list[_Value]) -> Any:
        """Whether the value is one of the literals."""
        value, *literals = self.adapted([value, *literals])
        if value.kind == "number":
            return _balanced(operator.or_, [self.compare("=", value, each) for each in literals])
        grid = self.grid(value)
        if grid is not None and all(each.kind == "number" for each in literals):
            return grid.among([each.literal for each in literals])
        value, *literals = self.common([value, *literals])
        return self.exact(value).isin([self.exact(each) for each in literals])

    def grid(self, value: _Value) -> _Grid | None:
        """The numbers that an integer or a decimal can be, where they are known."""
        if value.kind == "integer":
            spell = partial(ibis.literal, type=dt.int64 if self.engine == "sqlite" else value.expr.type())
            return _Grid(value.expr, Fraction(1, 10**value.scale), value.low, value.high, spell)
        # SQLite declares the digits of its decimals, and keeps any number.
        if value.kind != "decimal" or self.engine == "sqlite" or value.expr.type().scale is None:
            return None
        dtype = value.expr.type()
        if _may_be_huge(dtype):
            return _Grid(value.expr, Fraction(1), -math.inf, math.inf, partial(_small, value))
        unit, most = Fraction(1, 10**dtype.scale), 10**dtype.precision - 1
        return _Grid(value.expr, unit, -most, most, lambda steps: _decimal(steps * unit, dtype))

    def common(self, values: list[_Value]) -> list[_Value]:
        """The values in one type, if engines can be trusted to agree on it."""
        values = self.adapted(values)
        given = [each for each in values if each.kind != "NULL"]
        kinds = {each.kind for each in given}
        if not kinds:
            return values
        if kinds <= _NUMERIC:
            alike = self.common_numbers(given)
        elif len(kinds) > 1 or kinds - _COMPARABLE:
            _mismatch(given)
        else:
            alike = _common_moments(given) if kinds <= _MOMENTS else given
        found, nothing = iter(alike), ibis.null(alike[0].expr.type())
        return [replace(each, expr=nothing) if each.kind == "NULL" else next(found) for each in values]

    def common_numbers(self, values: list[_Value]) -> list[_Value]:
        kinds = {each.kind for each in values}
        if "float" in kinds:
            single = all(each.kind == "number" or each.expr.type().is_float32() for each in values)
            return [_as_float(each, single) for each in values]
        if "decimal" in kinds:
            dtype = _common_decimal(values, unsized=self.engine == "sqlite")
            return [_as_decimal(each, dtype) for each in values]
        unsigned = [each.high >= 2**63 for each in values]
        if any(unsigned) and not all(unsigned):
            return [_as_decimal(each, _common_decimal(values, unsized=False)) for each in values]
        scale = max(map(_places, values))
        alike = [self.scaled(each, scale) for each in values]
        return alike if any(unsigned) else [replace(each, expr=each.expr.cast("int64")) for each in alike]

    def adapted(self, values: list[_Value]) -> list[_Value]:
        """String literals as the dates they are beside, dates as timestamps, untyped text as what it is beside."""
        kinds = {each.kind for each in values} - {"NULL", "string"}
        if kinds == {"date", "timestamp"}:
            kind = "timestamp"
        elif kinds and kinds <= _NUMERIC:
            kind = "float"
        elif len(kinds) == 1:
            (kind,) = kinds
        else:
            return values
        values = [self.read_as(kind, each, values) for each in values]
        return [self.moment(kind, each.literal, each.node) if _is_moment(kind, each) else each for each in values]

    def read_as(self, kind: str, value: _Value, beside: Sequence[_Value] = ()) -> _Value:
        """An untyped column of text as another kind, NULL where it is not one; anything else as it is."""
        if not self.untyped or value.kind != "string" or value.literal is not None or kind not in _UNTYPED:
            return value
        long = next((each for each in beside if each.kind == "number" and 2**53 < abs(each.literal) < 2**64), None)
        if long is not None:
            raise InvalidValueError(f"where must compare {value.text} with '{long.text}' in quotes: it is text here")
        return replace(value, kind=kind, expr=value.expr.try_cast(_UNTYPED[kind]))

    def moment(self, kind: str, given: Any, node: Node) -> _Value:
        """A date or timestamp literal."""
        moment = _read_moment(kind, given)
        if moment is None:
            raise InvalidValueError(f"where must hold {_SPELLED[kind]}, not {_sql(node)}")
        return _Value(kind, node, ibis.literal(_iso(moment) if self.engine == "sqlite" else moment), moment)

    def exact(self, value: _Value) -> Any:
        """The expression whose equality is that of the values: a column of SQLite may ignore the case of strings."""
        if value.kind == "string" and self.engine == "sqlite":
            return value.expr.cast("binary")
        return _boxed(value)

    def ordered(self, value: _Value) -> Any:
        """The expression whose order is that of the values: for strings, that of their UTF-8 bytes."""
        if value.kind == "boolean":
            raise InvalidTypeError(f"where must compare booleans with = and <> alone, unlike {value.text}")
        return _bytes(self.engine, value) if value.kind == "string" else value.expr


@dataclass(frozen=True, eq=False)
class _Grid:
    """An expression whose values are whole multiples of a unit, from low to high units."""

    expr: Any
    unit: Fraction
    low: float
    high: float
    spell: Callable[[int], Any]

    def compare(self, sign: str, number: Fraction) -> Any:
        """The comparison with a number, which need not be on the grid; NULL where the value is."""
        floor, ceil = math.floor(number / self.unit), math.ceil(number / self.unit)
        match sign:
            case "=":
                return self.within(ceil, floor)
            case "<":
                return self.within(None, ceil - 1)
            case "<=":
                return self.within(None, floor)
            case ">":
                return self.within(floor + 1, None)
            case _:
                return self.within(ceil, None)

    def within(self, low: int | None, high: int | None) -> Any:
        """Whether the value has at least `low` and at most `high` units; NULL where the value is."""
        low = None if low is None or low <= self.low else low
        high = None if high is None or high >= self.high else high
        least, most = self.low if low is None else low, self.high if high is None else high
        if least > most:
            return self.expr.between(self.spell(1), self.spell(0))
        if low is None and high is None:
            return self.expr.between(self.spell(int(self.low)), self.spell(int(self.high)))
        if high is None:
            return self.expr >= self.spell(int(least))
        if low is None:
            return self.expr <= self.spell(high)
        return self.expr == self.spell(low) if low == high else self.expr.between(self.spell(low), self.spell(high))

    def among(self, numbers: list[Fraction]) -> Any:
        """Whether the value is one of the numbers."""
        steps = {number / self.unit for number in numbers}
        held = sorted(int(each) for each in steps if each.denominator == 1 and self.low <= each <= self.high)
        return self.expr.isin([self.spell(each) for each in held]) if held else self.within(1, 0)


_TWO_SIDES = ("this", "expression")
_NODES: dict[type, tuple[Callable[[_Reader, Any], _Value], tuple[str, ...]]] = {
    exp.Paren: (_Reader.paren, ("this",)),
    exp.Column: (_Reader.column, ("this",)),
    exp.Literal: (_Reader.literal, ("this", "is_string")),
    exp.Boolean: (_Reader.boolean, ("this",)),
    exp.Null: (_Reader.null, ()),
    exp.Cast: (_Reader.cast, ("this", "to")),
    exp.And: (_Reader.connective, _TWO_SIDES),
    exp.Or: (_Reader.connective, _TWO_SIDES),
    exp.Not: (_Reader.negation, ("this",)),
    exp.EQ: (_Reader.comparison, _TWO_SIDES),
    exp.NEQ: (_Reader.comparison, _TWO_SIDES),
    exp.LT: (_Reader.comparison, _TWO_SIDES),
    exp.LTE: (_Reader.comparison, _TWO_SIDES),
    exp.GT: (_Reader.comparison, _TWO_SIDES),
    exp.GTE: (_Reader.comparison, _TWO_SIDES),
    exp.NullSafeEQ: (_Reader.distinct, _TWO_SIDES),
    exp.NullSafeNEQ: (_Reader.distinct, _TWO_SIDES),
    exp.Is: (_Reader.test, _TWO_SIDES),
    exp.Between: (_Reader.between, ("this", "low", "high")),
    exp.In: (_Reader.membership, ("this", "expressions")),
    exp.Like: (_Reader.like, (*_TWO_SIDES, "negate")),
    exp.ILike: (_Reader.like, (*_TWO_SIDES, "negate")),
    exp.Lower: (_Reader.string_function, ("this",)),
    exp.Upper: (_Reader.string_function, ("this",)),
    exp.Trim: (_Reader.string_function, ("this", "position")),
    exp.Coalesce: (_Reader.coalesce, ("this", "expressions")),
    exp.Case: (_Reader.case, ("ifs", "default")),
    exp.Add: (_Reader.arithmetic, _TWO_SIDES),
    exp.Sub: (_Reader.arithmetic, _TWO_SIDES),
    exp.Mul: (_Reader.arithmetic, _TWO_SIDES),
    exp.Neg: (_Reader.minus, ("this",)),
}
"""The white list: what reads a node, and the parts of it that are understood."""

_COMPARISONS = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_CALCULATIONS: dict[type, Any] = {exp.Add: operator.add, exp.Sub: operator.sub, exp.Mul: operator.mul}
_PREDICATES = (*_COMPARISONS, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.Between, exp.In, exp.Like, exp.ILike)
_SIGNS = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_UNKNOWN = ibis.null(dt.boolean)
_NUMERIC = {"integer", "decimal", "float", "number"}
_MOMENTS = {"date", "timestamp", "timestamp with time zone"}
_COMPARABLE = {"boolean", "string", *_MOMENTS}
_UNTYPED = {"float": "float64", "date": "date", "timestamp": "timestamp", "boolean": "boolean"}


def _engine(table: ir.Table) -> str:
    """The name ibis has for the engine of a table; a table without one is taken for DuckDB's."""
    try:
        return str(table.get_backend().name)
    except Exception:
        return "duckdb"


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


def _column_name(name: str, columns: Sequence[str], untyped: bool) -> str:
    if name in columns:
        return name
    folded = {column.casefold(): column for column in columns}
    if [column.casefold() for column in columns].count(name.casefold()) == 1:
        return folded[name.casefold()]
    hint = suggestion(name, columns, private=untyped)
    if untyped:
        raise InvalidValueError(
            "where must name columns of the table, and have strings in single quotes, and "
            f"{shown(name)} is not in the header of the file{hint}"
        )
    raise InvalidValueError(
        f"where must name columns of the table ({choices(columns)}), and have strings in single quotes, "
        f"not {shown(name)}{hint}"
    )


def _a(kind: str) -> str:
    """A kind with its article."""
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _sql(node: Node) -> str:
    """The node as a message quotes it: short, on one line."""
    if isinstance(node, str):
        return node
    try:
        text = " ".join(node.sql("duckdb", comments=False).split())
    except Exception:  # a node that was only half understood
        text = str(node.key)
    return text if len(text) <= 60 else f"{text[:57]}..."


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


def _refuse(node: Node) -> NoReturn:
    what, why = _named(node)
    raise InvalidValueError(f"where must not use {what} ({_sql(node)}): {why}")


def _named(node: Node) -> tuple[str, str]:
    """What a refused node is called, and why it is refused."""
    for kinds, what, why in _REFUSED:
        if isinstance(node, kinds):
            return what, why
    if type(node).__name__.startswith("Regexp"):
        return "a regular expression", "engines read it differently"
    if type(node) in _OPERATORS:
        return f"the operator {_OPERATORS[type(node)]}", _FAILS
    if type(node) in _NODES or not isinstance(node, exp.Func):
        return f"this form of {node.key}", "it is not known to mean the same on every engine"
    name = _sql(node).partition("(")[0].lower()
    return f"the function {name}", _why_no_function(name)


def _why_no_function(name: str) -> str:
    if name in _CHANGING or name.startswith(("current_", "get_current_")):
        return "whether a row is kept must not depend on the clock, the session or chance"
    if name in _READING or name.startswith("read_"):
        return "it reads something other than the row"
    return "only lower, upper, trim, ltrim, rtrim and coalesce are known to mean the same on every engine"


def _mismatch(values: list[_Value]) -> NoReturn:
    first: dict[str, _Value] = {}
    for each in values:
        first.setdefault(each.kind, each)
    named = " with ".join(f"{each.text} ({each.kind})" for each in first.values())
    if len(first) == 1:
        raise InvalidTypeError(f"where must not compare {named}: engines do not agree on this type")
    raise InvalidTypeError(f"where must not compare or mix {named}: converting one of them can fail on a row")


def _balanced(combine: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    """All parts combined in a tree of little depth, since engines and ibis recurse into it."""
    while len(parts) > 1:
        rest = parts[-1:] if len(parts) % 2 else []
        parts = [combine(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)] + rest
    return parts[0]


def _union(values: list[_Value], node: Node, combine: Callable[[list[Any]], Any]) -> _Value:
    """The value that is one of these, which are of one type."""
    given = [each for each in values if each.kind != "NULL"]
    if not given:
        return _Value("NULL", node)
    low, high = min(each.low for each in given), max(each.high for each in given)
    expr = combine([each.expr for each in values])
    return replace(given[0], node=node, expr=expr, literal=None, low=low, high=high)


def _is_null(value: _Value) -> Any:
    return ibis.literal(value.kind == "NULL") if value.expr is None else _boxed(value).isnull()


def _boxed(value: _Value) -> Any:
    """The value as the operand of = or IS; ibis leaves out the parentheses that BETWEEN, IN and NOT need there."""
    if value.kind != "boolean" or isinstance(value.node, exp.Column | exp.Boolean):
        return value.expr
    return ibis.coalesce(value.expr, _UNKNOWN)


def _integer(number: int, scale: int, node: Node) -> _Value:
    return _Value("integer", node, ibis.literal(number, dt.int64), scale=scale, low=number, high=number)


def _places(value: _Value) -> int:
    """How many decimal places a value has."""
    return _decimal_places(value.literal) if value.kind == "number" else value.scale


def _decimal_places(number: Fraction) -> int:
    places = 0
    while 10**places % number.denominator:
        places += 1
    return places


def _decimal(number: Fraction, dtype: dt.DataType) -> Any:
    """A decimal literal; through text, because a bare 1E-7 is a double to an engine."""
    places = _decimal_places(number)
    digits = tuple(map(int, str(abs(int(number * 10**places)))))
    return ibis.literal(f"{Decimal((int(number < 0), digits, -places)):f}").cast(dtype)


def _may_be_huge(dtype: dt.DataType) -> bool:
    """Whether ibis may have called a HUGEINT of DuckDB a decimal, which it does not fit into."""
    return bool(dtype.is_decimal() and (dtype.precision, dtype.scale) == (38, 0))


def _small(beside: _Value, number: int) -> Any:
    """An integer beside a column of 38 digits, which a HUGEINT can be compared with as well."""
    if abs(number) >= 2**63:
        raise InvalidValueError(
            f"where must compare {beside.text} with numbers below 2^63: it is of a type with 38 digits"
        )
    return ibis.literal(number, dt.int64)


def _common_decimal(values: list[_Value], unsized: bool) -> dt.DataType:
    """A decimal type that holds all the values exactly."""
    types = [each.expr.type() for each in values if each.kind == "decimal"]
    if any(each.kind == "integer" and each.scale for each in values) or any(map(_may_be_huge, types)):
        _mismatch(values)
    if unsized or any(dtype.scale is None for dtype in types):
        return dt.Decimal()
    scale = max([dtype.scale for dtype in types] + [_places(each) for each in values])
    whole = [dtype.precision - dtype.scale for dtype in types]
    whole += [len(str(max(-each.low, each.high))) for each in values if each.kind == "integer"]
    whole += [len(str(int(abs(each.literal)))) for each in values if each.kind == "number"]
    if max(whole) + scale > 38:
        named = ", ".join(each.text for each in values)
        raise InvalidValueError(f"where must not need more than 38 digits to compare or mix {named}")
    return dt.Decimal(max(whole) + scale, scale)


def _as_decimal(value: _Value, dtype: dt.DataType) -> _Value:
    expr = _decimal(value.literal, dtype) if value.kind == "number" else value.expr.cast(dtype)
    return replace(value, kind="decimal", expr=expr, literal=None)


def _as_float(value: _Value, single: bool) -> _Value:
    """A float, of four bytes if `single`, as where a number literal is beside such a column."""
    if value.kind == "decimal" or (value.kind == "integer" and value.scale):
        raise InvalidTypeError(
            f"where must not compare or mix {value.text} ({value.kind}) with a float: engines round it differently"
        )
    dtype = dt.float32 if single else dt.float64
    if value.kind != "number":
        return replace(value, kind="float", expr=value.expr.cast(dtype))
    if abs(value.literal) > float(np.finfo(np.float32 if single else np.float64).max):
        raise InvalidValueError(f"where must compare floats with numbers that they can be, not with {value.text}")
    nearest = float(np.float32(float(value.literal))) if single else float(value.literal)
    # Through text, because DuckDB takes 0.1 for a decimal and converts it to a double that can be another one.
    return replace(value, kind="float", expr=ibis.literal(repr(nearest)).cast(dtype), literal=None)


_DAY = r"\d{4}-\d\d-\d\d"
_CLOCK = r"[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?"
_FORMS = {
    "date": _DAY,
    "timestamp": f"{_DAY}({_CLOCK})?",
    "timestamp with time zone": rf"{_DAY}{_CLOCK}(Z|[+-]\d\d(:?\d\d)?)",
}
_SPELLED = {
    "date": "dates like DATE '2024-01-31'",
    "timestamp": "timestamps like TIMESTAMP '2024-01-31 12:00:00'",
    "timestamp with time zone": "timestamps with a zone like TIMESTAMPTZ '2024-01-31 12:00:00+00:00'",
}
_LITERAL_CASTS = {
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPNTZ": "timestamp",
    "TIMESTAMPTZ": "timestamp with time zone",
}


def _is_moment(kind: str, value: _Value) -> bool:
    """Whether a literal has to become a date or timestamp of this kind."""
    return kind in _MOMENTS and value.literal is not None and value.kind != kind


def _read_moment(kind: str, given: Any) -> date | None:
    """The date or timestamp that a literal stands for, without a zone or in UTC."""
    if not isinstance(given, str):
        return datetime.combine(given, time()) if kind == "timestamp" else None
    if not re.fullmatch(_FORMS[kind], given, re.ASCII):
        return None
    try:
        if kind == "date":
            return date.fromisoformat(given)
        moment = datetime.fromisoformat(given)
        return moment if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _common_moments(values: list[_Value]) -> list[_Value]:
    """Timestamps in the resolution of the column beside them, because a conversion of the column could fail."""
    scales = {_resolution(each) for each in values if each.literal is None}
    if len(scales) > 1:
        named = " and ".join(f"{each.text} ({each.expr.type()})" for each in values)
        raise InvalidTypeError(f"where must not compare or mix {named}: converting one can fail on a row")
    scale = scales.pop() if scales else 6
    if scale == 6:
        return values
    return [each if each.literal is None else _rescaled(each, scale) for each in values]


def _resolution(value: _Value) -> int:
    """How many decimal places the seconds of a timestamp have; six where that means nothing."""
    dtype = value.expr.type()
    return dtype.scale if dtype.is_timestamp() and dtype.scale is not None else 6


def _rescaled(value: _Value, scale: int) -> _Value:
    moment = value.literal
    if moment.microsecond % 10 ** max(0, 6 - scale) or (scale == 9 and not 1678 <= moment.year <= 2261):
        raise InvalidValueError(f"where must not compare {value.text} with a column that cannot hold it")
    return replace(value, expr=value.expr.cast(dt.Timestamp(timezone=value.expr.type().timezone, scale=scale)))


def _iso(moment: date) -> str:
    """A date or timestamp as SQLite's text has it here: no T, and no zeros at the end of a fraction."""
    text = moment.isoformat().replace("T", " ")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _stored(engine: str, kind: str, expr: Any) -> Any:
    """A column as it can be compared: SQLite keeps dates as text, in more than one spelling."""
    if engine != "sqlite" or kind not in _MOMENTS:
        return expr
    text = expr.cast("string")
    if kind == "date":
        return text.substr(0, 10)
    text = text.replace("T", " ")
    return ibis.cases((text.contains("."), _rtrim(_rtrim(text, "0"), ".")), else_=text)


_glob = builtin("glob", "boolean", "string", "string")
_trim = builtin("trim", "string", "string", "string")
_ltrim = builtin("ltrim", "string", "string", "string")
_rtrim = builtin("rtrim", "string", "string", "string")
_SIDES = {None: "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_TRIMS = {"trim": _trim, "ltrim": _ltrim, "rtrim": _rtrim}
_PLAIN_TRIMS = {name: builtin(name, "string", "string") for name in _TRIMS}


def _bytes(engine: str, value: _Value) -> Any:
    """The UTF-8 bytes of a string, whose order no collation changes."""
    found = text_bytes(engine, value.expr)
    if found is not None:
        return found
    raise InvalidValueError(f"where must not order strings on {engine}, as it does with {value.text}")


def _like(engine: str, text: Any, pattern: str) -> Any:
    """LIKE, case and all: on SQLite that is GLOB."""
    if engine != "sqlite":
        return text.like(pattern)
    quoted = re.sub(r"[*?[]", r"[\g<0>]", pattern)
    return _glob(quoted.replace("%", "*").replace("_", "?"), text)


def _folded(engine: str, text: Any, case: str) -> Any:
    """The 26 letters in lower or upper case; what engines do to others depends on versions and locales."""
    if engine == "sqlite":
        return text.lower() if case == "lower" else text.upper()
    letters = (ascii_uppercase, ascii_lowercase)
    return text.translate(*(letters if case == "lower" else reversed(letters)))


def _trimmed(engine: str, text: Any, side: str | None) -> Any:
    """Without the spaces at its ends. DuckDB removes more unless told, and Spark reads two arguments in reverse."""
    name = _SIDES[side]
    return _PLAIN_TRIMS[name](text) if engine in ("pyspark", "databricks") else _TRIMS[name](text, " ")
