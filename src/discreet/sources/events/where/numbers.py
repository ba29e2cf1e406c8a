"""Numbers, dates and timestamps in a condition: literals, exact comparison, and arithmetic that cannot fail.

The SQL checks arithmetic that could overflow and gives NULL instead. Integers and decimals are compared exactly with
any number, because a column of them holds whole multiples of a unit and no value between two of these.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, NoReturn

import ibis
import ibis.expr.datatypes as dt
import numpy as np

from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.sources.events.cells import DAY_NUMBER, SECOND_NUMBER, SECONDS_PER_DAY, read_cell
from discreet.sources.events.dialects.base import Dialect
from discreet.sources.events.where.grammar import Node, sql

MOST = 2**63 - 1
"""Largest absolute value of a result of arithmetic, the range of 64-bit integers; a larger one is NULL on every engine.
"""

DATE_PARTS = {"year": (1, 9999), "quarter": (1, 4), "month": (1, 12), "day": (1, 31), "isodow": (1, 7), "hour": (0, 23)}
"""The parts of a date and a time that can be extracted, and their ranges; Monday is the first day of a week."""

_MARCH = 719_468
"""The days from 1 March of the year 0 to 1 January 1970."""

_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""The days since 1970 of the first day of the year 1 and the last of the year 9999."""

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


@dataclass(frozen=True, eq=False)
class Value:
    """A translated part of a condition.

    Attributes
    ----------
    kind
        The type, as messages name it; "number" for a number literal and "NULL" for NULL.
    node
        The node of the part, or its text.
    expr
        The ibis expression. A number literal has none until it takes the type of a column beside it.
    literal
        The Python value of a literal, None for other parts.
    scale, low, high
        An integer stands for expr / 10^scale, and expr lies in [low, high].
    cell
        The column behind a string whose type is not declared, which can be read as another kind.
    longest
        The most bytes that a clean string can have; None for a string as its column has it.
    """

    kind: str
    node: Node
    expr: Any = None
    literal: Any = None
    scale: int = 0
    low: int = 0
    high: int = 0
    cell: Any = None
    longest: int | None = None

    @property
    def text(self) -> str:
        """The SQL as messages quote it."""
        return sql(self.node)

    @property
    def decimal_places(self) -> int:
        """The decimal places of a number literal, and the scale of any other value."""
        return count_decimal_places(self.literal) if self.kind == "number" else self.scale


@dataclass(frozen=True, eq=False)
class Grid:
    """An expression whose values are whole multiples of a unit, from low to high units.

    `spell` returns the ibis literal of a number of units.
    """

    expr: Any
    unit: Fraction
    low: float
    high: float
    spell: Callable[[int], Any]

    def compare(self, sign: str, number: Fraction) -> Any:
        """Compare with a number that may lie between two multiples; NULL where the value is NULL."""
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
        """Test that the value has at least `low` and at most `high` units; NULL where the value is NULL."""
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
        """Test that the value is one of the numbers."""
        steps = {number / self.unit for number in numbers}
        held = sorted(int(each) for each in steps if each.denominator == 1 and self.low <= each <= self.high)
        return self.expr.isin([self.spell(each) for each in held]) if held else self.within(1, 0)


def find_grid(dialect: Dialect, value: Value) -> Grid | None:
    """Return the numbers that an integer or a decimal can be, None if they are not known."""
    if value.kind == "integer":
        spell = partial(ibis.literal, type=value.expr.type() if dialect.has_typed_columns else dt.int64)
        return Grid(value.expr, Fraction(1, 10**value.scale), value.low, value.high, spell)
    # On an engine without typed columns, a column declared as decimal can hold any number.
    if value.kind != "decimal" or not dialect.has_typed_columns or value.expr.type().scale is None:
        return None
    dtype = value.expr.type()
    if may_be_huge(dtype):

        def spell_small(number: int) -> Any:
            if abs(number) >= 2**63:  # a HUGEINT can be compared with smaller integers
                raise InvalidValueError(
                    f"where must compare {value.text} with numbers below 2^63: it is of a type with 38 digits"
                )
            return ibis.literal(number, dt.int64)

        return Grid(value.expr, Fraction(1), -math.inf, math.inf, spell_small)
    unit, most = Fraction(1, 10**dtype.scale), 10**dtype.precision - 1
    return Grid(value.expr, unit, -most, most, lambda steps: decimal(steps * unit, dtype))


def may_be_huge(dtype: dt.DataType) -> bool:
    """Return True for decimal(38, 0), the type that ibis also gives to a HUGEINT of DuckDB, which does not fit it."""
    return bool(dtype.is_decimal() and (dtype.precision, dtype.scale) == (38, 0))


def calculate(dialect: Dialect, how: Callable[[Any, Any], Any], left: Value, right: Value, node: Node) -> Value:
    """Return the sum, difference or product of integers and number literals."""
    strange = next((each for each in (left, right) if each.kind not in ("integer", "number", "NULL")), None)
    if strange is not None:
        raise InvalidTypeError(
            f"where must calculate with integers alone, and {strange.text} in {sql(node)} is "
            f"{add_article(strange.kind)}: "
            "the result could fail on a row or be rounded differently by another engine"
        )
    if "NULL" in (left.kind, right.kind):
        return Value("NULL", node)
    if left.kind == right.kind == "number":
        return Value("number", node, literal=how(left.literal, right.literal))
    scales = [left.decimal_places, right.decimal_places]
    if how is not operator.mul:
        scales = [max(scales)] * 2
    result = _calculate_checked(
        dialect, how, to_scale(dialect, left, scales[0]), to_scale(dialect, right, scales[1]), node
    )
    return replace(result, scale=sum(scales) if how is operator.mul else scales[0])


def to_scale(dialect: Dialect, value: Value, scale: int) -> Value:
    """Return an integer or a number literal in units of 10^-scale."""
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


def _calculate_checked(
    dialect: Dialect, how: Callable[[Any, Any], Any], left: Value, right: Value, node: Node
) -> Value:
    """Return the result of an operation on 64-bit integers, NULL where it is beyond MOST."""
    corners = [how(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
    low, high = min(corners), max(corners)
    if low >= -MOST and high <= MOST:
        result = how(left.expr.cast("int64"), right.expr.cast("int64"))
        return Value("integer", node, result, low=low, high=high)
    if max(-low, high) >= 10**38:
        raise InvalidValueError(f"where must not need more than 38 digits, as {sql(node)} could")
    # If the total type is int64, as on SQLite, an overflow gives a double, which is beyond MOST too.
    wide = dt.dtype(dialect.total_type)
    result = how(left.expr.cast(wide), right.expr.cast(wide))
    # The SQL holds the result twice, so its length doubles at each level. TRY_CAST would need the result once, but
    # DuckDB drops it before a comparison. So would NULLIF, but DuckDB and Spark repeat its argument.
    held = result.between(ibis.literal(-MOST, wide), ibis.literal(MOST, wide))
    result = ibis.cases((held, result), else_=ibis.null(wide)).cast("int64")
    return Value("integer", node, result, low=-MOST, high=MOST)


def _integer_value(number: int, scale: int, node: Node) -> Value:
    return Value("integer", node, ibis.literal(number, dt.int64), scale=scale, low=number, high=number)


def unify_numbers(dialect: Dialect, values: list[Value]) -> list[Value]:
    """Return the numbers in one type that holds all of them exactly, or as floats if one is a column of floats."""
    kinds = {each.kind for each in values}
    if "float" in kinds:
        # Beside columns of floats of four bytes alone, a literal is such a float too.
        single = all(each.kind == "number" or each.expr.type().is_float32() for each in values)
        dtype, most = (dt.float32, np.finfo(np.float32).max) if single else (dt.float64, np.finfo(np.float64).max)
        floats = []
        for each in values:
            if each.kind == "decimal" or (each.kind == "integer" and each.scale):
                raise InvalidTypeError(
                    f"where must not compare or mix {each.text} ({each.kind}) with a float: engines round it "
                    "differently"
                )
            if each.kind != "number":
                floats.append(replace(each, kind="float", expr=each.expr.cast(dtype)))
                continue
            if abs(each.literal) > float(most):
                raise InvalidValueError(
                    f"where must compare floats with numbers that they can be, not with {each.text}"
                )
            nearest = float(np.float32(float(each.literal))) if single else float(each.literal)
            # A cast from text, because DuckDB reads a bare 0.1 as a decimal and may convert it to another double.
            floats.append(replace(each, kind="float", expr=ibis.literal(repr(nearest)).cast(dtype), literal=None))
        return floats
    if "decimal" in kinds:
        dtype = _common_decimal(values, unsized=not dialect.has_typed_columns)
        return [_as_decimal(each, dtype) for each in values]
    unsigned = [each.high >= 2**63 for each in values]
    if any(unsigned) and not all(unsigned):
        return [_as_decimal(each, _common_decimal(values, unsized=False)) for each in values]
    scale = max(each.decimal_places for each in values)
    alike = [to_scale(dialect, each, scale) for each in values]
    return alike if any(unsigned) else [replace(each, expr=each.expr.cast("int64")) for each in alike]


def _common_decimal(values: list[Value], unsized: bool) -> dt.DataType:
    """Return a decimal type that holds all the values exactly."""
    types = [each.expr.type() for each in values if each.kind == "decimal"]
    if any(each.kind == "integer" and each.scale for each in values) or any(map(may_be_huge, types)):
        refuse_mismatch(values)
    if unsized or any(dtype.scale is None for dtype in types):
        return dt.Decimal()
    scale = max([dtype.scale for dtype in types] + [each.decimal_places for each in values])
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


def decimal(number: Fraction, dtype: dt.DataType) -> Any:
    """Return a decimal literal, as a cast from text: to an engine a bare 1E-7 is a double."""
    after_point = count_decimal_places(number)
    digits = tuple(map(int, str(abs(int(number * 10**after_point)))))
    return ibis.literal(f"{Decimal((int(number < 0), digits, -after_point)):f}").cast(dtype)


def count_decimal_places(number: Fraction) -> int:
    """Return the number of decimal places of a finite decimal."""
    count = 0
    while 10**count % number.denominator:
        count += 1
    return count


def moment_literal(dialect: Dialect, kind: str, given: Any, node: Node) -> Value:
    """Return a literal, text or a date, as a date or timestamp of a kind, without a zone or in UTC."""
    moment: date | None = None
    if not isinstance(given, str):
        moment = datetime.combine(given, time()) if kind == "timestamp" else None
    elif re.fullmatch(_FORMS[kind], given, re.ASCII):
        try:
            moment = date.fromisoformat(given) if kind == "date" else datetime.fromisoformat(given)
            if isinstance(moment, datetime) and moment.tzinfo is not None:
                moment = moment.astimezone(UTC)
        except (ValueError, OverflowError):
            moment = None
    if moment is None:
        raise InvalidValueError(f"where must hold {_SPELLED[kind]}, not {sql(node)}")
    if not dialect.dates_are_text:
        literal = dialect.date_literal(moment) if kind == "date" else ibis.literal(moment)
        return Value(kind, node, literal, moment)
    # Text is compared in one spelling: no T, and no zeros at the end of a fraction.
    text = moment.isoformat().replace("T", " ")
    return Value(kind, node, ibis.literal(text.rstrip("0").rstrip(".") if "." in text else text), moment)


def unify_moments(values: list[Value]) -> list[Value]:
    """Return timestamps with literals in the resolution of the column; converting the column could fail on a row."""
    if any(each.expr.type().is_string() for each in values):
        # The engine keeps dates as text, and those that are read from cells are dates to ibis.
        return [replace(each, expr=each.expr.cast("string")) if each.expr.type().is_date() else each for each in values]
    # The resolution is the number of decimal places of the seconds, and 6 for types that have none.
    types = [each.expr.type() for each in values if each.literal is None]
    scales = {each.scale if each.is_timestamp() and each.scale is not None else 6 for each in types}
    if len(scales) > 1:
        named = " and ".join(f"{each.text} ({each.expr.type()})" for each in values)
        raise InvalidTypeError(f"where must not compare or mix {named}: converting one can fail on a row")
    scale = scales.pop() if scales else 6
    if scale == 6:
        return values
    rescaled = []
    for each in values:
        expr, moment = each.expr, each.literal
        if moment is not None:
            if moment.microsecond % 10 ** max(0, 6 - scale) or (scale == 9 and not 1678 <= moment.year <= 2261):
                raise InvalidValueError(f"where must not compare {each.text} with a column that cannot hold it")
            expr = expr.cast(dt.Timestamp(timezone=expr.type().timezone, scale=scale))
        rescaled.append(replace(each, expr=expr))
    return rescaled


def extract_part(dialect: Dialect, cell: Any, part: str) -> Any:
    """Return a part of a date, or of a moment in UTC, as the proleptic Gregorian calendar has it.

    Days are counted from 1 March of the year 0 in whole numbers that are never negative, so that all engines divide
    alike, and each expression holds the one before it once, but for the year (C. Neri and L. Schneider, Euclidean
    affine functions and their application to calendar algorithms, 2022).
    """
    day, second = read_cell(dialect, cell, DAY_NUMBER), read_cell(dialect, cell, SECOND_NUMBER)
    if dialect.extract_part is not None:
        return dialect.extract_part(day, second, part)
    seconds = second + _MARCH * SECONDS_PER_DAY
    days = ibis.coalesce(day + _MARCH, seconds // SECONDS_PER_DAY)
    inside = days.between(_MARCH + _FIRST_DAY, _MARCH + _LAST_DAY)
    days = ibis.cases((inside, seconds % SECONDS_PER_DAY if part == "hour" else days), else_=ibis.null("int64"))
    if part == "hour":
        return days // 3600
    if part == "isodow":
        return (days + 2) % 7 + 1
    in_centuries = 4 * days + 3
    in_years = 4 * ((in_centuries % 146_097) // 4) + 3
    in_months = 2_141 * ((in_years % 1_461) // 4) + 197_913
    if part == "day":
        return (in_months % 65_536) // 2_141 + 1
    if part == "year":
        # January and February, the eleventh and twelfth months, are in the year after that of their March.
        return 100 * (in_centuries // 146_097) + in_years // 1_461 + in_months // (13 * 65_536)
    month = (in_months // 65_536 - 1) % 12
    return month // 3 + 1 if part == "quarter" else month + 1


def add_article(kind: str) -> str:
    """Return a kind with its indefinite article."""
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def refuse_mismatch(values: list[Value]) -> NoReturn:
    """Raise an error about values that have no type in common."""
    first: dict[str, Value] = {}
    for each in values:
        first.setdefault(each.kind, each)
    named = " with ".join(f"{each.text} ({each.kind})" for each in first.values())
    if len(first) == 1:
        raise InvalidTypeError(f"where must not compare {named}: engines do not agree on this type")
    # A column declared as text can be compared with a literal once the literal is spelled as text.
    hint, text = "", first.get("string")
    other = next((each for kind, each in first.items() if kind != "string"), None)
    if text is not None and text.literal is None and other is not None and other.literal is not None:
        spelled = sql(other.node).partition("'")[2].rstrip("'") or other.text
        hint = f"; {text.text} was declared as text, and can be compared with '{spelled}'"
        if other.kind == "number":  # as text 10 is less than 4
            hint += " by = and <>, and by < and > once it is stored as numbers"
    raise InvalidTypeError(f"where must not compare or mix {named}: converting one of them can fail on a row{hint}")
