"""Numbers in a condition: literals, arithmetic that cannot fail, one type for several numbers, and exact comparison.

Where the result of arithmetic could overflow, the SQL checks it and gives NULL. Integers and decimals are compared with
any number exactly, because what is between two steps of a grid is no value.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import MAX_PREC, Context, Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import numpy as np
from sqlglot import exp

from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.sources.events.dialects.base import Dialect
from discreet.sources.events.where.grammar import MOMENTS, Node, Value, article, refuse, refuse_mismatch, sql

MOST = 2**63 - 1
"""The largest result of arithmetic; what is beyond is NULL, on every engine."""


def number_literal(node: Node) -> Value:
    """A number literal, exactly as it is written."""
    if not re.fullmatch(r"(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?", node.this, re.ASCII | re.IGNORECASE):
        refuse(node)
    number = Decimal(node.this).normalize(Context(MAX_PREC))
    if len(number.as_tuple().digits) > 38:
        raise InvalidValueError(f"where must hold numbers of at most 38 digits, not {sql(node)}")
    return Value("number", node, literal=Fraction(number))


def calculate(dialect: Dialect, how: Callable[[Any, Any], Any], left: Value, right: Value, node: Node) -> Value:
    """The sum, difference or product of integers and number literals."""
    strange = next((each for each in (left, right) if each.kind not in ("integer", "number", "NULL")), None)
    if strange is not None:
        raise InvalidTypeError(
            f"where must calculate with integers alone, and {strange.text} in {sql(node)} is {article(strange.kind)}: "
            "the result could fail on a row or be rounded differently by another engine"
        )
    if "NULL" in (left.kind, right.kind):
        return Value("NULL", node)
    if left.kind == right.kind == "number":
        return Value("number", node, literal=how(left.literal, right.literal))
    scales = [decimal_places(left), decimal_places(right)]
    if how is not operator.mul:
        scales = [max(scales)] * 2
    result = _calculate_checked(
        dialect, how, to_scale(dialect, left, scales[0]), to_scale(dialect, right, scales[1]), node
    )
    return replace(result, scale=sum(scales) if how is operator.mul else scales[0])


def to_scale(dialect: Dialect, value: Value, scale: int) -> Value:
    """An integer or a number literal in units of 10^-scale."""
    if value.kind == "number":
        steps = int(value.literal * 10**scale)
        if abs(steps) > MOST:
            raise InvalidValueError(
                f"where must calculate and mix integers with numbers below 2^63, unlike {value.text}"
            )
        return _integer_value(steps, scale, value.node)
    if value.scale == scale:
        return value
    if scale - value.scale > 18:
        raise InvalidValueError(f"where must not need more than 38 digits, as {value.text} could")
    factor = _integer_value(10 ** (scale - value.scale), 0, "")
    return replace(_calculate_checked(dialect, operator.mul, value, factor, value.node), scale=scale)


def decimal_places(value: Value) -> int:
    """How many decimal places a value has."""
    return count_decimal_places(value.literal) if value.kind == "number" else value.scale


def count_decimal_places(number: Fraction) -> int:
    """How many decimal places a number has."""
    count = 0
    while 10**count % number.denominator:
        count += 1
    return count


def _calculate_checked(
    dialect: Dialect, how: Callable[[Any, Any], Any], left: Value, right: Value, node: Node
) -> Value:
    """An operation on 64-bit integers that cannot overflow: it is NULL where the result is beyond MOST."""
    corners = [how(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    low, high = min(corners), max(corners)
    if low >= -MOST and high <= MOST:
        result = how(left.expr.cast("int64"), right.expr.cast("int64"))
        return Value("integer", node, result, low=low, high=high)
    if max(-low, high) >= 10**38:
        raise InvalidValueError(f"where must not need more than 38 digits, as {sql(node)} could")
    # Where this is int64 its overflow is a double, which is beyond MOST too.
    wide = dt.dtype(dialect.total_type)
    result = how(left.expr.cast(wide), right.expr.cast(wide))
    # The result is in the SQL twice, so depth is dear. Once would do with TRY_CAST, but DuckDB drops that where a
    # comparison follows, and with NULLIF, but DuckDB and Spark repeat its argument themselves.
    held = result.between(ibis.literal(-MOST, wide), ibis.literal(MOST, wide))
    result = ibis.cases((held, result), else_=ibis.null(wide)).cast("int64")
    return Value("integer", node, result, low=-MOST, high=MOST)


def _integer_value(number: int, scale: int, node: Node) -> Value:
    return Value("integer", node, ibis.literal(number, dt.int64), scale=scale, low=number, high=number)


def unify_numbers(dialect: Dialect, values: list[Value]) -> list[Value]:
    """The numbers in one type that holds all of them exactly, or as floats beside a column of floats."""
    kinds = {each.kind for each in values}
    if "float" in kinds:
        single = all(each.kind == "number" or each.expr.type().is_float32() for each in values)
        return [_as_float(each, single) for each in values]
    if "decimal" in kinds:
        dtype = _common_decimal(values, unsized=not dialect.has_typed_columns)
        return [_as_decimal(each, dtype) for each in values]
    unsigned = [each.high >= 2**63 for each in values]
    if any(unsigned) and not all(unsigned):
        return [_as_decimal(each, _common_decimal(values, unsized=False)) for each in values]
    scale = max(map(decimal_places, values))
    alike = [to_scale(dialect, each, scale) for each in values]
    return alike if any(unsigned) else [replace(each, expr=each.expr.cast("int64")) for each in alike]


def _common_decimal(values: list[Value], unsized: bool) -> dt.DataType:
    """A decimal type that holds all the values exactly."""
    types = [each.expr.type() for each in values if each.kind == "decimal"]
    if any(each.kind == "integer" and each.scale for each in values) or any(map(may_be_huge, types)):
        refuse_mismatch(values)
    if unsized or any(dtype.scale is None for dtype in types):
        return dt.Decimal()
    scale = max([dtype.scale for dtype in types] + [decimal_places(each) for each in values])
    whole = [dtype.precision - dtype.scale for dtype in types]
    whole += [len(str(max(-each.low, each.high))) for each in values if each.kind == "integer"]
    whole += [len(str(int(abs(each.literal)))) for each in values if each.kind == "number"]
    if max(whole) + scale > 38:
        named = ", ".join(each.text for each in values)
        raise InvalidValueError(f"where must not need more than 38 digits to compare or mix {named}")
    return dt.Decimal(max(whole) + scale, scale)


def _as_decimal(value: Value, dtype: dt.DataType) -> Value:
    expr = decimal(value.literal, dtype) if value.kind == "number" else value.expr.cast(dtype)
    return replace(value, kind="decimal", expr=expr, literal=None)


def _as_float(value: Value, single: bool) -> Value:
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


def decimal(number: Fraction, dtype: dt.DataType) -> Any:
    """A decimal literal; through text, because a bare 1E-7 is a double to an engine."""
    after_point = count_decimal_places(number)
    digits = tuple(map(int, str(abs(int(number * 10**after_point)))))
    return ibis.literal(f"{Decimal((int(number < 0), digits, -after_point)):f}").cast(dtype)


def may_be_huge(dtype: dt.DataType) -> bool:
    """Whether ibis may have called a HUGEINT of DuckDB a decimal, which it does not fit into."""
    return bool(dtype.is_decimal() and (dtype.precision, dtype.scale) == (38, 0))


@dataclass(frozen=True, eq=False)
class Grid:
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


def grid_of(dialect: Dialect, value: Value) -> Grid | None:
    """The numbers that an integer or a decimal can be, where they are known."""
    if value.kind == "integer":
        spell = partial(ibis.literal, type=value.expr.type() if dialect.has_typed_columns else dt.int64)
        return Grid(value.expr, Fraction(1, 10**value.scale), value.low, value.high, spell)
    # Where columns have no types, one that declares the digits of its decimals keeps any number.
    if value.kind != "decimal" or not dialect.has_typed_columns or value.expr.type().scale is None:
        return None
    dtype = value.expr.type()
    if may_be_huge(dtype):
        return Grid(value.expr, Fraction(1), -math.inf, math.inf, partial(_spell_small, value))
    unit, most = Fraction(1, 10**dtype.scale), 10**dtype.precision - 1
    return Grid(value.expr, unit, -most, most, lambda steps: decimal(steps * unit, dtype))


def _spell_small(beside: Value, number: int) -> Any:
    """An integer beside a column of 38 digits, which a HUGEINT can be compared with as well."""
    if abs(number) >= 2**63:
        raise InvalidValueError(
            f"where must compare {beside.text} with numbers below 2^63: it is of a type with 38 digits"
        )
    return ibis.literal(number, dt.int64)


# Dates and timestamps: the literals that stand for one, and columns that store them in other resolutions.

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


def typed_literal(dialect: Dialect, node: Node) -> Value:
    """A literal such as DATE '2024-01-31', which the parser spells as the cast of a string."""
    name, text = node.to.this.name, node.this
    if name not in _LITERAL_CASTS or node.to.expressions or not (isinstance(text, exp.Literal) and text.is_string):
        refuse(node)
    return moment_literal(dialect, _LITERAL_CASTS[name], text.this, f"{name.removesuffix('NTZ')} {sql(text)}")


def moment_literal(dialect: Dialect, kind: str, given: Any, node: Node) -> Value:
    """The date or timestamp that a literal stands for, of the kind that it is written as or stands beside."""
    moment = _read_moment(kind, given)
    if moment is None:
        raise InvalidValueError(f"where must hold {_SPELLED[kind]}, not {sql(node)}")
    return Value(kind, node, ibis.literal(_spell_iso(moment) if dialect.dates_are_text else moment), moment)


def is_moment(kind: str, value: Value) -> bool:
    """Whether a literal has to become a date or timestamp of this kind."""
    return kind in MOMENTS and value.literal is not None and value.kind != kind


def unify_moments(values: list[Value]) -> list[Value]:
    """Timestamps in the resolution of the column beside them, because a conversion of the column could fail."""
    scales = {_resolution(each) for each in values if each.literal is None}
    if len(scales) > 1:
        named = " and ".join(f"{each.text} ({each.expr.type()})" for each in values)
        raise InvalidTypeError(f"where must not compare or mix {named}: converting one can fail on a row")
    scale = scales.pop() if scales else 6
    if scale == 6:
        return values
    return [each if each.literal is None else _rescale(each, scale) for each in values]


def _resolution(value: Value) -> int:
    """How many decimal places the seconds of a timestamp have; six where that means nothing."""
    dtype = value.expr.type()
    return dtype.scale if dtype.is_timestamp() and dtype.scale is not None else 6


def _rescale(value: Value, scale: int) -> Value:
    moment = value.literal
    if moment.microsecond % 10 ** max(0, 6 - scale) or (scale == 9 and not 1678 <= moment.year <= 2261):
        raise InvalidValueError(f"where must not compare {value.text} with a column that cannot hold it")
    return replace(value, expr=value.expr.cast(dt.Timestamp(timezone=value.expr.type().timezone, scale=scale)))


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


def _spell_iso(moment: date) -> str:
    """A date or timestamp as its text is compared here: no T, and no zeros at the end of a fraction."""
    text = moment.isoformat().replace("T", " ")
    return text.rstrip("0").rstrip(".") if "." in text else text
