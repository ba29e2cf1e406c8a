"""Arithmetic of integers that cannot fail: where a result could overflow, the SQL checks it and gives NULL."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import ibis
import ibis.expr.datatypes as dt

from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.sources.events.dialects import Dialect
from discreet.sources.events.where.values import Value
from discreet.sources.events.where.wording import Node, article, sql

MOST = 2**63 - 1
"""The largest result of arithmetic; what is beyond is NULL, on every engine."""


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
    scales = [places(left), places(right)]
    if how is not operator.mul:
        scales = [max(scales)] * 2
    result = _checked(dialect, how, scaled(dialect, left, scales[0]), scaled(dialect, right, scales[1]), node)
    return replace(result, scale=sum(scales) if how is operator.mul else scales[0])


def scaled(dialect: Dialect, value: Value, scale: int) -> Value:
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
    return replace(_checked(dialect, operator.mul, value, factor, value.node), scale=scale)


def places(value: Value) -> int:
    """How many decimal places a value has."""
    return decimal_places(value.literal) if value.kind == "number" else value.scale


def decimal_places(number: Fraction) -> int:
    """How many decimal places a number has."""
    places = 0
    while 10**places % number.denominator:
        places += 1
    return places


def _checked(dialect: Dialect, how: Callable[[Any, Any], Any], left: Value, right: Value, node: Node) -> Value:
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


def _integer(number: int, scale: int, node: Node) -> Value:
    return Value("integer", node, ibis.literal(number, dt.int64), scale=scale, low=number, high=number)
